"""Routes that are verbs of a service: their parameters, answer and description are the verb's own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from fastapi import APIRouter, Response
from fastapi.params import Depends

from jobtable.errors import missing
from jobtable.store import Query
from jobtable.store.queries import Paged
from jobtable.web.api.route_parts import Written
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.injection import PageOf, Paging

Verb: TypeAlias = Callable[..., Any]
Verbs: TypeAlias = Sequence[Verb]


def add_verbs(
    router: APIRouter,
    service: Any,
    parameters: Mapping[str, Any],
    *routes: tuple[str, str, Verb] | tuple[str, str, Verb, Any],
    under: Verbs = (),
) -> None:
    """Add routes that each call one verb of a service: `name`, `METHOD /path STATUS`, the verb, and perhaps a body.

    The members of the body are parameters of the verb. `service` is the annotation by which FastAPI hands in the
    service. `parameters` has annotations that replace the verbs' own, by the name of the parameter or as `return`.
    A Query, or what is paged like one, is answered with a page, whose limit is the request's, a number as the count
    of items that were written, None with 404, or with 204 if the verb returns nothing else. 404 is also the answer
    of an empty page if its list belongs to something missing: the verb of `under` that takes what the list takes
    raises then. The description is the first paragraph of the docstring without what the verb raises, which the
    status codes say.
    """
    for name, operation, verb, *body in routes:
        method, path, *status = operation.split()
        hints = {**get_type_hints(verb, include_extras=True), **parameters}
        if body:
            hints["body"] = body[0]
        endpoint, answer = _endpoint(verb, hints["return"], under)
        endpoint = _with_body(endpoint) if body else endpoint
        endpoint.__module__ = _module(verb, router)
        endpoint.__signature__ = _signature(verb, service, hints)  # type: ignore[attr-defined]
        router.add_api_route(
            path,
            allow(READ if method == "GET" else WRITE)(endpoint),
            methods=[method],
            name=name,
            description=_description(verb),
            response_model=answer,
            status_code=204 if answer is None else int(status[0]) if status else None,
        )


def _module(verb: Verb, router: APIRouter) -> str:
    """Return the module after which metrics name a route: for the core, that of its group."""
    is_of_core = verb.__module__.startswith(("jobtable.jobs.", "jobtable.workflows.", "jobtable.assist."))
    return f"{__package__}.{str(router.tags[0]).replace(' ', '_')}" if is_of_core else verb.__module__


def _with_body(endpoint: Verb) -> Verb:
    return lambda body, **values: endpoint(**values, **dict(body or ()))


def _endpoint(verb: Verb, returned: Any, under: Verbs) -> tuple[Verb, Any]:
    """Return the function of a route, and the type of its answer."""
    if get_origin(returned) in (Query, Paged):
        page = PageOf.__class_getitem__(get_args(returned))
        owner = next((each for each in under if _names(each) <= _names(verb)), None)

        def list_page(service: Any, paging: Paging, **values: Any) -> Any:
            of_owner = {name: values[name] for name in _names(owner)} if owner else {}
            return paging.page(
                getattr(service, verb.__name__)(**values),
                under=owner and partial(getattr(service, owner.__name__), **of_owner),
            )

        return list_page, page
    if returned is int:
        return lambda service, **values: Written(count=getattr(service, verb.__name__)(**values)), Written

    if returned is type(None):

        def act(service: Any, **values: Any) -> Response:
            getattr(service, verb.__name__)(**values)
            return Response(status_code=204)

        return act, None

    def answer(service: Any, **values: Any) -> Any:
        found = getattr(service, verb.__name__)(**values)
        if found is None:
            raise missing(kind, " ".join(map(str, values.values())))
        return found

    model = next((each for each in get_args(returned) if type(None) in get_args(returned)), returned)
    kind = re.sub("(?<!^)([A-Z])", r" \1", model.__name__).lower()
    return answer, model


def _names(verb: Verb) -> set[str]:
    return set(inspect.signature(verb).parameters) - {"self"}


def _signature(verb: Verb, service: Any, hints: Mapping[str, Any]) -> inspect.Signature:
    handed = {"service": service} | ({"paging": Paging} if get_origin(hints["return"]) in (Query, Paged) else {})
    inside: set[str] = set()
    if (body := hints.get("body")) is not None:
        handed["body"] = body
        inside = {name for model in (body, *get_args(body)) for name in getattr(model, "model_fields", ())}
    own = [
        each
        for each in inspect.signature(verb).parameters.values()
        if each.name not in {"self", "limit", *inside} and each.kind is not each.VAR_KEYWORD
    ]
    return inspect.Signature([*starmap(_handed, handed.items()), *(_parameter(each, hints[each.name]) for each in own)])


def _handed(name: str, annotation: Any) -> inspect.Parameter:
    default = None if type(None) in get_args(annotation) else inspect.Parameter.empty
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _parameter(own: inspect.Parameter, annotation: Any) -> inspect.Parameter:
    is_dependency = any(isinstance(each, Depends) for each in getattr(annotation, "__metadata__", ()))
    default = own.empty if is_dependency else own.default
    return own.replace(annotation=annotation, kind=own.KEYWORD_ONLY, default=default)


def _description(verb: Verb) -> str:
    first = (inspect.getdoc(verb) or "").partition("\n\n")[0]
    return re.sub(r"(,? or raise|; raises?) \w+Error[^.]*", "", " ".join(first.split()))

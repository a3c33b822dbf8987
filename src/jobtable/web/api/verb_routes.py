"""Routes that are verbs of a service: their parameters, answer and description are the verb's own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from fastapi import APIRouter
from fastapi.params import Depends

from jobtable.errors import missing
from jobtable.store import Query
from jobtable.web.api.route_parts import Written
from jobtable.web.guard import READ, WRITE, allow
from jobtable.web.injection import PageOf, Paging

Verb: TypeAlias = Callable[..., Any]


def add_verbs(router: APIRouter, service: Any, parameters: Mapping[str, Any], *routes: tuple[str, str, Verb]) -> None:
    """Add routes that each call one verb of a service: their name, `METHOD /path`, and the verb.

    `service` is the annotation by which FastAPI hands in the service. `parameters` has annotations that replace the
    verbs' own, by the name of the parameter or as `return`. A Query is answered with a page, whose limit is the
    request's, a number as the count of items that were written, and None with 404. The description is the first
    paragraph of the docstring without what the verb raises, which the status codes say.
    """
    for name, operation, verb in routes:
        method, path = operation.split()
        hints = {**get_type_hints(verb, include_extras=True), **parameters}
        endpoint, answer = _endpoint(verb, hints["return"])
        endpoint.__module__ = verb.__module__  # metrics name the route after it
        endpoint.__signature__ = _signature(verb, service, hints)  # type: ignore[attr-defined]
        router.add_api_route(
            path,
            allow(READ if method == "GET" else WRITE)(endpoint),
            methods=[method],
            name=name,
            description=_description(verb),
            response_model=answer,
        )


def _endpoint(verb: Verb, returned: Any) -> tuple[Verb, Any]:
    """Return the function of a route, and the type of its answer."""
    if get_origin(returned) is Query:
        page = PageOf.__class_getitem__(get_args(returned))
        return lambda service, paging, **values: paging.page(verb(service, **values)), page
    if returned is int:
        return lambda service, **values: Written(count=verb(service, **values)), Written

    def answer(service: Any, **values: Any) -> Any:
        found = verb(service, **values)
        if found is None:
            raise missing(kind, " ".join(map(str, values.values())))
        return found

    model = next((each for each in get_args(returned) if type(None) in get_args(returned)), returned)
    kind = re.sub("(?<!^)([A-Z])", r" \1", model.__name__).lower()
    return answer, model


def _signature(verb: Verb, service: Any, hints: Mapping[str, Any]) -> inspect.Signature:
    handed = {"service": service} | ({"paging": Paging} if get_origin(hints["return"]) is Query else {})
    own = [each for each in inspect.signature(verb).parameters.values() if each.name not in ("self", "limit")]
    return inspect.Signature(
        [
            *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=handed[name]) for name in handed),
            *(_parameter(each, hints[each.name]) for each in own),
        ]
    )


def _parameter(own: inspect.Parameter, annotation: Any) -> inspect.Parameter:
    is_dependency = any(isinstance(each, Depends) for each in getattr(annotation, "__metadata__", ()))
    default = own.empty if is_dependency else own.default
    return own.replace(annotation=annotation, kind=own.KEYWORD_ONLY, default=default)


def _description(verb: Verb) -> str:
    first = (inspect.getdoc(verb) or "").partition("\n\n")[0]
    return re.sub(r"(,? or raise|; raises?) \w+Error[^.]*", "", " ".join(first.split()))

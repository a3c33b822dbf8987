"""Lambda's operations on the versions and aliases of functions."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from jobtable.errors import AlreadyExistsError, NotFoundError, OperationRefused
from jobtable.workflows.durable.lambda_calls import LambdaCall
from jobtable.workflows.durable.lambda_catalogue import latest_of, page_of_functions, version_configuration
from jobtable.workflows.durable.lambda_errors import lambda_error
from jobtable.workflows.function_versions import FunctionAlias, FunctionVersions
from jobtable.workflows.functions import LATEST, Function


def publish_version(call: LambdaCall) -> dict[str, Any]:
    """Publish what a function is now as a version, unless the latest one is the same."""
    request, name = call.request, call.target().name
    function = call.service.core.find_function(name)
    if function is None:
        raise call.no_function(name)
    _check_code(request.get("CodeSha256"), function)
    if request.get("RevisionId") is not None:
        raise _other_revision("GetFunction")  # functions are registered, and have none
    if request.get("PublishTo") is not None:
        raise lambda_error("InvalidParameterValueException", f"There is no {LATEST}.PUBLISHED of a registered function")
    published = _versions(call).publish(function, request.get("Description") or "")
    return version_configuration(call, published)


def list_versions(call: LambdaCall) -> dict[str, Any]:
    """Return a page of the versions of a function, `$LATEST` first."""
    name = call.target().name
    latest = [] if call.request.get("Marker") else [latest_of(call, name)]
    page, marker = page_of_functions(call, _versions(call).list(name))
    answer: dict[str, Any] = {"Versions": latest + [version_configuration(call, each) for each in page]}
    return answer if marker is None else {**answer, "NextMarker": marker}


def create_alias(call: LambdaCall) -> dict[str, Any]:
    """Create an alias of a version."""
    request, name = call.request, call.target().name
    latest_of(call, name)
    try:
        alias = _versions(call).create_alias(
            name,
            request["Name"],
            request["FunctionVersion"],
            _weights(request),
            request.get("Description") or "",
        )
    except NotFoundError as error:
        raise call.no_function(f"{name}:{request['FunctionVersion']}") from error
    except AlreadyExistsError as error:
        arn = call.arns.function(f"{name}:{request['Name']}")
        raise lambda_error("ResourceConflictException", f"Alias already exists: {arn}") from error
    return _described(call, alias)


def update_alias(call: LambdaCall) -> dict[str, Any]:
    """Change the version, the weights or the description of an alias."""
    request, alias = call.request, _alias(call)
    if request.get("RevisionId") not in (None, alias.revision_id):
        raise _other_revision("GetAlias")
    given = {"version": request.get("FunctionVersion"), "description": request.get("Description")}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "RoutingConfig" in request:
        changes["weights"] = _weights(request) or None
    try:
        return _described(call, _versions(call).update_alias(alias.function, alias.name, changes))
    except NotFoundError as error:
        raise call.no_function(f"{alias.function}:{request.get('FunctionVersion', alias.version)}") from error


def get_alias(call: LambdaCall) -> dict[str, Any]:
    """Return an alias."""
    return _described(call, _alias(call))


def list_aliases(call: LambdaCall) -> dict[str, Any]:
    """Return a page of the aliases of a function, or of one of its versions."""
    name, version = call.target().name, call.request.get("FunctionVersion")
    latest_of(call, name)
    page, marker = page_of_functions(
        call,
        _versions(call).list_aliases(name),
        lambda alias: version is None or version == alias.version or version in (alias.weights or ()),
    )
    answer: dict[str, Any] = {"Aliases": [_described(call, each) for each in page]}
    return answer if marker is None else {**answer, "NextMarker": marker}


def delete_alias(call: LambdaCall) -> dict[str, Any]:
    """Delete an alias; a missing one is not an error."""
    _versions(call).delete_alias(call.target().name, call.request["Name"])
    return {}


def _versions(call: LambdaCall) -> FunctionVersions:
    return call.service.core.versions


def _alias(call: LambdaCall) -> FunctionAlias:
    name = call.target().name
    found = _versions(call).find_alias(name, call.request["Name"])
    if found is None:
        arn = call.arns.function(f"{name}:{call.request['Name']}")
        raise lambda_error("ResourceNotFoundException", f"Cannot find alias arn: {arn}")
    return found


def _weights(request: Mapping[str, Any]) -> dict[str, float]:
    return dict((request.get("RoutingConfig") or {}).get("AdditionalVersionWeights") or {})


def _described(call: LambdaCall, alias: FunctionAlias) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "AliasArn": call.arns.function(f"{alias.function}:{alias.name}"),
        "Name": alias.name,
        "FunctionVersion": alias.version,
        "Description": alias.description,
        "RevisionId": alias.revision_id,
    }
    return answer | ({"RoutingConfig": {"AdditionalVersionWeights": alias.weights}} if alias.weights else {})


def _check_code(wanted: str | None, function: Function) -> None:
    found = base64.b64encode(bytes.fromhex(function.code_sha256 or "")).decode()
    if wanted not in (None, found):
        message = (
            f"CodeSHA256 ({wanted}) is different from current CodeSHA256 in {LATEST} ({found}). "
            f"Please try again with the CodeSHA256 in {LATEST}."
        )
        raise lambda_error("InvalidParameterValueException", message)


def _other_revision(operation: str) -> OperationRefused:
    message = (
        "The RevisionId provided does not match the latest RevisionId. "
        f"Call the {operation} API to retrieve the latest RevisionId for your resource."
    )
    return lambda_error("PreconditionFailedException", message)

"""The operations on activities, and GetActivityTask."""

from __future__ import annotations

from jobtable.errors import AlreadyExistsError, NotFoundError
from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, seconds, without_none
from jobtable.workflows.asl.aws_api.executions_found import record_arns
from jobtable.workflows.asl.aws_api.machine_settings import check_encryption
from jobtable.workflows.asl.aws_api.named_resources import check_name, read_activity_arn
from jobtable.workflows.asl.aws_api.page_tokens import page_of
from jobtable.workflows.asl.aws_api.refusals import activity_missing, refused
from jobtable.workflows.asl.aws_api.tag_operations import tags_of
from jobtable.workflows.asl.catalogue.records import Activity

_POLL_SECONDS = 60.0


def create(call: Call) -> Response:
    """CreateActivity. Creating one twice returns it."""
    name = check_name(call.request["name"])
    encryption = call.request.get("encryptionConfiguration")
    check_encryption(encryption or {})
    arn = call.arns.activity(name)
    try:
        made = call.activities.create(
            name,
            arns=call.arns,
            settings=None if encryption is None else {"encryptionConfiguration": encryption},
            tags=tags_of(arn, call.request.get("tags")),
        )
    except AlreadyExistsError as error:
        raise refused("ActivityAlreadyExists", f"Activity Already Exists: '{arn}'") from error
    return {"activityArn": _arn_of(made), "creationDate": seconds(made.created_at)}


def describe(call: Call) -> Response:
    """DescribeActivity."""
    found = _find(call)
    return {**_item(found), **found.settings}


def delete(call: Call) -> Response:
    """DeleteActivity; a missing one is not an error."""
    call.activities.delete(read_activity_arn(call.request["activityArn"]))
    return {}


def list_all(call: Call) -> Response:
    """ListActivities, by name."""
    found, token = page_of(call.activities.list(), call.request, call.now)
    return without_none(activities=[_item(each) for each in found], nextToken=token)


def poll(call: Call) -> Response:
    """GetActivityTask: wait up to a minute for a task; without one the token is null."""
    activity = _find(call)
    task = call.executions.poll(activity.name, call.request.get("workerName") or "", wait_seconds=_POLL_SECONDS)
    return {"taskToken": None} if task is None else {"taskToken": task.token, "input": task.input}


def _find(call: Call) -> Activity:
    arn = call.request["activityArn"]
    try:
        return call.activities.get(read_activity_arn(arn))
    except NotFoundError as error:
        raise activity_missing(arn) from error


def _item(activity: Activity) -> Response:
    return {
        "activityArn": _arn_of(activity),
        "name": activity.name,
        "creationDate": seconds(activity.created_at),
    }


def _arn_of(activity: Activity) -> str:
    return record_arns(activity).activity(activity.name)

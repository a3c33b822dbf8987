"""Create, list, tag and delete activities."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from jobtable.web.api.machines import InAccount, NewTags, Settings, StatesName, Tags
from jobtable.web.api.route_parts import api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.guard import WRITE, allow
from jobtable.web.idempotency import CreationRoute
from jobtable.web.injection import TheActivities, path_id
from jobtable.workflows.asl.catalogue.activities import Activities
from jobtable.workflows.asl.catalogue.records import Activity

router = api_router("activities")
creation = api_router("activities", CreationRoute)

ActivityName = Annotated[str, path_id("pack")]


class NewActivity(InAccount):
    """An activity to create. Creating the same once more returns it."""

    name: StatesName = Field(examples=["pack"])
    settings: Settings = {}
    tags: Tags = {}


@creation.post("/activities", status_code=201)
@allow(WRITE)
def create_activity(body: NewActivity, activities: TheActivities) -> Activity:
    """Create an activity: a kind of task that programs anywhere poll for."""
    return activities.create(body.name, arns=body.arns, settings=body.settings, tags=body.tags)


@router.put("/activities/{name}/tags")
@allow(WRITE)
def tag_activity(name: ActivityName, body: NewTags, activities: TheActivities) -> Activity:
    """Add and remove tags of an activity."""
    return activities.tag(name, body.add, frozenset(body.remove))


add_verbs(
    router,
    TheActivities,
    {"name": ActivityName},
    ("list_activities", "GET /activities", Activities.list),
    ("delete_activity", "DELETE /activities/{name}", Activities.delete),
    ("get_activity", "GET /activities/{name}", Activities.get),
)

"""Activities on a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobtable.errors import AlreadyExistsError, missing
from jobtable.model import unchanged
from jobtable.store import Store
from jobtable.store.patterns import access_pattern
from jobtable.store.queries import Query
from jobtable.workflows.asl.arns import Arns, check_states_name
from jobtable.workflows.asl.catalogue.records import Activity


class Activities:
    """The activities of a store. Their tasks belong to the executions that wait for them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(
        self, name: str, *, arns: Arns, settings: Mapping[str, Any] | None = None, tags: Mapping[str, str] | None = None
    ) -> Activity:
        """Create an activity, or return the one of that name, unless its settings differ. Tags do not count."""
        check_states_name("activity", name)
        made = Activity(
            name=name,
            region=arns.region,
            account=arns.account,
            settings=dict(settings or {}),
            tags=dict(tags or {}),
            created_at=self._store.clock.now(),
        )
        try:
            self._store.add(made)
        except AlreadyExistsError:
            existing = self._store.find(Activity.key(name=name))
            if existing is None or existing.settings != made.settings:
                raise
            return existing
        return made

    @access_pattern("Get an activity")
    def get(self, name: str) -> Activity:
        """Return an activity."""
        found = self._store.find(Activity.key(name=name))
        if found is None:
            raise missing("activity", name)
        return found

    @access_pattern("List activities by name", index="GSI1")
    def list(self) -> Query[Activity]:
        """The activities, by name."""
        return self._store.query(Activity.listed())

    def delete(self, name: str) -> None:
        """Delete an activity; a missing one is not an error."""
        self._store.delete(Activity.key(name=name))

    def tag(self, name: str, add: Mapping[str, str], remove: frozenset[str] = frozenset()) -> Activity:
        """Add and remove tags."""

        def tag(activity: Activity) -> Activity:
            tags = {key: value for key, value in {**activity.tags, **add}.items() if key not in remove}
            return self._store.update(activity, Activity.tags.set(tags), when=unchanged(activity, Activity.tags))

        return self._store.retrying(lambda: self.get(name), tag, f"tag activity {name}")

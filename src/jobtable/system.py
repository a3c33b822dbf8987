"""Systems: what a plug-in adds to the product, declared in one object and found by its entry point.

A package registers its system in `pyproject.toml`:

    [project.entry-points."jobtable.systems"]
    evals = "evals.system:SYSTEM"

A declaration names code by paths (`module` or `module:name`), so reading it imports nothing else: a command loads the
parts that it uses. The core loops over `registered()` and names no system.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from jobtable.errors import DefinitionError, MissingExtraError

GROUP = "jobtable.systems"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Service:
    """A class of verbs: `Services.get(kind)` makes one with `local(jobs)`, or with `remote(server, jobs)`.

    Without `local`, the class itself is called. Without `remote`, the verbs read the server's store.
    """

    kind: str
    local: str | None = None
    remote: str | None = None


@dataclass(frozen=True)
class Command:
    """A command group: the module that has its Typer `app`, and the sentence that `jobtable --help` shows."""

    module: str
    help: str
    alias: str | None = None
    """Another name, which works and is not listed."""


@dataclass(frozen=True)
class NavigationEntry:
    """A place in the navigation of the pages."""

    path: str
    title: str
    icon: str
    is_for_writers: bool = False
    """Whether only callers with full access see it."""
    also: tuple[str, ...] = ()
    """Other path prefixes whose pages belong to it."""

    def holds(self, path: str) -> bool:
        """Return whether a page belongs to it."""
        prefixes = tuple(each for each in (self.path, *self.also) if each != "/")
        return path == self.path or path.startswith(prefixes)


@dataclass(frozen=True)
class Listing:
    """How a reader finds the ids of one kind of thing: a command, and a list of the API."""

    command: str
    api: str | None = None


@dataclass(frozen=True)
class Owner:
    """What a job belongs to: something of a system, which is started and deleted as a whole."""

    system: str
    id: str
    page_id: str | None = None
    """The id of its page, where that is another one; empty if it has no page."""


@dataclass(frozen=True)
class System:
    """One plug-in. Every part but the name and the title may be missing."""

    name: str
    """Also the prefix of its templates and static files."""
    title: str
    order: int = 100
    """Its position among the systems: in the navigation, the help and the reference."""
    extra: str | None = None
    """What to install for it, as in `pip install 'jobtable[evals]'`."""
    needs: tuple[str, ...] = ()
    """The modules that the extra installs, by which a missing one is recognised."""

    # --- what is stored
    tables: tuple[str, ...] = ()
    """Paths of its tables, each of a Table or a sequence of them. The main table belongs to the core."""
    entities: tuple[str, ...] = ()
    """The modules that declare its entities."""
    patterns: tuple[str, ...] = ()
    """The modules whose verbs are access patterns."""
    objects: Mapping[str, str] = field(default_factory=dict)
    """For each prefix of its object keys the service whose `is_referenced(key)` finds the record of an object."""

    # --- what runs
    services: tuple[Service, ...] = ()
    queues: tuple[str, ...] = ()
    """The queues of its jobs, which `jobtable up` serves: its own, and `functions` if it runs workflows."""
    tasks: tuple[str, ...] = ()
    """The modules of its tasks; a worker that imports them once starts each job fast."""
    desks: Mapping[str, str] = field(default_factory=dict)
    """For each class that tasks ask with `jobs.desk(...)` the class that asks a server instead."""
    upkeep: str | None = None
    """A service whose `keep(wait, say)` must run beside a server or a worker of its queues."""
    moved: Mapping[str, str] = field(default_factory=dict)
    """Former module prefixes of its tasks and definitions, which older records name."""
    owner: str | None = None
    """Recognises its own jobs that carry no owner: `(job, parent) -> Owner | None`."""
    roll_ups: Mapping[str, str] = field(default_factory=dict)
    """For a member of `job_config` in which it keeps its own form of a roll-up rule: `(member) -> RollUp | None`."""
    group_progress: str | None = None
    """Corrects the progress of its groups: `(store, jobs, counted) -> {job_id: GroupProgress}`."""

    # --- what people see
    api: tuple[str, ...] = ()
    """The modules of its API routes: `router`, and `creation` for routes that take an Idempotency-Key."""
    pages: tuple[str, ...] = ()
    """The modules of its pages, each with a `router`."""
    web: str | None = None
    """The package with its `templates` and `static` folders."""
    navigation: tuple[NavigationEntry, ...] = ()
    icons: Mapping[str, str] = field(default_factory=dict)
    """Icons of the navigation: the inner SVG of a 24 by 24 view box."""
    live: str | None = None
    """The LiveTopics of its pages."""
    inbox: str | None = None
    """Lists what waits for a person in its own records: `(jobs, limit) -> Iterable[Waiting]`."""
    thing: str = ""
    """What its jobs belong to, in one word."""
    job_page: str | None = None
    """The page of what its jobs belong to, as in `/evals/{id}`."""
    delete_command: str | None = None
    """The command that deletes what its jobs belong to, as in `evals delete {id}`; they are never deleted alone."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    listings: Mapping[str, Listing] = field(default_factory=dict)
    """How to list each kind of thing that an error may call missing."""
    demo: str | None = None
    """Its DemoPart in `jobtable up --demo`."""

    def load(self, path: str) -> Any:
        """Import a module, or what a `module:name` path names; MissingExtraError if the extra is not installed."""
        try:
            return pkgutil.resolve_name(path) if ":" in path else import_module(path)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if self.extra is None or missing not in self.needs:
                raise
            raise MissingExtraError(
                f"{self.title} needs {missing}, which is not installed: pip install 'jobtable[{self.extra}]'"
            ) from error

    def load_all(self, paths: Sequence[str]) -> list[Any]:
        return [self.load(path) for path in paths]


@cache
def registered() -> tuple[System, ...]:
    """Every installed system, in order. A system that cannot be loaded is reported and left out."""
    found: dict[str, System] = {}
    for point in entry_points(group=GROUP):
        try:
            system = point.load()
        except Exception as error:
            _LOG.warning(
                "system %s (%s) cannot be loaded: %s: %s", point.name, point.value, type(error).__name__, error
            )
            continue
        if not isinstance(system, System):
            raise DefinitionError(f"entry point {point.name} = {point.value} is not a System")
        if found.setdefault(system.name, system) is not system:
            raise DefinitionError(f"two installed packages register a system named {system.name!r}; uninstall one")
    return tuple(sorted(found.values(), key=lambda system: (system.order, system.name)))


def system_named(name: str) -> System | None:
    return next((system for system in registered() if system.name == name), None)


def current_path(path: str) -> str:
    """Return where a `module:name` path of an older record is now."""
    for former, current in _moved():
        if path.startswith(former):
            return current + path.removeprefix(former)
    return path


@cache
def _moved() -> tuple[tuple[str, str], ...]:
    return tuple((former, current) for system in registered() for former, current in system.moved.items())


def declared(attribute: str) -> Iterator[tuple[System, Any]]:
    """Yield each system that declares this part, with what it declares."""
    for system in registered():
        if value := getattr(system, attribute):
            yield system, value

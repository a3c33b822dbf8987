"""The services of all systems, over the stores that the settings name."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.connection import connect, default_objects_url
from jobtable.errors import TableNotFound
from jobtable.model.table import Table
from jobtable.settings import Settings
from jobtable.store.store import Store

if TYPE_CHECKING:  # Each system is loaded when it is used.
    from jobtable.access.tokens import Tokens
    from jobtable.jobs.engine import Jobs
    from jobtable.jobs.stored.locations import JobObjects
    from jobtable.objects.store import ObjectStore
    from jobtable.systems.albums.answers import Answers
    from jobtable.systems.albums.executions import Executions
    from jobtable.systems.albums.service import AlbumWorkflows
    from jobtable.systems.albums.watch import Watch
    from jobtable.systems.conversations.runs import ConversationRuns
    from jobtable.systems.conversations.service import Conversations
    from jobtable.systems.journeys.backups import JourneyBackups
    from jobtable.systems.journeys.records import ExecutionRecords
    from jobtable.systems.journeys.runner import JourneyRunner
    from jobtable.systems.journeys.service import Journeys
    from jobtable.systems.receipts.ocr import OcrService
    from jobtable.systems.sweeps.service import Sweeps


def open_jobs(store_url: str, objects_url: str | None = None, *, clock: Clock = SYSTEM_CLOCK) -> Jobs:
    """The job service of a store: what each process of a worker opens for itself.

    The caller closes it, or writes `with open_jobs(...) as jobs:`. The tables of an embedded store are created where
    they are missing; those in the cloud are created once, with `jobtable tables create`.
    """
    return Services.open(store_url, objects_url, clock=clock).jobs


class Services:
    """The services over one store and one object store, each made when it is first asked for.

    The tables of a system are created with its service where they are missing, on an embedded store.
    """

    def __init__(self, store: Store, objects: ObjectStore, *, is_embedded: bool, creates: bool = True) -> None:
        self.store = store
        self.objects = objects
        self._creates_tables = is_embedded and creates
        self._may_lack_tables = is_embedded and not creates

    @classmethod
    def open(
        cls, store_url: str, objects_url: str | None = None, *, clock: Clock = SYSTEM_CLOCK, creates: bool = True
    ) -> Self:
        """Open what the URLs name; without `objects_url` the objects are beside the store's file.

        A dry run does not create: in the place of a folder of objects that is missing it has one with nothing in it.
        """
        from jobtable.objects import open_objects

        store = connect(store_url, clock=clock)
        try:
            objects = open_objects(objects_url or default_objects_url(store_url), clock=clock, creates=creates)
        except BaseException:
            store.close()
            raise
        return cls(store, objects, is_embedded=store_url.startswith(("memory:", "file:")), creates=creates)

    @staticmethod
    def from_settings(settings: Settings, *, clock: Clock = SYSTEM_CLOCK, creates: bool = True) -> Services:
        """Open what the settings name: a server if they name one, else a store."""
        if settings.server is not None:
            return ServerServices(settings.server, settings.token, clock=clock)
        return Services.open(settings.store, settings.objects, clock=clock, creates=creates)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and the object store."""
        self.store.close()
        self.objects.close()

    @cached_property
    def jobs(self) -> Jobs:
        """Jobs, queues and workers."""
        from jobtable.jobs.engine import Jobs
        from jobtable.jobs.stored.entities import main

        self._prepare(main)
        return Jobs(self.store, self.objects, clock=self.store.clock)

    @cached_property
    def sweeps(self) -> Sweeps:
        """Hyperparameter sweeps."""
        from jobtable.systems.sweeps.service import Sweeps

        return Sweeps(self.jobs)

    @cached_property
    def journeys(self) -> Journeys:
        """Transformation journeys."""
        from jobtable.systems.journeys.entities import journeys
        from jobtable.systems.journeys.service import Journeys

        self._prepare(journeys)
        return Journeys(self.store, clock=self.store.clock)

    @cached_property
    def conversations(self) -> Conversations:
        """The results of conversation analyses."""
        from jobtable.systems.conversations.entities import TABLES
        from jobtable.systems.conversations.service import Conversations

        self._prepare(*TABLES)
        return Conversations(self.store)

    @cached_property
    def conversation_runs(self) -> ConversationRuns:
        """Conversation analyses, as they run."""
        from jobtable.systems.conversations.entities import TABLES
        from jobtable.systems.conversations.runs import ConversationRuns

        self._prepare(*TABLES)
        return ConversationRuns(self.jobs)

    @cached_property
    def journey_records(self) -> ExecutionRecords:
        """The logs and reports of journeys' executions, whole."""
        from jobtable.systems.journeys.entities import journeys
        from jobtable.systems.journeys.records import ExecutionRecords

        self._prepare(journeys)
        return ExecutionRecords(self.store, self.objects, self.store.clock)

    @cached_property
    def journey_runner(self) -> JourneyRunner:
        """Journeys, as they run."""
        from jobtable.systems.journeys.entities import journeys
        from jobtable.systems.journeys.runner import JourneyRunner

        self._prepare(journeys)
        return JourneyRunner(self.jobs)

    @cached_property
    def journey_backups(self) -> JourneyBackups:
        """Journeys as files."""
        from jobtable.systems.journeys.backups import JourneyBackups

        return JourneyBackups(self.journey_runner)

    @cached_property
    def albums(self) -> AlbumWorkflows:
        """Album workflows, their executions and their tasks."""
        from jobtable.systems.albums.entities import workflows
        from jobtable.systems.albums.service import AlbumWorkflows

        self._prepare(workflows)
        return AlbumWorkflows(self.store)

    @cached_property
    def album_executions(self) -> Executions:
        """Album executions, as they run."""
        from jobtable.systems.albums.entities import workflows
        from jobtable.systems.albums.executions import Executions

        self._prepare(workflows)
        return Executions(self.jobs)

    @cached_property
    def album_answers(self) -> Answers:
        """What people answer to the tasks of album executions."""
        from jobtable.systems.albums.answers import Answers
        from jobtable.systems.albums.entities import workflows

        self._prepare(workflows)
        return Answers(self.jobs)

    @cached_property
    def album_watch(self) -> Watch:
        """The watch over album executions: who runs a server or a worker keeps it."""
        from jobtable.systems.albums.entities import workflows
        from jobtable.systems.albums.watch import Watch

        self._prepare(workflows)
        return Watch(self.jobs)

    @cached_property
    def ocr(self) -> OcrService:
        """Images, and what OCR has read from them."""
        from jobtable.jobs.stored.entities import main
        from jobtable.systems.receipts.ocr import OcrService

        self._prepare(main)
        return OcrService(self.store)

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens of the server over this store."""
        from jobtable.access.tokens import Tokens
        from jobtable.jobs.stored.entities import main

        self._prepare(main)
        return Tokens(self.store, clock=self.store.clock)

    @cached_property
    def _job_objects(self) -> JobObjects:
        from jobtable.jobs.stored.locations import JobObjects

        return JobObjects(self.jobs.store)

    def is_referenced(self, key: str) -> bool:
        """Whether a record of some system names the object: what the sweep of orphans asks.

        An object under a prefix that no system has is somebody else's, and counts as named. A table that a dry run has
        not created names nothing.
        """
        try:
            return self._is_named(key)
        except TableNotFound:
            if not self._may_lack_tables:
                raise  # it is rather the wrong store, or the table was deleted just now: then nothing may be swept
            return False

    def _is_named(self, key: str) -> bool:
        match key.partition("/")[0]:
            case "jobs":
                return self._job_objects.is_referenced(key)
            case "journeys":
                return self.journey_records.is_referenced(key)
            case "conversations":
                return self.conversation_runs.is_referenced(key)
            case "uploads":
                return self.album_executions.is_referenced(key)
        return True

    def _prepare(self, *tables: Table) -> None:
        """Create what is missing of the tables, where that costs nothing."""
        if self._creates_tables:
            self.store.tables.create(*tables)


class ServerServices(Services):
    """The services of a server elsewhere: read as here, and changed by its REST API.

    Each verb is one request, and the server's workers do the work.
    """

    def __init__(self, url: str, token: str | None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        from jobtable.remote.backend import ServerBackend, ServerObjects
        from jobtable.remote.server import Server

        self._server = Server(url, token)
        try:
            prefix = self._server.read("GET", "/store")["prefix"]
        except BaseException:
            self._server.close()
            raise
        store = Store(ServerBackend(self._server), prefix=prefix, clock=clock)
        super().__init__(store, ServerObjects(self._server), is_embedded=False)

    @cached_property
    def jobs(self) -> Jobs:
        """Jobs and queues, for people; workers open `remote.work`."""
        from jobtable.remote.jobs import ServerJobs

        return ServerJobs(self._server, self.store, self.objects)

    @cached_property
    def sweeps(self) -> Sweeps:
        """Hyperparameter sweeps."""
        from jobtable.systems.sweeps.remote import ServerSweeps

        return ServerSweeps(self._server, self.jobs)

    @cached_property
    def journeys(self) -> Journeys:
        """Transformation journeys."""
        from jobtable.systems.journeys.remote import ServerJourneys

        return ServerJourneys(self._server, self.store, clock=self.store.clock)

    @cached_property
    def journey_runner(self) -> JourneyRunner:
        """Journeys, as they run."""
        from jobtable.systems.journeys.remote import ServerRunner

        return ServerRunner(self._server, self.jobs)

    @cached_property
    def journey_backups(self) -> JourneyBackups:
        """Journeys as files."""
        from jobtable.systems.journeys.remote import ServerBackups

        return ServerBackups(self._server, self.journey_runner)

    @cached_property
    def conversation_runs(self) -> ConversationRuns:
        """Conversation analyses, as they run."""
        from jobtable.systems.conversations.remote import ServerRuns

        return ServerRuns(self._server, self.jobs)

    @cached_property
    def album_executions(self) -> Executions:
        """Album executions, as they run."""
        from jobtable.systems.albums.remote import ServerExecutions

        return ServerExecutions(self._server, self.jobs)

    @cached_property
    def album_answers(self) -> Answers:
        """What people answer to the tasks of album executions."""
        from jobtable.systems.albums.remote import ServerAnswers

        return ServerAnswers(self._server, self.jobs)

    @cached_property
    def album_watch(self) -> Watch:
        """The watch over album executions, which the server keeps itself."""
        from jobtable.systems.albums.remote import ServerWatch

        return ServerWatch(self.jobs)

    @cached_property
    def ocr(self) -> OcrService:
        """Images, and what OCR has read from them."""
        from jobtable.systems.receipts.remote import ServerOcr

        return ServerOcr(self._server, self.store)

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens of the server."""
        from jobtable.remote.tokens import ServerTokens

        return ServerTokens(self._server, self.store, clock=self.store.clock)

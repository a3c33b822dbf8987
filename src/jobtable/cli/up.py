"""`jobtable up`: the whole product with one command: the server, a worker, and the upkeep of the systems."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobtable.cli.background import beside, kept_up
from jobtable.cli.demo_progress import demonstrated
from jobtable.cli.local_workers import LocalWorkers
from jobtable.cli.opening import services_of, wait_for_store
from jobtable.cli.options import ObjectsUrl, StoreUrl, names_store, refuse_memory, resolved
from jobtable.cli.output import say
from jobtable.connection import store_file, store_url
from jobtable.demo import parts
from jobtable.errors import SettingsError
from jobtable.settings import Settings, without_secret
from jobtable.system import declared

if TYPE_CHECKING:  # needs an extra, and is slow to import
    from uvicorn import Server

app = typer.Typer(rich_markup_mode=None)
_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 1.0, 60.0


def system_queues() -> list[str]:
    """The queues of the systems' own jobs, which a worker of the whole product serves beside those of the settings."""
    return [queue for _, queues in declared("queues") for queue in queues]


@app.command()
def up(
    demo: Annotated[bool, typer.Option("--demo", help="Also run a small demonstration of every part.")] = False,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Keep everything in this folder; instead of --store.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on; 127.0.0.1 unless settings differ.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")
    ] = None,
    slots: Annotated[int | None, typer.Option("--slots", min=1, help="How many jobs run at once.")] = None,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="With or without a worker.")] = True,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
) -> None:
    """Run the server with its pages and its API, and a worker. A second start goes on where this one ended.

    \b
    Example:
        jobtable up --demo --port 8123 --data ./try
    """
    _refuse_without_extras(demo=demo)
    if data is not None and names_store(resolved(store=store)):
        raise typer.BadParameter("--data and --store both say where everything is kept: give one of them")
    if data is not None:
        _make_folder(data)
        store = store_url(data / "jobtable.db")
    settings = resolved(store=store, objects=objects, host=host, port=port, slots=slots).settings
    settings = settings.model_copy(update={"server": None})  # what is served here is the store, whoever else is named
    if worker:
        refuse_memory(settings)
    _run(settings, with_worker=worker, demo_folder=_demo_folder(settings) if demo else None)


def _refuse_without_extras(*, demo: bool) -> None:
    # Each module of the first: other programs bring some of them along.
    needed: dict[str, tuple[str, ...]] = {"web": ("fastapi", "jinja2", "plotly", "uvicorn")}
    if demo:
        needed |= {system.extra: system.needs for system, _ in declared("demo") if system.extra is not None}
    missing = [extra for extra, modules in needed.items() if None in map(find_spec, modules)]
    if missing:
        raise typer.BadParameter(f"this needs what is not installed: pip install 'jobtable[{','.join(missing)}]'")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--data {folder}: {error.strerror}") from error


def _demo_folder(settings: Settings) -> Path:
    """Where the demonstration keeps its files: beside the store's file."""
    if not settings.store.startswith("file:"):
        raise typer.BadParameter("the demonstration runs on the embedded store: give --data DIR, or no --store")
    folder = store_file(settings.store).parent / "demo"
    _make_folder(folder)
    return folder


def _run(settings: Settings, *, with_worker: bool, demo_folder: Path | None) -> None:
    # FastAPI and what it brings are slow to import, and no other command needs them.
    from jobtable.web.listening import address_of, bind, server_on  # noqa: PLC0415
    from jobtable.web.server import create_app  # noqa: PLC0415

    with ExitStack() as cleanup:
        listening = cleanup.enter_context(bind(settings.host, settings.port))
        wait_for_store(settings)
        services = cleanup.enter_context(services_of(settings))
        server = server_on(create_app(services, settings))
        preload = [] if demo_folder is None else modules_of_demo()
        workers = _workers(settings, preload) if with_worker else None
        cleanup.enter_context(_ended_by_signals(server, workers))
        if workers is not None:
            cleanup.enter_context(workers)
            cleanup.enter_context(_kept_alive(workers))
        cleanup.enter_context(kept_up(services))
        address = address_of(listening)
        say(f"Jobtable is at {address}  (data: {without_secret(settings.store)}; stop with Ctrl-C)")
        if demo_folder is not None:
            cleanup.enter_context(demonstrated(services, demo_folder, address))
        server.run(sockets=[listening])
        say("Stopping: running jobs get a moment to end; what has not ended goes on with the next start.")
    say("Stopped.")


def _workers(settings: Settings, preload: Sequence[str]) -> LocalWorkers:
    queues = (*settings.queues, *system_queues())
    return LocalWorkers(settings, queues, slots=settings.slots, preload=preload, quiet=False)


def modules_of_demo() -> list[str]:
    """The modules of the tasks that the demonstration runs: a worker that imports them once starts each job fast."""
    of_systems = [module for _, modules in declared("tasks") for module in modules]
    return [*(module for part in parts() for module in part.modules), *of_systems]


def _kept_alive(workers: LocalWorkers) -> AbstractContextManager[None]:
    """Start a worker again that dies while the block runs."""

    def keep(is_over: threading.Event) -> None:
        for seconds in looks(workers.replace_dead):
            if is_over.wait(seconds):
                return

    return beside(keep, "watch over the worker")


def looks(replace_dead: Callable[[], bool]) -> Iterator[float]:
    """How long to wait before each look at the workers: ever longer while they die as often as they are started."""
    seconds = _LOOK_SECONDS
    while True:
        yield seconds
        seconds = min(2 * seconds, _LONGEST_LOOK_SECONDS) if replace_dead() else _LOOK_SECONDS


@contextmanager
def _ended_by_signals(server: Server, workers: LocalWorkers | None) -> Iterator[None]:
    """The first SIGINT or SIGTERM ends the server; one more means: at once.

    A server that runs takes the first one itself, and raises it again when it has ended.
    """
    seen = 0

    def handle(signum: int, frame: object) -> None:
        nonlocal seen
        seen += 1
        server.should_exit = True
        if seen > 1 and workers is not None:
            workers.hurry()

    before = {signum: signal.signal(signum, handle) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)

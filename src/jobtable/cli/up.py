"""`jobtable up`: the whole product in one command: server, worker and upkeep of the systems."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jobtable.app import Services
from jobtable.cli.background import beside, kept_up
from jobtable.cli.framework import CommandGroup
from jobtable.cli.local_workers import LocalWorkers, kept_alive
from jobtable.cli.opening import services_of, wait_for_store
from jobtable.cli.options import ObjectsUrl, StoreUrl, names_store, refuse_memory, resolved
from jobtable.cli.output import colour_of, say
from jobtable.connection import store_file, store_url
from jobtable.demo import DemoPart, DemoState, parts
from jobtable.errors import JobtableError, SettingsError
from jobtable.settings import Settings, without_secret
from jobtable.system import declared
from jobtable.workflows.table_and_queues import EXECUTIONS_QUEUE, QUEUES, TASK_MODULES

if TYPE_CHECKING:  # needs an extra, and is slow to import
    from uvicorn import Server

app = CommandGroup()
_DEMO_SECONDS = 0.5


def own_queues() -> list[str]:
    """Return the queues of workflows and of the systems' own jobs, which the worker serves beside the settings'."""
    return [*QUEUES, *(queue for _, queues in declared("queues") for queue in queues)]


@app.command(example="jobtable up --demo --port 8123 --data ./try")
def up(
    demo: Annotated[bool, typer.Option("--demo", help="Also run a small demonstration of every system")] = False,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for all data, instead of --store")] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (default: JOBTABLE_HOST, jobtable.toml, or 127.0.0.1)")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Port to listen on; 0 for any free one (default: JOBTABLE_PORT, jobtable.toml, or 8765)",
        ),
    ] = None,
    slots: Annotated[int | None, typer.Option(min=1, help="Number of jobs to run at once")] = None,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Run a worker, or leave it out")] = True,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
) -> None:
    """Run the server (pages and API) and a worker. A restart resumes where the last run stopped."""
    _refuse_without_extras(demo=demo)
    if data is not None and names_store(resolved(store=store)):
        raise typer.BadParameter("--data and --store cannot be combined")
    if data is not None:
        _make_folder(data)
        store = store_url(data / "jobtable.db")
    settings = resolved(store=store, objects=objects, host=host, port=port, slots=slots).settings
    settings = settings.model_copy(update={"server": None})  # it serves a store, even if the settings name a server
    if worker:
        refuse_memory(settings)
    _run(settings, with_worker=worker, demo_folder=_demo_folder(settings) if demo else None)


def _refuse_without_extras(*, demo: bool) -> None:
    # Every module of `web` counts: other packages install some of them.
    needed: dict[str, tuple[str, ...]] = {"web": ("fastapi", "grandalf", "jinja2", "plotly", "uvicorn")}
    if demo:
        needed |= {system.extra: system.needs for system, _ in declared("demo") if system.extra is not None}
    missing = [extra for extra, modules in needed.items() if None in map(find_spec, modules)]
    if missing:
        raise typer.BadParameter(f"a dependency is not installed; run pip install 'jobtable[{','.join(missing)}]'")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--data {folder}: {error.strerror}") from error


def _demo_folder(settings: Settings) -> Path:
    """Create the folder for the files of the demonstration, beside the store's file."""
    if not settings.store.startswith("file:"):
        raise typer.BadParameter("the demonstration needs the embedded store; use --data DIR, or omit --store")
    folder = store_file(settings.store).parent / "demo"
    _make_folder(folder)
    return folder


def _run(settings: Settings, *, with_worker: bool, demo_folder: Path | None) -> None:
    # FastAPI is slow to import, and no other command needs it.
    from jobtable.web.application import create_app  # noqa: PLC0415
    from jobtable.web.listening import address_of, bind, server_on  # noqa: PLC0415

    with ExitStack() as cleanup:
        listening = cleanup.enter_context(bind(settings.host, settings.port))
        wait_for_store(settings)
        services = cleanup.enter_context(services_of(settings))
        server = server_on(create_app(services, settings))
        preload = [] if demo_folder is None else modules_of_demo()
        workers = _workers(settings, preload) if with_worker else []
        cleanup.enter_context(_ended_by_signals(server, workers))
        for each in workers:
            cleanup.enter_context(each)
            cleanup.enter_context(kept_alive(each))
        cleanup.enter_context(kept_up(services))
        address = address_of(listening)
        say(f"Jobtable is at {address}  (data: {without_secret(settings.store)}; stop with Ctrl-C)")
        if demo_folder is not None:
            cleanup.enter_context(demonstrated(services, demo_folder, address))
        server.run(sockets=[listening])
        say("Stopping: running jobs have a few seconds to end; the next start resumes the others.")
    say("Stopped.")


def _workers(settings: Settings, preload: Sequence[str]) -> list[LocalWorkers]:
    queues = [*settings.queues, *own_queues()]
    queues.remove(EXECUTIONS_QUEUE)
    return [
        LocalWorkers(settings, queues, slots=settings.slots, preload=preload, quiet=False),
        LocalWorkers(settings, [EXECUTIONS_QUEUE], preload=TASK_MODULES, inline=True, quiet=False),
    ]


def modules_of_demo() -> list[str]:
    """Return the modules of the demonstration's tasks, which the worker imports once to start each job fast."""
    of_systems = [module for _, modules in declared("tasks") for module in modules]
    return [*(module for part in parts() for module in part.modules), *of_systems]


@contextmanager
def _ended_by_signals(server: Server, workers: Sequence[LocalWorkers]) -> Iterator[None]:
    """Stop the server at the first SIGINT or SIGTERM, and the workers without delay at the second.

    A running server handles the first signal itself, and raises it again after it stopped.
    """
    seen = 0

    def handle(signum: int, frame: object) -> None:
        nonlocal seen
        seen += 1
        server.should_exit = True
        for each in workers if seen > 1 else ():
            each.hurry()

    before = {signum: signal.signal(signum, handle) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def demonstrated(services: Services, folder: Path, address: str) -> AbstractContextManager[None]:
    """Start the parts of the demonstration and show their progress while the block runs."""

    def demonstrate(is_over: threading.Event) -> None:
        try:
            started = parts()  # takes seconds, so the address is printed first
            for part in started:
                if is_over.is_set():
                    return
                part.start(services, folder)
            _show_demo(started, services, address, is_over)
        except JobtableError as error:
            say(f"The demonstration stopped: {error}")

    return beside(demonstrate, "demonstration")


def _show_demo(shown: Sequence[DemoPart], services: Services, address: str, is_over: threading.Event) -> None:
    """Show the progress of the parts until all are settled, and then the page of each."""
    console = Console(stderr=True, highlight=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            states = [(part, part.look(services)) for part in shown]
            live.update(_progress_table(states), refresh=console.is_terminal)
            if all(state.is_settled for _, state in states) or is_over.wait(_DEMO_SECONDS):
                break
    console.print(_progress_table(states))
    for part in shown:
        say(f"  {address}{part.page}")


def _progress_table(states: list[tuple[DemoPart, DemoState]]) -> Table:
    drawn = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(3):
        drawn.add_column(no_wrap=True)
    for part, state in states:
        status = Text(state.status, colour_of(state.status) or "")
        drawn.add_row(part.title, status, f"{state.percent:.0f} %", state.detail)
    return drawn

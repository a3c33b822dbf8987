"""`jobtable aws`: DynamoDB, Streams, Step Functions and Lambda at one address, with workers."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from jobtable.app import Services
from jobtable.cli.background import signalled
from jobtable.cli.endpoint_serving import AccessKey, Host, Port, SecretKey, key_pair, serve_endpoint
from jobtable.cli.framework import group_of_one
from jobtable.cli.local_workers import LocalWorkers, kept_alive
from jobtable.cli.opening import services_of, wait_for_store
from jobtable.cli.options import ObjectsUrl, StoreUrl, names_store, refuse_memory, resolved
from jobtable.connection import store_url
from jobtable.embedded.server import (
    DynamoDbProtocol,
    Endpoint,
    LambdaProtocol,
    SignatureCheck,
    StepFunctionsProtocol,
)
from jobtable.errors import SettingsError, kind_and_text
from jobtable.settings import Settings, without_secret
from jobtable.workflows.function_records import FunctionRecords
from jobtable.workflows.message_handlers import MessageHandlers
from jobtable.workflows.table_and_queues import EXECUTIONS_QUEUE, FUNCTIONS_QUEUE, TASK_MODULES

app = group_of_one()

_FILE_NAME = "jobtable.db"


@app.command(
    example=(
        "jobtable aws serve --data ./aws --import shop.functions --port 8000\n"
        "aws stepfunctions list-state-machines --endpoint-url http://127.0.0.1:8000"
    )
)
def serve(
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep everything in DIR, instead of --store; create it if it does not exist"),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep everything in a temporary folder, until the server stops")
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="MODULE", help="Module that registers functions to run; repeatable"),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Number of worker processes for functions; executions have one more"),
    ] = 1,
    slots: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of functions that each worker runs at once")
    ] = 4,
    port: Port = 8000,
    host: Host = "127.0.0.1",
    access_key: AccessKey = None,
    secret_key: SecretKey = None,
    store: StoreUrl = None,
    objects: ObjectsUrl = None,
) -> None:
    """Serve the APIs of DynamoDB, its streams, Step Functions and Lambda until Ctrl-C or SIGTERM.

    Workers run the executions and the functions. Functions are imported from the current folder and from installed
    packages. The next start resumes what was under way. Any credentials and any region are accepted, unless
    --access-key and --secret-key are given.
    """
    if (data is not None) + memory + names_store(resolved(store=store)) > 1:
        raise typer.BadParameter("use one of --data DIR, --memory and --store URL")
    keys = key_pair(access_key, secret_key)
    for module in modules or ():
        _import(module)
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    stop = signalled()
    with _folder(data, memory=memory) as folder:
        url = store if folder is None else store_url(folder / _FILE_NAME)
        settings = resolved(store=url, objects=objects).settings.model_copy(update={"server": None})
        refuse_memory(settings)
        wait_for_store(settings)
        with services_of(settings) as services, ExitStack() as cleanup:
            endpoint = _endpoint(services, keys)
            _publish(services)
            for each in _workers(settings, workers, slots, modules or ()):
                cleanup.enter_context(each)
                cleanup.enter_context(kept_alive(each))
            serve_endpoint(
                endpoint.respond,
                (host, port),
                stop,
                what="DynamoDB, Step Functions and Lambda",
                place=_place(settings, memory=memory),
            )


def _workers(settings: Settings, count: int, slots: int, modules: Sequence[str]) -> list[LocalWorkers]:
    """Return the workers; executions have one of their own, so that no function keeps them waiting."""
    if count == 0:
        return []
    return [
        LocalWorkers(settings, [FUNCTIONS_QUEUE], count=count, slots=slots, preload=modules, inline=True, quiet=False),
        LocalWorkers(settings, [EXECUTIONS_QUEUE], preload=TASK_MODULES, inline=True, quiet=False),
    ]


def _import(module: str) -> None:
    try:
        import_module(module)
    except Exception as error:  # whatever a module raises while it is imported
        raise SettingsError(
            f"cannot import {module}: {kind_and_text(error)}",
            hint="start the command in the folder that has it, or install its package",
        ) from error


@contextmanager
def _folder(data: Path | None, *, memory: bool) -> Iterator[Path | None]:
    """Make the folder for everything; None if a store is named instead."""
    if memory:
        with tempfile.TemporaryDirectory(prefix="jobtable-") as folder:
            yield Path(folder)
        return
    if data is not None:
        try:
            data.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"cannot use {data} as the data folder: {error.strerror}") from error
    yield data


def _endpoint(services: Services, keys: tuple[str, str] | None) -> Endpoint:
    def check(service: str) -> SignatureCheck | None:
        return None if keys is None else SignatureCheck(*keys, service=service)

    return Endpoint(
        [
            StepFunctionsProtocol(services.step_functions, check("states")),
            LambdaProtocol(services.lambda_functions, check("lambda")),
            DynamoDbProtocol(services.store.backend, check("dynamodb")),
        ]
    )


def _publish(services: Services) -> None:
    """Record what the imported modules register, so that workers find it."""
    FunctionRecords(services.store).publish()
    MessageHandlers(services.store).publish()


def _place(settings: Settings, *, memory: bool) -> str:
    return "kept until it stops" if memory else f"data: {without_secret(settings.store)}"

"""`jobtable dynamodb`: the embedded engine as a server that any DynamoDB client can use."""

from __future__ import annotations

import logging
import os
import socket
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jobtable.cli.background import StopSignal, signalled
from jobtable.cli.framework import group_of_one
from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.server import MOST_FILES, DynamoDbProtocol, Server, SignatureCheck
from jobtable.files import allow_open_files

app = group_of_one()

_FILE_NAME = "jobtable.db"


class Durability(StrEnum):
    """What an acknowledged write survives."""

    full = "full"
    normal = "normal"


@app.command(
    example=(
        "jobtable dynamodb serve --data ./tables --port 8000\n"
        "aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000"
    )
)
def serve(
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help=f"Keep the tables in DIR/{_FILE_NAME}; create DIR if it does not exist"),
    ] = None,
    memory: Annotated[bool, typer.Option("--memory", help="Keep the tables in memory, until the server stops")] = False,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on; 0 for any free one")
    ] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on")] = "127.0.0.1",
    access_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", envvar="JOBTABLE_ACCESS_KEY", help="Require signatures made with this access key"),
    ] = None,
    secret_key: Annotated[
        str | None, typer.Option(metavar="KEY", envvar="JOBTABLE_SECRET_KEY", help="Secret key for --access-key")
    ] = None,
    durability: Annotated[
        Durability,
        typer.Option(help="full: writes survive a power cut. normal: faster; a power cut may lose the last writes"),
    ] = Durability.full,
) -> None:
    """Serve DynamoDB's HTTP API from the embedded engine until Ctrl-C or SIGTERM.

    Any credentials and any region are accepted, unless --access-key and --secret-key are given.
    """
    if memory == (data is not None):
        raise typer.BadParameter("use either --data DIR or --memory")
    if (access_key is None) != (secret_key is None):
        raise typer.BadParameter("--access-key and --secret-key must be given together")
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    signatures = SignatureCheck(access_key, secret_key) if access_key and secret_key else None
    stop = signalled()
    allow_open_files(MOST_FILES)
    backend = EmbeddedBackend(_database_file(data), durability=durability.value)
    try:
        _serve(DynamoDbProtocol(backend, signatures), host, port, stop, "memory" if data is None else str(data))
    finally:
        backend.close()


def _serve(protocol: DynamoDbProtocol, host: str, port: int, stop: StopSignal, place: str) -> None:
    try:
        server = Server(protocol.respond, host=host, port=port)
    except OSError as error:
        reason = (
            error.strerror if isinstance(error, socket.gaierror) or error.errno is None else os.strerror(error.errno)
        )
        sys.exit(f"Error: cannot listen on {host}:{port}: {reason}; choose another --port or --host")
    with server:
        typer.echo(f"Serving DynamoDB on {server.url} (tables in {place}); stop with Ctrl-C.")
        stop.wait()
    typer.echo("Stopped.")


def _database_file(data: Path | None) -> Path | None:
    if data is None:
        return None
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"Error: cannot use {data} as the data folder: {error.strerror}")
    return data / _FILE_NAME

"""`jobtable dynamodb`: the embedded engine as a server that any DynamoDB client can use."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jobtable.cli.background import signalled
from jobtable.cli.endpoint_serving import AccessKey, Host, Port, SecretKey, key_pair, serve_endpoint
from jobtable.cli.framework import group_of_one
from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.server import DynamoDbProtocol, SignatureCheck

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
    port: Port = 8000,
    host: Host = "127.0.0.1",
    access_key: AccessKey = None,
    secret_key: SecretKey = None,
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
    keys = key_pair(access_key, secret_key)
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    stop = signalled()
    backend = EmbeddedBackend(_database_file(data), durability=durability.value)
    protocol = DynamoDbProtocol(backend, SignatureCheck(*keys) if keys else None)
    place = f"tables in {'memory' if data is None else data}"
    try:
        serve_endpoint(protocol.respond, (host, port), stop, what="DynamoDB", place=place)
    finally:
        backend.close()


def _database_file(data: Path | None) -> Path | None:
    if data is None:
        return None
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"Error: cannot use {data} as the data folder: {error.strerror}")
    return data / _FILE_NAME

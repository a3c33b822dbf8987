"""What the commands share that serve an endpoint of AWS: its options, and a server that runs until it is stopped."""

from __future__ import annotations

import os
import socket
import sys
from typing import Annotated

import typer

from jobtable.cli.background import StopSignal
from jobtable.embedded.server import MOST_FILES, Server
from jobtable.embedded.server.listener import Respond
from jobtable.files import allow_open_files

Port = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port to listen on; 0 for any free one")
]
Host = Annotated[str, typer.Option("--host", help="Address to listen on")]
AccessKey = Annotated[
    str | None,
    typer.Option(
        "--access-key",
        metavar="KEY",
        envvar="JOBTABLE_ACCESS_KEY",
        help="Require signatures made with this access key",
    ),
]
SecretKey = Annotated[
    str | None,
    typer.Option("--secret-key", metavar="KEY", envvar="JOBTABLE_SECRET_KEY", help="Secret key for --access-key"),
]


def key_pair(access_key: str | None, secret_key: str | None) -> tuple[str, str] | None:
    """Return the keys that requests must be signed with, or None if any request is accepted."""
    if (access_key is None) != (secret_key is None):
        raise typer.BadParameter("--access-key and --secret-key must be given together")
    return (access_key, secret_key) if access_key and secret_key else None


def serve_endpoint(respond: Respond, address: tuple[str, int], stop: StopSignal, *, what: str, place: str) -> None:
    """Serve until the signal arrives; the first line that is printed has the URL."""
    allow_open_files(MOST_FILES)
    host, port = address
    try:
        server = Server(respond, host=host, port=port)
    except OSError as error:
        is_named = isinstance(error, socket.gaierror) or error.errno is None
        reason = error.strerror if is_named else os.strerror(error.errno or 0)
        sys.exit(f"Error: cannot listen on {host}:{port}: {reason}; choose another --port or --host")
    with server:
        typer.echo(f"Serving {what} on {server.url} ({place}); stop with Ctrl-C.")
        stop.wait()
    typer.echo("Stopped.")

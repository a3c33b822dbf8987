"""`jobtable tokens`: create, list and revoke access tokens of the server."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from jobtable.access.entities import AccessToken, Role
from jobtable.access.tokens import TokenState
from jobtable.cli.framework import Yes, confirm, new_group
from jobtable.cli.options import AsJson, StoreUrl, User, duration, open_services, resolved
from jobtable.cli.output import print_either, print_json, print_table, say, to_json

app = new_group()


@app.command(example="jobtable tokens create --role read --expires 30d --name dashboards")
def create(
    role: Annotated[
        Role, typer.Option(help="read: get and query. full: also write. worker: only claim jobs and report on them")
    ],
    name: Annotated[str, typer.Option(help="Purpose of the token")] = "",
    expires: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration, metavar="TIME", help="Time until it expires: 45m, 12h, 30d or 8w (default: never)"
        ),
    ] = None,
    store: StoreUrl = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it, this once: only its digest is stored."""
    with open_services(store, creates=True) as services:
        by = resolved(user=user).settings.user
        new = services.tokens.create(role, name=name, expires_in=expires, created_by=by)
    if as_json:
        print_json({"token": new.text, **_shown(new.record)})
        return
    typer.echo(new.text)
    say("The token is shown only this once.")


@app.command("list", example="jobtable tokens list")
def list_tokens(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the tokens, without their secrets."""
    with open_services(store) as services:
        found = sorted(services.tokens.list(), key=lambda token: token.created_at)
        rows = [_row(token, services.tokens.state_of(token)) for token in found]
    if as_json:
        print_json([_shown(token) for token in found])
    elif rows:
        print_table(rows)
    else:
        say("There are no tokens yet; create one with `jobtable tokens create --role read`.")


def _row(token: AccessToken, state: TokenState) -> dict[str, Any]:
    return {
        "token": token.token_id,
        "name": token.name,
        "role": token.role.value,
        "state": state,
        "created": token.created_at,
        "expires": token.expires_at,
    }


@app.command(example="jobtable tokens revoke 3f6c1a2b4d5e6f70 --yes")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="Id of the token, as `tokens list` shows it")],
    yes: Yes = False,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: it is rejected from now on."""
    confirm(f"Revoke token {token_id}? Its users lose access at once.", yes=yes)
    with open_services(store) as services:
        record = services.tokens.revoke(token_id)
    print_either(_shown(record), lambda: say(f"Token {record.token_id} revoked."), as_json=as_json)


def _shown(record: AccessToken) -> dict[str, Any]:
    """Return a record without the digest of its secret."""
    values: dict[str, Any] = to_json(record)
    return {name: value for name, value in values.items() if name != "secret_sha256"}

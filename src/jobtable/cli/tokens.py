"""`jobtable tokens`: make, list and revoke the tokens with which programs and people use the server."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobtable.access.entities import AccessToken, Role
from jobtable.access.tokens import TokenState
from jobtable.cli.confirmation import Yes, confirm
from jobtable.cli.groups import new_group
from jobtable.cli.options import AsJson, StoreUrl, User, duration, open_services, resolved
from jobtable.cli.output import print_json, print_table, say, to_json

app = new_group()


@app.command()
def create(
    role: Annotated[
        Role,
        typer.Option(help="read: get and query. full: write as well. worker: claim jobs and report, nothing else."),
    ],
    name: Annotated[str, typer.Option(help="What the token is for, to know it again.")] = "",
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="After which time it ends: 45m, 12h, 30d, 8w. Without it: never.")
    ] = None,
    store: StoreUrl = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it. It is shown this once: only a digest is kept.

    \b
    Example:
        jobtable tokens create --role read --expires 30d --name dashboards
    """
    expires_in = None if expires is None else duration(expires)
    with open_services(store, creates=True) as services:
        by = resolved(user=user).settings.user
        new = services.tokens.create(role, name=name, expires_in=expires_in, created_by=by)
    if as_json:
        print_json({"token": new.text, **_shown(new.record)})
        return
    typer.echo(new.text)
    say("This is the only time that the token is shown.")


@app.command("list")
def list_tokens(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the tokens, without their secrets.

    \b
    Example:
        jobtable tokens list
    """
    with open_services(store) as services:
        found = sorted(services.tokens.list(), key=lambda token: token.created_at)
        rows = [_row(token, services.tokens.state_of(token)) for token in found]
    if as_json:
        print_json([_shown(token) for token in found])
    elif rows:
        print_table(rows)
    else:
        say("There are no tokens yet; make one with `jobtable tokens create --role read`.")


def _row(token: AccessToken, state: TokenState) -> dict[str, Any]:
    return {
        "token": token.token_id,
        "name": token.name,
        "role": token.role.value,
        "state": state,
        "created": token.created_at,
        "expires": token.expires_at,
    }


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="The token's id, as `tokens list` shows it.")],
    yes: Yes = False,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a token useless from now on.

    \b
    Example:
        jobtable tokens revoke 3f6c1a2b4d5e6f70 --yes
    """
    confirm(f"Revoke token {token_id}? Who uses it is locked out at once.", yes=yes)
    with open_services(store) as services:
        record = services.tokens.revoke(token_id)
    if as_json:
        print_json(_shown(record))
    else:
        say(f"Token {record.token_id} is revoked.")


def _shown(record: AccessToken) -> dict[str, Any]:
    """A record without the digest of its secret."""
    values: dict[str, Any] = to_json(record)
    return {name: value for name, value in values.items() if name != "secret_sha256"}

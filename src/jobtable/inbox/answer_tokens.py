"""Tokens that answer one question: shown once, of which only a digest is stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Any

from jobtable.errors import TokenRefusedError


def random_token() -> str:
    """Return a token of 256 random bits."""
    return secrets.token_urlsafe(32)


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token, which is stored in its place."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def as_digest(value: Any) -> Any:
    """Hash a token that another program stored as plain text."""
    is_plain = isinstance(value, str) and not re.fullmatch("[0-9a-f]{64}", value)
    return token_digest(value) if is_plain else value


def check_token(token: str, digest: str | None, task_id: str) -> None:
    """Raise TokenRefusedError unless a token has the digest that is stored for a task."""
    if digest is None or not hmac.compare_digest(token_digest(token), digest):
        raise TokenRefusedError(f"the token does not belong to task {task_id}")

"""What services say when they do not answer: the fault, how long to wait, and a text without secrets or prompts."""

from __future__ import annotations

import email.utils
import logging
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus

from jobtable.assist.providers import Fault

MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, struct.error)
"""What reading an answer raises that has another form."""
_FAULTS = {
    HTTPStatus.UNAUTHORIZED: Fault.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN: Fault.UNAUTHORIZED,
    HTTPStatus.PAYMENT_REQUIRED: Fault.OUT_OF_CREDIT,
    HTTPStatus.REQUEST_TIMEOUT: Fault.TIMED_OUT,
    HTTPStatus.GATEWAY_TIMEOUT: Fault.TIMED_OUT,
    HTTPStatus.TOO_MANY_REQUESTS: Fault.RATE_LIMITED,
}
_WITHOUT_CREDIT = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_REPEATED = 20
"""A run of so many characters that a message shares with a request is taken from it."""
_MOST_TEXT = 400
_KEY_LIKE = re.compile(r"\b(?:(?:sk|gsk|xai)[-_]|AKIA|ASIA)[\w*.-]{6,}|[A-Za-z0-9+/=]{32,}", re.ASCII)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


def fault_of_status(status: int, code: str | None) -> Fault:
    """Return what an HTTP status means, with the code in the body where that says more."""
    if code in _WITHOUT_CREDIT:
        return Fault.OUT_OF_CREDIT
    if status in _FAULTS:
        return _FAULTS[HTTPStatus(status)]
    return Fault.UNAVAILABLE if status >= HTTPStatus.INTERNAL_SERVER_ERROR else Fault.REFUSED


def seconds_to_wait(headers: Mapping[str, str], clock: Callable[[], float]) -> float | None:
    """Return how long a service wants to be left alone, by whichever header says so; None if none does."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    pause = headers.get("retry-after")
    if pause is not None:
        seconds = _number(pause)
        return seconds if seconds is not None else _until(pause, clock)
    resets = [_reset(headers, each) for each in ("requests", "tokens")]
    return max((each for each in resets if each is not None), default=None)


def _reset(headers: Mapping[str, str], kind: str) -> float | None:
    """Return the seconds until one of the limits is met no more, unless something of it remains."""
    text = headers.get(f"x-ratelimit-reset-{kind}")
    if text is None or headers.get(f"x-ratelimit-remaining-{kind}", "0") != "0":
        return None
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        return _number(text)
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _until(date: str, clock: Callable[[], float]) -> float | None:
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - clock())
    except ValueError:
        return None


def keep_quiet(*clients: str) -> None:
    """Keep the lines of clients out of logs: those for debugging have prompts and tokens, and each request has one.

    A level that somebody has set for a client stays.
    """
    for name in clients:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)


def safe_text(message: str, *, secrets: Iterable[str], request: Iterable[str]) -> str:
    """Return what a service says, without secrets, and shortened; nothing of it if it repeats the request."""
    for secret in filter(None, secrets):
        message = message.replace(secret, "***")
    message = " ".join(_KEY_LIKE.sub("***", message).split()).removesuffix(".")
    runs = [message[at : at + _REPEATED] for at in range(len(message) - _REPEATED + 1)]
    texts = [" ".join(each.split()) for each in request]
    if any(run in text for text in texts for run in runs):
        return "(its message repeats the request and is left out)"
    return message if len(message) <= _MOST_TEXT else f"{message[:_MOST_TEXT]}…"

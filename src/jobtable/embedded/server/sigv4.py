"""AWS Signature Version 4: checks that requests are signed with the server's one key pair."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from urllib.parse import parse_qsl, quote

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import RequestError, request_error

_ALGORITHM = "AWS4-HMAC-SHA256"
_TERMINATOR = "aws4_request"
_DATE_FORMAT = "%Y%m%dT%H%M%SZ"
_ALLOWED_SKEW = timedelta(minutes=15)
_BETWEEN_PARAMETERS = re.compile(r"[,\s]+")


class SignatureCheck:
    """Refuses every request that is not signed with the key pair, in the order and the words of AWS."""

    def __init__(self, access_key: str, secret_key: str, *, service: str = "dynamodb", clock: Clock = SYSTEM_CLOCK):
        self._access_key = access_key
        self._secret_key = secret_key
        self._service = service
        self._clock = clock

    def verify(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Raise RequestError unless the signature is valid; header names are in lower case."""
        authorization = headers.get("authorization", "").strip()
        if not authorization.startswith("AWS4-"):
            raise request_error("MissingAuthenticationTokenException", "Request is missing Authentication Token")
        algorithm, _, rest = authorization.partition(" ")
        parameters = _parameters(rest, authorization)
        date_text = headers.get("x-amz-date") or headers.get("date", "")
        _require_parts(parameters, date_text, authorization)
        self._check_date(date_text)
        signed_headers = parameters["SignedHeaders"].split(";")
        _check_signed_headers(signed_headers, headers)
        if algorithm != _ALGORITHM:
            message = f"Unsupported AWS 'algorithm': '{algorithm}' (only {_ALGORITHM} for now). "
            raise _incomplete(message)
        scope = self._checked_scope(parameters["Credential"], date_text)
        key = _signing_key(self._secret_key, *scope)
        for host in _signed_hosts(headers.get("host", "")):
            canonical = _canonical_request(method, target, signed_headers, {**headers, "host": host}, body)
            to_sign = "\n".join((_ALGORITHM, date_text, "/".join(scope), hashlib.sha256(canonical).hexdigest()))
            expected = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
            if hmac.compare_digest(expected.encode(), parameters["Signature"].encode("utf-8", "replace")):
                return
        raise _invalid(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
            "Access Key and signing method. Consult the service documentation for details."
        )

    def _check_date(self, date_text: str) -> None:
        try:
            signed_at = datetime.strptime(date_text, _DATE_FORMAT).replace(tzinfo=UTC)
        except ValueError:
            message = f"Date must be in ISO-8601 'basic format'. Got '{date_text}'. "
            raise _incomplete(message + "See http://en.wikipedia.org/wiki/ISO_8601") from None
        now = datetime.fromtimestamp(self._clock.seconds(), UTC)
        now_text = now.strftime(_DATE_FORMAT)
        if signed_at < now - _ALLOWED_SKEW:
            limit = (now - _ALLOWED_SKEW).strftime(_DATE_FORMAT)
            raise _invalid(f"Signature expired: {date_text} is now earlier than {limit} ({now_text} - 15 min.)")
        if signed_at > now + _ALLOWED_SKEW:
            limit = (now + _ALLOWED_SKEW).strftime(_DATE_FORMAT)
            raise _invalid(f"Signature not yet current: {date_text} is still later than {limit} ({now_text} + 15 min.)")

    def _checked_scope(self, credential: str, date_text: str) -> tuple[str, str, str, str]:
        parts = credential.rstrip("/").split("/")
        if len(parts) != 5:
            raise _incomplete(
                "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
                f"got '{credential}'"
            )
        access_key, date, region, service, terminator = parts
        faults = ""
        if service != self._service:
            faults += f"Credential should be scoped to correct service: '{self._service}'. "
        if terminator != _TERMINATOR:
            faults += f"Credential should be scoped with a valid terminator: '{_TERMINATOR}', not '{terminator}'. "
        if date != date_text[:8]:
            faults += (
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
                f"'{date}' != '{date_text[:8]}', from '{date_text}'."
            )
        if faults:
            raise _invalid(faults)
        if not hmac.compare_digest(access_key.encode("utf-8", "replace"), self._access_key.encode()):
            message = "The security token included in the request is invalid."
            raise request_error("UnrecognizedClientException", message)
        return date, region, service, terminator


def _parameters(text: str, authorization: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for part in filter(None, _BETWEEN_PARAMETERS.split(text)):
        name, equals, value = part.partition("=")
        if not equals:
            raise _incomplete(
                f"'{part}' not a valid key=value pair (missing equal-sign) in Authorization header: '{authorization}'."
            )
        parameters[name] = value
    return parameters


def _require_parts(parameters: Mapping[str, str], date_text: str, authorization: str) -> None:
    missing = "".join(
        f"Authorization header requires '{name}' parameter. "
        for name in ("Credential", "Signature", "SignedHeaders")
        if not parameters.get(name)
    )
    if not date_text:
        missing += "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
    if missing:
        # Without the signature, a log of this message cannot be replayed.
        raise _incomplete(f"{missing}Authorization={authorization.partition('Signature=')[0]}")


def _check_signed_headers(signed_headers: list[str], headers: Mapping[str, str]) -> None:
    lowered = {name.lower() for name in signed_headers}
    if "host" not in lowered:
        raise _invalid("'Host' must be a 'SignedHeader' in the AWS Authorization.")
    if "x-amz-target" in headers and "x-amz-target" not in lowered:
        raise _invalid("'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.")


def _signed_hosts(host: str) -> list[str]:
    """Return the hosts that a client may have signed: some omit the port, which AWS's endpoints never have."""
    name, colon, port = host.rpartition(":")
    return [host, name] if colon and port.isdigit() else [host]


def _canonical_request(
    method: str, target: str, signed_headers: list[str], headers: Mapping[str, str], body: bytes
) -> bytes:
    path, _, query = target.partition("?")
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(query, True))
    # The path is encoded once more than it was sent, as all services but S3 want it.
    lines = [method, quote(path, safe="/-_.~"), "&".join(f"{name}={value}" for name, value in pairs)]
    for name in signed_headers:
        value = " ".join(headers.get(name.lower(), "").split())
        lines.append(f"{name.lower()}:{value}")
    lines += ["", ";".join(signed_headers), hashlib.sha256(body).hexdigest()]
    return "\n".join(lines).encode("latin-1", "replace")


@lru_cache(maxsize=16)
def _signing_key(secret_key: str, date: str, region: str, service: str, terminator: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in (date, region, service, terminator):
        key = hmac.new(key, part.encode("utf-8", "replace"), hashlib.sha256).digest()
    return key


def _incomplete(message: str) -> RequestError:
    return request_error("IncompleteSignatureException", message)


def _invalid(message: str) -> RequestError:
    return request_error("InvalidSignatureException", message)

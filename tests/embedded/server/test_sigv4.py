"""Signatures: what botocore signs is accepted, and everything else is refused with AWS's codes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from jobtable.clock import SystemClock
from jobtable.embedded.server import SignatureCheck
from jobtable.errors import RequestError

ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "secret/with+signs"
CHECK = SignatureCheck(ACCESS_KEY, SECRET_KEY)


class ShiftedClock(SystemClock):
    """The machine's clock, off by some minutes."""

    def __init__(self, minutes: float) -> None:
        super().__init__()
        self._shift = timedelta(minutes=minutes).total_seconds()

    def seconds(self) -> float:
        return super().seconds() + self._shift


def signed(
    body: bytes = b"{}",
    *,
    url: str = "http://localhost:8000/",
    access_key: str = ACCESS_KEY,
    secret_key: str = SECRET_KEY,
    service: str = "dynamodb",
    headers: dict[str, str] | None = None,
    token: str | None = None,
) -> dict[str, str]:
    """The headers of a request as botocore signs it, names in lower case."""
    given_headers = {"X-Amz-Target": "DynamoDB_20120810.GetItem", "Host": "localhost:8000", **(headers or {})}
    request = AWSRequest("POST", url, headers=given_headers, data=body)
    SigV4Auth(Credentials(access_key, secret_key, token), service, "eu-west-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


def code_of(headers: dict[str, str], body: bytes = b"{}", check: SignatureCheck = CHECK, target: str = "/") -> str:
    with pytest.raises(RequestError) as refused:
        check.verify("POST", target, headers, body)
    return refused.value.code


@given(
    st.binary(max_size=200),
    st.text("abc XYZ-_.~!'()*\"$", max_size=20).map(str.strip),
    st.dictionaries(st.text("ab-_~ é/+", min_size=1, max_size=3), st.text("ab =&%é/+", max_size=3), max_size=3),
)
def test_what_botocore_signs_is_accepted(body: bytes, value: str, query: dict[str, str]) -> None:
    target = "/" + (f"?{urlencode(query, quote_via=quote)}" if query else "")
    headers = signed(body, url=f"http://localhost:8000{target}", headers={"X-Extra": value}, token="session")
    CHECK.verify("POST", target, headers, body)


def test_another_body_header_method_or_path_breaks_the_signature() -> None:
    headers = signed()
    CHECK.verify("POST", "/", headers, b"{}")
    invalid = "InvalidSignatureException"
    assert code_of(headers, b"{ }") == invalid
    assert code_of(headers | {"x-amz-target": "DynamoDB_20120810.DeleteTable"}) == invalid
    assert code_of(headers, target="/other") == invalid
    assert code_of(signed(secret_key="wrong")) == invalid
    assert code_of(headers | {"authorization": headers["authorization"][:-1] + "é"}) == invalid


@pytest.mark.parametrize("between", [",", " ", ",\t"])
def test_parameters_stand_apart_by_commas_or_spaces(between: str) -> None:
    headers = signed()
    CHECK.verify("POST", "/", headers | {"authorization": headers["authorization"].replace(", ", between)}, b"{}")


def test_an_unknown_key_is_an_unrecognized_client() -> None:
    assert code_of(signed(access_key="AKIDOTHER")) == "UnrecognizedClientException"


@pytest.mark.parametrize("authorization", [None, "", "Basic YWJj", "Bearer x"])
def test_a_request_without_a_signature_misses_its_token(authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    assert code_of(headers) == "MissingAuthenticationTokenException"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Credential=", "Credentials="),
        ("Signature=", "Sig="),
        ("SignedHeaders=", "Signed="),
        ("AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA512 "),
        ("/aws4_request", ""),
        ("SignedHeaders=", "SignedHeaders,Other="),
    ],
)
def test_a_signature_that_lacks_a_part_is_incomplete(old: str, new: str) -> None:
    headers = signed()
    assert code_of(headers | {"authorization": headers["authorization"].replace(old, new)}) == (
        "IncompleteSignatureException"
    )


@pytest.mark.parametrize(
    ("old", "new"), [("/dynamodb/", "/s3/"), ("/aws4_request", "/aws5"), ("host;", ""), ("x-amz-target", "host")]
)
def test_a_signature_for_something_else_is_invalid(old: str, new: str) -> None:
    headers = signed()
    assert code_of(headers | {"authorization": headers["authorization"].replace(old, new)}) == (
        "InvalidSignatureException"
    )


def test_a_date_is_needed_and_must_be_a_date() -> None:
    headers = signed()
    without = {name: value for name, value in headers.items() if name != "x-amz-date"}
    assert code_of(without) == "IncompleteSignatureException"
    assert code_of(headers | {"x-amz-date": "yesterday"}) == "IncompleteSignatureException"
    tomorrow = datetime.now(UTC) + timedelta(minutes=2)
    assert code_of(headers | {"x-amz-date": tomorrow.strftime("%Y%m%dT%H%M%SZ")}) == "InvalidSignatureException"


@pytest.mark.parametrize(("minutes", "accepted"), [(-16, False), (-14, True), (14, True), (16, False)])
def test_clocks_may_differ_by_fifteen_minutes(minutes: float, accepted: bool) -> None:
    check = SignatureCheck(ACCESS_KEY, SECRET_KEY, clock=ShiftedClock(minutes))
    headers = signed()
    if accepted:
        check.verify("POST", "/", headers, b"{}")
    else:
        assert code_of(headers, check=check) == "InvalidSignatureException"


def test_the_port_may_be_left_out_of_the_signed_host() -> None:
    headers = signed(headers={"Host": "localhost"}) | {"host": "localhost:8000"}
    CHECK.verify("POST", "/", headers, b"{}")
    assert code_of(headers | {"host": "elsewhere:8000"}) == "InvalidSignatureException"


def test_another_service_can_be_checked() -> None:
    SignatureCheck(ACCESS_KEY, SECRET_KEY, service="s3").verify("POST", "/", signed(service="s3"), b"{}")

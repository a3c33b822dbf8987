"""What keeps others out: tokens, hosts, origins, limits and headers."""

from __future__ import annotations

import html
import re
import socket
from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.errors import BackendUnavailable, SettingsError
from jobtable.testing import FakeClock
from jobtable.web.guard import COOKIE, is_loopback
from jobtable.web.listening import bind

Serve = Callable[..., Served]


# --- tokens ---------------------------------------------------------------------------------------------------------


def test_a_token_is_demanded_as_soon_as_others_can_reach_the_server(serve: Serve) -> None:
    assert serve(host="0.0.0.0").client().get("/api/v1/jobs").status_code == 401
    assert serve(host="127.0.0.1", require_token=True).client().get("/api/v1/jobs").status_code == 401
    assert serve(host="127.0.0.1").client().get("/api/v1/jobs").status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_loopback_is_this_machine_only(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "localhost.example.org", ""])
def test_other_addresses_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_what_is_no_valid_token_opens_nothing(open_server: Served) -> None:
    tokens = open_server.app.state.tokens
    good = tokens.create(Role.FULL)
    revoked = tokens.create(Role.FULL)
    tokens.revoke(revoked.record.token_id)
    expired = tokens.create(Role.FULL, expires_in=timedelta(microseconds=1))
    other_secret = good.text[:-1] + ("A" if good.text[-1] != "A" else "B")
    for text in ("x", "jt_", revoked.text, expired.text, other_secret, good.text.upper(), good.text + "x"):
        with open_server.client(Authorization=f"Bearer {text}") as client:
            assert client.get("/api/v1/jobs").status_code == 401, text
    assert open_server.client(Authorization=f"bearer {good.text}").get("/api/v1/jobs").status_code == 200


def test_a_token_is_shown_once_and_its_secret_is_not_stored(open_server: Served) -> None:
    client = open_server.client()
    made = client.post("/api/v1/tokens", json={"role": "read", "name": "n", "expires_in_seconds": 60}).json()
    listed = next(t for t in client.get("/api/v1/tokens").json()["items"] if t["token_id"] == made["token_id"])
    assert listed == {name: value for name, value in made.items() if name != "token"}
    items = client.get("/api/v1/tables/jobtable/items", params={"partition": f"TOKEN#{made['token_id']}"}).text
    secret = made["token"].split("_", 2)[2]  # which may have this sign itself
    assert secret not in items
    assert client.delete(f"/api/v1/tokens/{made['token_id']}").json()["revoked_at"]
    assert open_server.client(Authorization=f"Bearer {made['token']}").get("/api/v1/me").status_code == 401


def test_browsers_log_in_and_out(guarded: Served) -> None:
    browser = guarded.client(Accept="text/html", Origin=guarded.url)
    page = browser.get("/jobs")
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2Fjobs")
    assert browser.post("/login", data={"token": "wrong", "next": "/jobs"}).status_code == 401
    entered = browser.post("/login", data={"token": guarded.token(Role.READ), "next": "/jobs"})
    assert (entered.status_code, entered.headers["location"]) == (303, "/jobs")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert browser.get("/jobs").status_code == 200
    assert browser.post("/api/v1/queues", json={"queue_name": "q"}).status_code == 403
    browser.post("/logout")
    assert browser.get("/jobs").status_code == 303


def test_the_login_leads_to_what_was_asked_for(guarded: Served) -> None:
    browser = guarded.client(Accept="text/html", Origin=guarded.url)
    for asked in ("/jobs?status=FAILED&tag=a%26b&text=gr%C3%BCn", "/jobs/a%2Fb%20gr%C3%BCn"):
        login = browser.get(asked).headers["location"]
        shown = re.search(r'name="next" value="([^"]*)"', browser.get(login).text)
        assert shown
        target = html.unescape(shown[1])
        entered = browser.post("/login", data={"token": guarded.token(Role.READ), "next": target})
        assert entered.headers["location"] == asked
        browser.cookies.clear()


def test_a_token_that_opens_no_page_logs_nobody_in(guarded: Served) -> None:
    browser = guarded.client(Accept="text/html", Origin=guarded.url)
    refused = browser.post("/login", data={"token": guarded.token(Role.WORKER), "next": "/"})
    assert refused.status_code == 403
    assert "Tokens with the role worker cannot open pages" in refused.text
    assert "set-cookie" not in refused.headers


def test_pages_of_errors_have_the_menu_for_those_who_are_known(guarded: Served) -> None:
    for path, status in (("/nowhere", 404), ("/tokens", 403), ("/jobs/none", 404)):
        page = guarded.client(Role.READ, Accept="text/html").get(path)
        assert (page.status_code, 'aria-label="Main"' in page.text) == (status, True), path
    assert 'aria-label="Main"' not in guarded.client(Accept="text/html").get("/nowhere").text


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/日"]
)
def test_the_login_leads_nowhere_else(guarded: Served, target: str) -> None:
    browser = guarded.client(Origin=guarded.url)
    entered = browser.post("/login", data={"token": guarded.token(Role.READ), "next": target})
    assert entered.headers["location"] == "/"


def test_who_may_only_read_reads_no_tokens_and_no_answers_of_others(guarded: Served) -> None:
    reader, full = guarded.client(Role.READ), guarded.client(Role.FULL)
    token_id = guarded.app.state.tokens.create(Role.FULL).record.token_id
    full.post("/api/v1/queues", json={"queue_name": "q"}, headers={"Idempotency-Key": "k"})
    at = "/api/v1/tables/jobtable/items"
    for asked in (
        {"index": "GSITYPE", "partition": "ACCESS_TOKEN"},
        {"index": "GSITYPE", "partition": "ANSWERED_REQUEST"},
        {"partition": f"TOKEN#{token_id}"},
        {"partition": f"REQUEST#{token_id}#k"},
    ):
        assert reader.get(at, params=asked).status_code == 403, asked
        assert reader.get("/tables/jobtable", params=asked).status_code == 403, asked
        assert full.get(at, params=asked).status_code == 200, asked
    assert "ACCESS_TOKEN" in full.get("/tables/jobtable", headers={"Accept": "text/html"}).text
    links = reader.get("/tables/jobtable", headers={"Accept": "text/html"}).text
    assert "partition=JOB" in links
    assert "partition=ACCESS_TOKEN" not in links


def test_who_may_only_read_gets_no_tokens_by_requests_of_the_store_either(guarded: Served) -> None:
    reader, full = guarded.client(Role.READ), guarded.client(Role.FULL)
    token = {
        "PK": {"S": f"TOKEN#{guarded.app.state.tokens.create(Role.FULL).record.token_id}"},
        "SK": {"S": "TOKEN"},
    }
    by_type = {
        "TableName": "jobtable",
        "IndexName": "GSITYPE",
        "KeyConditionExpression": "#t = :t",
        "ProjectionExpression": "secret_sha256",
        "ExpressionAttributeNames": {"#t": "TYPE"},
        "ExpressionAttributeValues": {":t": {"S": "ACCESS_TOKEN"}},
    }
    by_key = {
        "TableName": "jobtable",
        "KeyConditionExpression": "PK = :p",
        "ExpressionAttributeValues": {":p": token["PK"]},
    }
    by_older_key = {
        "TableName": "jobtable",
        "KeyConditions": {"PK": {"AttributeValueList": [token["PK"]], "ComparisonOperator": "EQ"}},
        "AttributesToGet": ["secret_sha256"],
    }
    for operation, request in (
        ("Query", by_type),
        ("Query", by_key),
        ("Query", by_older_key),
        ("GetItem", {"TableName": "jobtable", "Key": token, "ProjectionExpression": "secret_sha256"}),
        ("BatchGetItem", {"RequestItems": {"jobtable": {"Keys": [token]}}}),
        ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "jobtable", "Key": token}}]}),
    ):
        assert reader.post(f"/api/v1/store/{operation}", json=request).status_code == 403, request
        assert "secret_sha256" in full.post(f"/api/v1/store/{operation}", json=request).text, request


# --- hosts and origins ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1"])
def test_a_foreign_host_is_refused(open_server: Served, host: str) -> None:
    assert open_server.client(Host=host).get("/api/v1/jobs").status_code == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:1", "[::1]:8765"])
def test_the_machine_itself_is_known_by_its_names(open_server: Served, host: str) -> None:
    assert open_server.client(Host=host).get("/api/v1/jobs").status_code == 200


def test_other_names_can_be_set(serve: Serve) -> None:
    served = serve(host="0.0.0.0", host_names=("jobs.example.org",))
    for host, status in (("jobs.example.org", 401), ("10.1.2.3", 401), ("evil.example", 403)):
        assert served.client(Host=host).get("/api/v1/jobs").status_code == status


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://", "x", "http://["])
def test_a_foreign_page_writes_nothing(open_server: Served, origin: str) -> None:
    client = open_server.client(Origin=origin)
    for method, path in (("POST", "/api/v1/queues"), ("DELETE", "/api/v1/jobs/x"), ("PUT", "/api/v1/labels")):
        assert client.request(method, path, json={}).status_code == 403
    assert client.get("/api/v1/jobs").status_code == 200
    assert "access-control-allow-origin" not in client.get("/api/v1/jobs").headers


def test_the_own_page_writes(open_server: Served) -> None:
    client = open_server.client(Origin=open_server.url)
    assert client.post("/api/v1/queues", json={"queue_name": "own"}).status_code == 201


def test_a_cookie_without_an_origin_writes_nothing(guarded: Served) -> None:
    client = guarded.client(Cookie=f"{COOKIE}={guarded.token(Role.FULL)}")
    assert client.get("/api/v1/jobs").status_code == 200
    assert client.post("/api/v1/queues", json={"queue_name": "q"}).status_code == 403


# --- limits ---------------------------------------------------------------------------------------------------------


def limited(serve: Serve) -> Served:
    """A server that takes five requests a minute, of which none passes: on a busy machine it would, and allow more."""
    served = serve(requests_per_minute=5, require_token=True)
    served.app.state.guard._rate._clock = FakeClock()
    return served


def test_too_many_requests_are_refused_for_each_caller_by_itself(serve: Serve) -> None:
    served = limited(serve)
    one, other = served.client(Role.READ), served.client(Role.READ)
    statuses = [one.get("/api/v1/me").status_code for _ in range(7)]
    assert statuses[:5] == [200] * 5
    assert statuses[-1] == 429
    refused = one.get("/api/v1/me")
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["content-type"] == "application/problem+json"
    assert other.get("/api/v1/me").status_code == 200


def test_guessing_tokens_is_limited_whatever_is_guessed(serve: Serve) -> None:
    served = limited(serve)
    statuses = [served.client(Authorization=f"Bearer {n}").get("/api/v1/me").status_code for n in range(8)]
    assert statuses[-1] == 429
    form = [served.client().post("/login", data={"token": "x"}).status_code for _ in range(3)]
    assert form == [429] * 3


def test_a_body_that_is_too_large_is_refused_whether_its_length_is_told_or_not(serve: Serve) -> None:
    client = serve(most_request_bytes=2000).client()
    told = client.post("/api/v1/queues", content=b"x" * 2001)
    assert (told.status_code, told.json()["title"]) == (413, "Content Too Large")
    untold = client.post("/api/v1/queues", content=(b"x" * 500 for _ in range(9)))
    assert untold.status_code == 413
    assert client.post("/api/v1/queues", json={"queue_name": "q"}).status_code == 201


def test_of_those_whom_nobody_knows_only_a_short_form_is_read(guarded: Served) -> None:
    client = guarded.client(Origin=guarded.url)
    assert client.post("/login", data={"next": "/" + "x" * 60_000, "token": "wrong"}).status_code == 401
    assert client.post("/login", data={"next": "/" + "x" * 70_000, "token": "wrong"}).status_code == 413


def test_methods_that_a_caller_makes_up_are_counted_as_one(open_server: Served) -> None:
    client = open_server.client()
    for method in ("FIRST", "SECOND", "X" * 10_000):
        assert client.request(method, "/healthz").status_code == 405
    counted = client.get("/metrics").text
    assert 'method="other",route="health.check_health",status="405"} 3' in counted
    assert "FIRST" not in counted


def test_who_leaves_before_the_body_has_come_is_no_fault_of_the_server(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    served = serve()
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2]))) as leaving:
        leaving.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    counted = None
    while counted is None:
        counted = re.search('route="api.jobs.submit_job",status="(.+?)"', served.client().get("/metrics").text)
    assert counted[1] == "400"
    assert caplog.text == ""


# --- headers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/api/v1/jobs", "/api/v1/jobs/none", "/nowhere", "/healthz"])
def test_every_answer_has_the_headers(open_server: Served, path: str) -> None:
    headers = open_server.client(Accept="text/html").get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "unsafe-eval" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers
    assert len(headers["x-request-id"]) == 32


def test_a_good_request_id_is_kept_and_a_bad_one_is_not(open_server: Served) -> None:
    client = open_server.client()
    for given, is_kept in (("a-1.B", True), ("a b", False), ("x" * 101, False)):
        answer = client.get("/healthz", headers={"X-Request-Id": given})
        assert (answer.headers["x-request-id"] == given) is is_kept


def test_objects_come_with_headers_that_keep_them_from_running(open_server: Served) -> None:
    objects = open_server.services.objects
    for name in ("page.html", "drawing.svg", "data.xml", "script.js", "paper.pdf", "unknown"):
        objects.put(f"x/{name}", b"<script>alert(1)</script>")
        answer = open_server.client().get(f"/api/v1/objects/x/{name}")
        assert answer.content == b"<script>alert(1)</script>"
        assert answer.headers["content-disposition"].startswith("attachment"), name
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    objects.put("x/picture.png", b"png")
    shown = open_server.client().get("/api/v1/objects/x/picture.png")
    assert shown.headers["content-disposition"].startswith("inline")
    saved = open_server.client().get("/api/v1/objects/x/picture.png", params={"download": True})
    assert saved.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "key", ["..%2f..%2fetc%2fpasswd", "%2e%2e/x", "x//y", ".incoming/x", "x%00y", "%2Fetc%2Fpasswd"]
)
def test_no_object_key_leaves_the_store(open_server: Served, key: str) -> None:
    assert open_server.client().get(f"/api/v1/objects/{key}").status_code in (400, 404)


def test_a_port_that_is_taken_is_one_clear_error(open_server: Served) -> None:
    port = httpx.URL(open_server.url).port or 0
    with pytest.raises(SettingsError, match=rf"cannot listen on 127.0.0.1:{port}: Address already in use; choose"):
        bind("127.0.0.1", port)
    with pytest.raises(SettingsError, match=r"cannot listen on no\.such\.host\.invalid:1"):
        bind("no.such.host.invalid", 1)
    bind("127.0.0.1", 0).close()


def test_an_old_cookie_does_not_lock_anyone_out_of_an_open_server(open_server: Served) -> None:
    assert open_server.client(Cookie=f"{COOKIE}=old").get("/api/v1/jobs").status_code == 200


def test_what_nobody_has_foreseen_is_an_answer_like_any_other(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served = serve()

    def fail() -> None:
        raise RuntimeError("the password is 1234")

    monkeypatch.setattr(served.services.engine.queries, "list_queues", fail)
    answer = served.client().get("/api/v1/queues")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert "password" not in answer.text
    assert "the password is 1234" in caplog.text
    page = served.client(Accept="text/html").get("/queues")
    assert page.status_code == 500
    assert "Internal Server Error" in page.text


def test_what_a_store_says_of_itself_is_told_to_those_who_are_known(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served = serve(require_token=True)
    known = served.client(Role.READ)

    def fail(*_: object, **__: object) -> None:
        raise BackendUnavailable("http://10.0.0.5 cannot be reached")

    monkeypatch.setattr(served.services.store, "query", fail)
    assert "10.0.0.5" in known.get("/api/v1/queues").json()["detail"]
    anybody = served.client().get("/healthz")
    assert (anybody.status_code, anybody.json()["type"]) == (503, "about:blank")
    assert "10.0.0.5" not in anybody.text
    assert "10.0.0.5" in caplog.messages[-1]
    assert "Traceback" not in caplog.text

"""A server from elsewhere: what can be read and changed through it, by Python and on the command line."""

from __future__ import annotations

import http.server
import io
import json
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import Served
from typer.testing import CliRunner, Result

from jobtable.access.entities import Role
from jobtable.app import ServerServices, Services
from jobtable.cli.main import app
from jobtable.cli.output import ExitCode
from jobtable.errors import (
    AccessDenied,
    AlreadyExistsError,
    BackendUnavailable,
    ConflictError,
    ConnectionUrlError,
    JobStateError,
    JobtableError,
    NotFoundError,
    ObjectNotFoundError,
    ObjectStoreError,
    RequestRefused,
    SettingsError,
    Throttled,
)
from jobtable.jobs.read.listing import JobFilter, list_jobs, newest_first
from jobtable.jobs.read.logs import JobLogs
from jobtable.jobs.stored.entities import Job, JobLog
from jobtable.jobs.stored.field_types import Status
from jobtable.jobs.submit.definition import DependsOn, EdgeCondition, NewJob, RetryPolicy
from jobtable.objects import object_key
from jobtable.remote.server_requests import Server


def test_jobs_are_submitted_read_and_changed(served: Served, remote: Services) -> None:
    first = remote.jobs.submit(NewJob(name="first", task="m:f", params={"a": [1, None]}, tags=frozenset({"x"})))
    edge = DependsOn(first.job_id, condition=EdgeCondition.FINISHED)
    retry = RetryPolicy(first_delay_seconds=5)
    job = remote.jobs.submit(NewJob(name="second", task="m:f", depends_on=(edge,), retry=retry, max_attempts=3))
    assert remote.jobs.queries.get_job(job.job_id) == served.services.engine.queries.get_job(job.job_id) == job
    assert job.definition.retry == retry
    assert first.created_by == "full"
    assert [each.job_id for each in remote.jobs.queries.list_jobs_by_status(Status.PENDING)] == [
        first.job_id,
        job.job_id,
    ]
    assert remote.store.batch_get([Job.key(job_id=job.job_id), Job.key(job_id="none")]) == [job, None]
    assert remote.store.get_together(Job.key(job_id=job.job_id)) == (job,)
    assert remote.jobs.prioritise(first.job_id, 900).priority == 900
    assert remote.jobs.cancel(first.job_id, message="no more").message == "no more"
    assert remote.jobs.retry(first.job_id).status is Status.PENDING
    assert remote.jobs.stop(first.job_id).status is Status.STOPPED
    with pytest.raises(JobStateError, match="already STOPPED"):
        remote.jobs.cancel(first.job_id)
    remote.jobs.cancel(job.job_id)
    assert remote.jobs.delete(first.job_id) > 3
    with pytest.raises(NotFoundError):
        remote.jobs.queries.get_job(first.job_id)
    with pytest.raises(NotFoundError):
        remote.jobs.cancel("../queues")


def test_the_children_of_a_job_are_listed_from_afar(remote: Services) -> None:
    group = remote.jobs.open_group(NewJob(name="night"))
    made = remote.jobs.submit_many(NewJob(name=n, task="m:f", parent_job_id=group.job_id) for n in ("a", "b", "c"))
    remote.jobs.submit(NewJob(name="d", task="m:f", parent_job_id=made[0].job_id))
    remote.jobs.cancel(made[1].job_id)
    wanted = JobFilter(parent=group.job_id)
    first = list_jobs(remote.store, wanted, cursor=None, limit=2)
    rest = list_jobs(remote.store, wanted, cursor=first.cursor, limit=2)
    assert [job.name for job in (*first.items, *rest.items)] == ["c", "b", "a"]
    assert rest.cursor is None
    assert [job.name for job in remote.jobs.queries.list_children(group.job_id)] == ["a", "b", "c"]
    waiting = JobFilter(parent=group.job_id, status=Status.PENDING)
    assert [job.name for job in newest_first(remote.store, waiting, chunk=1)] == ["c", "a"]
    with pytest.raises(NotFoundError, match="no job none"):
        list_jobs(remote.store, JobFilter(parent="none"), cursor=None, limit=2)


def test_many_jobs_are_submitted_in_few_requests(remote: Services) -> None:
    jobs = remote.jobs.submit_many(NewJob(name=str(number), task="m:f", queue="many") for number in range(501))
    assert [job.name for job in jobs] == [str(number) for number in range(501)]
    assert remote.jobs.queries.get_queue("many").job_count == 501


def test_many_jobs_are_acted_on_in_few_requests(
    served: Served, remote: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = remote.jobs.submit_many(NewJob(name=str(number), task="m:f", queue="acted on") for number in range(101))
    ids = [job.job_id for job in made]
    asked, write = list[str](), Server.write

    def note(server: Server, method: str, path: str, *told: Any, **more: Any) -> Any:
        asked.append(path)
        return write(server, method, path, *told, **more)

    monkeypatch.setattr(Server, "write", note)
    cancelled = list(remote.jobs.many.cancel([*ids, "none"], message="enough"))
    assert asked == ["/job-batches/cancel"] * 3
    assert [each.job_id for each in cancelled] == [*ids, "none"]
    assert {each.given.message for each in cancelled if each.given is not None} == {"enough"}
    assert [type(each.error) for each in cancelled[-2:]] == [type(None), NotFoundError]
    (stopped,) = remote.jobs.many.stop(ids[:1])
    assert isinstance(stopped.error, JobStateError)
    (retried,) = remote.jobs.many.retry(ids[:1])
    assert retried.given == served.services.engine.queries.get_job(ids[0])
    waiting, deleted = remote.jobs.many.delete(ids[:2])
    assert (type(waiting.error), deleted.error) == (JobStateError, None)
    assert deleted.given is not None
    assert deleted.given > 1


def test_behind_a_server_that_does_not_answer_no_job_is_tried(
    remote: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def fail(_: Server, __: str, path: str, *___: Any, **____: Any) -> None:
        asked.append(path)
        raise BackendUnavailable("no answer")

    monkeypatch.setattr(Server, "write", fail)
    told = list(remote.jobs.many.cancel(map(str, range(150))))
    assert asked == ["/job-batches/cancel"]
    assert len(told) == 150
    assert {str(each.error) for each in told} == {"InternalServerError: no answer"}


def test_queues_are_created_and_changed(remote: Services) -> None:
    jobs = remote.jobs
    assert jobs.create_queue("a b?", max_concurrent_jobs=3).max_concurrent_jobs == 3
    with pytest.raises(AlreadyExistsError):
        jobs.create_queue("a b?")
    assert jobs.change_queue("a b?", priority=7).priority == 7
    assert jobs.pause_queue("a b?").paused_at is not None
    assert jobs.resume_queue("a b?").paused_at is None
    waiting = jobs.submit(NewJob(name="one", task="m:f", queue="a b?"))
    with pytest.raises(ConflictError, match="1 job waits or runs in it"):
        jobs.delete_queue("a b?")
    jobs.cancel(waiting.job_id)
    jobs.delete_queue("a b?")
    with pytest.raises(NotFoundError, match="there is no queue a b"):
        jobs.delete_queue("a b?")


def test_objects_are_read(served: Served, remote: Services) -> None:
    key = object_key("jobs", "1", "a b%.txt")
    served.services.objects.put(key, b"0123456789" * 1000)
    assert remote.objects.get(key) == b"0123456789" * 1000
    assert remote.objects.get_range(key, 9995, 100) == b"56789"
    assert remote.objects.get_range(key, 3, 4) == b"3456"
    assert remote.objects.get_range(key, 3, 0) == b""
    assert remote.objects.get_range(key, 10_000, 4) == b""
    with pytest.raises(ObjectNotFoundError, match="jobs/none"):
        remote.objects.get("jobs/none")


def test_the_log_of_a_job_is_searched(served: Served, remote: Services) -> None:
    jobs = served.services.engine
    job = jobs.submit(NewJob(name="talks", task="m:f", queue="talks"))
    logs = JobLogs(remote.store, remote.objects)
    assert list(logs.search(job.job_id, "needle")) == []
    (lease,) = jobs.claim("talks", limit=1, instance_id="w", lease_seconds=60)
    text = jobs.recording.run_text(lease)
    text.put_part(0, b"a\nneedle 1\n", 2)
    assert [line.number for line in logs.search(job.job_id, "needle")] == [2]
    text.put_whole(io.BytesIO(b"a\nneedle 1\nb\nneedle 2"), 4, 1)
    assert [line.number for line in logs.search(job.job_id, "needle")] == [2, 4]


def test_what_needs_the_store_itself_says_so(remote: Services) -> None:
    with pytest.raises(RequestRefused, match="needs the store itself"):
        remote.store.put(JobLog(job_id="1", timestamp=remote.store.clock.now(), message="x"))
    with pytest.raises(SettingsError, match="needs the store itself, not the server"):
        remote.engine.claim("claimed", limit=1, instance_id="i", lease_seconds=30)
    for use in (
        lambda: remote.objects.put("jobs/1", b""),
        lambda: remote.objects.head("jobs/1"),
        lambda: remote.objects.delete("jobs/1"),
        remote.objects.list,
        lambda: remote.objects.remove_unfinished(remote.store.clock.now()),
    ):
        with pytest.raises(ObjectStoreError, match="object store itself"):
            use()


def test_a_reader_reads_and_changes_nothing(served: Served) -> None:
    with ServerServices(served.url, served.token(Role.READ)) as reader:
        list(reader.jobs.queries.list_queues())
        with pytest.raises(AccessDenied, match="role read may not do this"):
            reader.jobs.submit(NewJob(name="a", task="m:f"))


@pytest.mark.parametrize("url", ["127.0.0.1:80", "http://", "http://h:99999", "http://h:x", "http://[::1", "ftp://h"])
def test_what_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(ConnectionUrlError, match="is not the address of a server; write http://HOST:PORT"):
        Server(url)


@pytest.mark.parametrize("url", ["http://h:8765/api/v1", "http://h:8765/api/v1/"])
def test_the_address_of_the_api_is_not_taken_for_the_servers(url: str) -> None:
    with pytest.raises(ConnectionUrlError, match=r"is the address of an API; write http://h:8765$"):
        Server(url)


@pytest.mark.parametrize("user", ["me:hidden", "hidden", "me:hid/den"])
def test_a_name_in_the_address_is_refused_and_not_told(user: str) -> None:
    with pytest.raises(ConnectionUrlError) as refused:
        Server(f"https://{user}@example.org:81")
    assert "hid" not in str(refused.value)


def test_a_name_in_the_address_is_told_to_be_a_token() -> None:
    with pytest.raises(ConnectionUrlError, match=r"write https://example\.org:81 and set JOBTABLE_TOKEN"):
        Server("https://me:hidden@example.org:81")


@pytest.mark.parametrize("token", ["secret\n", "sécret", "\u65e5secret"])
def test_what_can_be_no_token_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(ConnectionUrlError, match="has invalid characters") as refused:
        Server("http://127.0.0.1:80", token)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_a_valid_token_nothing_is_read(served: Served, token: str | None) -> None:
    with pytest.raises(AccessDenied, match="needs a valid token"):
        ServerServices(served.url, token)


@pytest.mark.parametrize(
    "request_",
    [
        {"TableName": "someone-elses", "Key": {}},
        {"RequestItems": {"someone-elses": {"Keys": []}}},
        {"TransactItems": [{"Get": {"TableName": "someone-elses"}}]},
        {"TableName": ["jobtable"]},
        {"TransactItems": [{"Get": {}}, 3, {"Get": 4}]},
        {},
    ],
)
def test_no_table_but_the_systems_own_can_be_read(served: Served, request_: dict[str, Any]) -> None:
    server = Server(served.url, served.token(Role.READ))
    for operation in ("GetItem", "BatchGetItem", "TransactGetItems", "Query"):
        with pytest.raises(RequestRefused):
            server.read("POST", f"/store/{operation}", request_)
    server.close()


def test_a_table_that_is_not_deployed_is_not_found(served: Served) -> None:
    server = Server(served.url, served.token(Role.READ))
    with pytest.raises(NotFoundError):
        server.read(
            "POST", "/store/GetItem", {"TableName": "jobtable-legacy", "Key": {"PK": {"S": "a"}, "SK": {"S": "b"}}}
        )
    server.close()


@pytest.mark.parametrize("operation", ["PutItem", "Scan", "DeleteTable", "TransactWriteItems", "x"])
def test_no_operation_that_writes_is_taken(served: Served, operation: str) -> None:
    server = Server(served.url, served.token(Role.FULL))
    with pytest.raises(RequestRefused):
        server.read("POST", f"/store/{operation}", {"TableName": "jobtable"})
    server.close()


@pytest.mark.parametrize("url", ["localhost:1", "ftp://x", "http://", "http://x?y=1", "file:x.db"])
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ConnectionUrlError, match="http://HOST:PORT"):
        Server(url)


def test_a_server_that_is_not_there_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(BackendUnavailable, match=rf"http://127.0.0.1:{port} cannot be reached: Connection refused"):
        ServerServices(f"http://127.0.0.1:{port}", None)


class _Odd(http.server.BaseHTTPRequestHandler):
    """Answers what each path asks for, and closes the connection although it was told to keep it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        status, _, text = self.path.removeprefix("/api/v1/").partition("/")
        content = text.replace("_", " ").encode()
        self.send_response(int(status))
        if content == b"cut":
            self.send_header("Content-Length", "1000")
        elif content == b"torn":
            self.send_header("Transfer-Encoding", "chunked")
            content = b"3e8\r\ntorn"
        else:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - the name in the base class


@pytest.fixture
def odd() -> Iterator[Server]:
    """A server that is none of ours."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Odd) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield Server(f"http://127.0.0.1:{listening.server_port}")
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "kind", "said"),
    [
        ("/200/<html>", BackendUnavailable, "does not answer as a Jobtable server: HTTP 200, '<html>'"),
        ("/307/", ConnectionUrlError, "redirects to another address; use that address"),
        ("/301/<html>", ConnectionUrlError, "redirects to another address"),
        ("/502/Bad_gateway", BackendUnavailable, "does not answer as a Jobtable server"),
        ('/408/{"detail":"too slow"}', BackendUnavailable, "too slow"),
        ('/503/{"detail":"later"}', BackendUnavailable, "later"),
        ('/429/{"detail":"slowly"}', Throttled, "slowly"),
        ('/404/{"title":"Not_Found"}', NotFoundError, "Not Found"),
        ('/409/{"type":"JobStateError","detail":"it_runs"}', JobStateError, "it runs"),
        ('/422/{"type":"RequestError","reason":"ValidationException","detail":"bad"}', RequestRefused, "bad"),
        ('/422/{"detail":"shape","errors":[{"at":"body"}]}', RequestRefused, 'shape: {"at": "body"}'),
        ('/400/{"type":"__builtins__"}', RequestRefused, "does not answer as a Jobtable server: HTTP 400"),
        ("/400/[]", RequestRefused, "does not answer as a Jobtable server: HTTP 400"),
    ],
)
def test_every_answer_becomes_an_error_of_ours(odd: Server, path: str, kind: type[JobtableError], said: str) -> None:
    for _ in range(2):  # the second time on a connection that has gone stale
        with pytest.raises(kind) as raised:
            odd.read("GET", path)
        assert said in str(raised.value)
    odd.close()


@pytest.mark.parametrize("path", ["/200/cut", "/200/torn", "/500/cut"])
def test_a_file_whose_end_is_lost_is_not_taken_for_whole(odd: Server, path: str) -> None:
    for size in (2, 10_000, -1):
        with pytest.raises(BackendUnavailable), odd.open(path) as stream:
            list(iter(partial(stream.read, size), b""))
    with pytest.raises(ConnectionUrlError, match="redirects to another address"):
        odd.open("/302/Please_log_in")
    with odd.open("/200/whole") as stream:
        assert (stream.status, stream.read(2), stream.read()) == (200, b"wh", b"ole")


class TestOnTheCommandLine:
    """`jobtable --server URL --token TOKEN`."""

    def run(self, served: Served, *arguments: str, code: int = 0, role: Role = Role.FULL) -> Result:
        command = ["--server", served.url, "--token", served.token(role), *arguments]
        result = CliRunner().invoke(app, command, env={"JOBTABLE_STORE": ""})
        assert result.exit_code == code, f"{result.exit_code}: {result.output}"
        return result

    def test_objects_come_as_files(self, served: Served, tmp_path: Path) -> None:
        served.services.objects.put("jobs/j/artifacts/1/model.bin", b"content")
        self.run(served, "objects", "get", "jobs/j/artifacts/1/model.bin", str(tmp_path / "got"), role=Role.READ)
        assert (tmp_path / "got").read_bytes() == b"content"

    def test_commands_work_through_a_server(self, served: Served) -> None:
        done = self.run(served, "jobs", "submit", "--task", "m:f", "--queue", "far", "--param", "x=1", "--json")
        job_id = json.loads(done.stdout)["job_id"]
        listed = json.loads(self.run(served, "jobs", "list", "--queue", "far", "--json").stdout)
        assert [job["job_id"] for job in listed] == [job_id]
        assert json.loads(self.run(served, "jobs", "list", "--parent", job_id, "--json").stdout) == []
        self.run(served, "jobs", "list", "--parent", "none", code=ExitCode.NOT_FOUND)
        assert "PENDING" in self.run(served, "jobs", "show", job_id).stdout
        assert "far" in self.run(served, "queues", "list").stdout
        self.run(served, "jobs", "tree", job_id)
        assert "CANCELLED" in self.run(served, "jobs", "cancel", job_id).stdout
        self.run(served, "jobs", "cancel", "none", code=ExitCode.NOT_FOUND)
        self.run(served, "jobs", "wait", job_id, code=ExitCode.NOT_COMPLETED)
        self.run(served, "jobs", "delete", job_id, "--yes")

    def test_a_reader_is_refused_in_one_line(self, served: Served) -> None:
        self.run(served, "queues", "list", role=Role.READ)
        refused = self.run(served, "queues", "create", "q", code=ExitCode.FAILED, role=Role.READ)
        assert "role read may not do this" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1

    def test_who_has_no_token_is_told_where_to_give_it(self, served: Served) -> None:
        refused = CliRunner().invoke(app, ["jobs", "list"], env={"JOBTABLE_SERVER": served.url})
        assert "this needs a valid token; set JOBTABLE_TOKEN" in refused.stderr

    def test_what_needs_a_store_says_so(self, served: Served) -> None:
        for command in (["tables", "list"], ["export", "jobtable", "x.jsonl"]):
            refused = self.run(served, *command, code=ExitCode.USAGE)
            assert "name one with --store" in refused.stderr

    def test_what_needs_a_store_takes_one_that_is_set(self, served: Served, tmp_path: Path) -> None:
        environment = {"JOBTABLE_SERVER": served.url, "JOBTABLE_STORE": f"file:{tmp_path}/own.db"}
        done = CliRunner().invoke(app, ["worker", "--until-empty"], env=environment)
        assert (done.exit_code, "own.db" in done.stderr) == (0, True)

    def test_a_store_that_is_named_wins(self, served: Served, tmp_path: Path) -> None:
        self.run(served, "tables", "create", "--store", f"file:{tmp_path}/own.db")
        listed = self.run(served, "queues", "list", "--store", f"file:{tmp_path}/own.db", "--json")
        assert json.loads(listed.stdout) == []

    def test_the_token_is_not_shown(self, served: Served) -> None:
        rows = {row["setting"]: row for row in json.loads(self.run(served, "config", "show", "--json").stdout)}
        assert rows["server"]["value"] == served.url
        assert (rows["token"]["value"], rows["token"]["from"]) == ("***", "--token")

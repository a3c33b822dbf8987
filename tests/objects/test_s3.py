"""What only the S3 store has to hold: parts, prefixes, foreign objects, URLs, a server that is not there."""

from __future__ import annotations

import socket
import threading
import tracemalloc
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import pytest

from jobtable.errors import ObjectStoreError, ObjectStoreUnavailable, ValueRefusedError
from jobtable.objects import object_store, s3
from jobtable.objects.s3 import ATTEMPTS, PART_SIZE, S3ObjectStore
from jobtable.testing.servers import free_port

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def opened(url: str, bucket: str, prefix: str = "") -> S3ObjectStore:
    return S3ObjectStore(bucket, prefix, region="us-east-1", endpoint_url=url, credentials=("test", "test"))


@pytest.fixture
def objects(s3_objects: S3ObjectStore) -> S3ObjectStore:
    return s3_objects


class Pattern:
    """A stream of many bytes that takes no memory; it may fail at its end."""

    def __init__(self, size: int) -> None:
        self._left = size

    def read(self, size: int, /) -> bytes:
        size = min(size, self._left)
        self._left -= size
        return b"0123456789abcdef" * (size // 16) + b"x" * (size % 16)


def test_a_large_stream_goes_in_parts_and_takes_little_memory(objects: S3ObjectStore) -> None:
    size = 50 << 20
    tracemalloc.start()
    try:
        info = objects.put("large.bin", Pattern(size))
        with objects.open("large.bin") as stream:
            while stream.read(1 << 20):
                pass
        assert tracemalloc.get_traced_memory()[1] < 3 * PART_SIZE
    finally:
        tracemalloc.stop()
    assert info.size == size
    assert objects.head("large.bin") == info
    assert objects.get_range("large.bin", PART_SIZE - 8, 16) == b"89abcdef01234567"


def test_a_file_that_changes_while_it_is_put_is_refused(
    objects: S3ObjectStore,
    s3_client: S3Client,
    bucket: str,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "changing"
    path.write_bytes(bytes(PART_SIZE + 1))
    send_parts = S3ObjectStore._send_parts

    def change_and_send(*arguments: object) -> object:
        path.write_bytes(b"x" * (PART_SIZE + 1))
        return send_parts(*arguments)  # type: ignore[arg-type] # handed on as they came

    monkeypatch.setattr(S3ObjectStore, "_send_parts", change_and_send)
    with pytest.raises(ObjectStoreError, match="changed meanwhile"):
        objects.put("a", path)
    assert list(objects.list()) == []
    assert "Uploads" not in s3_client.list_multipart_uploads(Bucket=bucket, Prefix=prefix)


def test_a_small_file_that_grows_while_it_is_put_is_put_as_it_was(
    objects: S3ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"as it was")
    measured = object_store.measured

    def measure_and_grow(stream: BinaryIO) -> tuple[bytes, int]:
        found = measured(stream)
        with path.open("ab") as file:
            file.write(b" and more of it" * 100_000)
        return found

    monkeypatch.setattr(s3, "measured", measure_and_grow)
    info = objects.put("a", path)
    monkeypatch.undo()
    assert objects.get("a") == b"as it was"
    assert objects.head("a") == info


def test_unfinished_uploads_are_removed(objects: S3ObjectStore, s3_client: S3Client, bucket: str, prefix: str) -> None:
    s3_client.create_multipart_upload(Bucket=bucket, Key=f"{prefix}/half")
    assert list(objects.list()) == []
    assert objects.remove_unfinished(datetime.now(UTC) - timedelta(hours=1)) == 0
    assert objects.remove_unfinished(datetime.now(UTC) + timedelta(hours=1)) == 1
    assert "Uploads" not in s3_client.list_multipart_uploads(Bucket=bucket, Prefix=prefix)


def test_a_prefix_keeps_stores_apart(s3_url: str, bucket: str, s3_client: S3Client) -> None:
    one, ten = opened(s3_url, bucket, "p/1"), opened(s3_url, bucket, "p/10")
    one.put("a.json", b"1")
    ten.put("a.json", b"10")
    assert (one.get("a.json"), ten.get("a.json")) == (b"1", b"10")
    assert [found.key for found in one.list()] == ["a.json"]
    stored = s3_client.head_object(Bucket=bucket, Key="p/1/a.json")
    assert stored["ContentType"] == "application/json"
    one.close()
    ten.close()


def test_objects_of_other_programs_can_be_read_and_are_listed_if_a_key_can_name_them(
    objects: S3ObjectStore, s3_client: S3Client, bucket: str, prefix: str
) -> None:
    info = objects.put("ours", b"same")
    s3_client.put_object(Bucket=bucket, Key=f"{prefix}/theirs", Body=b"same")
    s3_client.put_object(Bucket=bucket, Key=f"{prefix}/not a key", Body=b"")
    assert objects.head("theirs").sha256 == info.sha256
    assert sorted(found.key for found in objects.list()) == ["ours", "theirs"]


def test_a_url_gives_the_object_without_credentials(objects: S3ObjectStore) -> None:
    objects.put("a", b"for everyone with the URL")
    url = objects.url("a", expires_in=timedelta(minutes=1))
    assert url is not None
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"for everyone with the URL"
    for time in (timedelta(0), timedelta(days=8)):
        with pytest.raises(ValueRefusedError):
            objects.url("a", expires_in=time)


@pytest.mark.parametrize("region", ["eu-central-1", "us-west-2"])
def test_a_url_is_signed_as_new_buckets_demand_and_for_the_host_of_their_region(region: str) -> None:
    objects = S3ObjectStore("my-bucket", region=region, credentials=("test", "test"))
    url = objects.url("a")
    assert url is not None
    assert url.startswith(f"https://my-bucket.s3.{region}.amazonaws.com/a?X-Amz-Algorithm=AWS4-HMAC-SHA256&")
    objects.close()


def test_a_missing_bucket_is_not_a_missing_object(s3_url: str) -> None:
    objects = opened(s3_url, "no-such-bucket")
    with pytest.raises(ObjectStoreError, match="no-such-bucket"):
        list(objects.list())
    with pytest.raises(ObjectStoreError, match="no-such-bucket"):
        objects.get("a")
    objects.close()


def test_no_server_is_an_error_that_names_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)  # the pauses between attempts
    url = f"http://127.0.0.1:{free_port()}"
    objects = opened(url, "bucket")
    for use in (lambda: objects.put("a", b""), lambda: objects.get("a"), lambda: list(objects.list())):
        with pytest.raises(ObjectStoreUnavailable, match=url):
            use()
    objects.close()


def test_a_place_that_does_not_answer_is_given_up_within_a_minute() -> None:
    objects = opened("http://127.0.0.1:9", "bucket")
    config = objects._client.meta.config
    assert config.connect_timeout <= 5
    assert config.read_timeout * config.retries["total_max_attempts"] <= 60
    objects.close()


def test_a_server_that_takes_connections_and_never_answers_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)  # the pauses between attempts
    monkeypatch.setattr("jobtable.objects.s3.READ_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        objects = opened(f"http://127.0.0.1:{silent.getsockname()[1]}", "bucket")
        with pytest.raises(ObjectStoreUnavailable, match="cannot get a in s3://bucket"):
            objects.get("a")
        objects.close()
        silent.setblocking(False)
        for _ in range(ATTEMPTS):
            silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


class Unreliable(BaseHTTPRequestHandler):
    """An S3 server with one object. `answers` says how it goes on: what each request gets, the last one for ever."""

    protocol_version = "HTTP/1.1"
    content = b"all of it"
    answers: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer.isdigit():
            self.send_error(int(answer))
            return
        content = self.content if self.command == "GET" else b""
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:3] if answer == "broken off" else content)
        self.close_connection = True

    do_PUT = do_DELETE = do_GET  # noqa: N815 - the names are those of the methods

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the name is that of the method's parameter
        """Tests are quiet."""


@pytest.fixture
def unreliable(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3ObjectStore]:
    monkeypatch.setattr("time.sleep", lambda _: None)  # the pauses between attempts
    with ThreadingHTTPServer(("127.0.0.1", 0), Unreliable) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        objects = opened(f"http://127.0.0.1:{server.server_port}", "bucket")
        yield objects
        objects.close()
        server.shutdown()
        serving.join()


def test_an_answer_that_breaks_off_is_asked_for_again(unreliable: S3ObjectStore) -> None:
    Unreliable.answers = ["broken off", "503", "broken off", "whole"]
    assert unreliable.get("a") == Unreliable.content
    Unreliable.answers = ["broken off", "whole"]
    assert unreliable.get_range("a", 0, 9) == Unreliable.content


@pytest.mark.parametrize("answer", ["broken off", "503", "500"])
def test_what_does_not_pass_soon_may_be_tried_again_later(unreliable: S3ObjectStore, answer: str) -> None:
    Unreliable.answers = [answer]
    with pytest.raises(ObjectStoreUnavailable, match="a in s3://bucket"):
        unreliable.get("a")
    assert ObjectStoreUnavailable.retryable


def test_a_put_that_the_server_fails_to_take_may_be_tried_again(unreliable: S3ObjectStore) -> None:
    Unreliable.answers = ["503", "whole"]
    unreliable.put("a", b"x")
    Unreliable.answers = ["503"]
    with pytest.raises(ObjectStoreUnavailable, match="cannot put a in"):
        unreliable.put("a", b"x")
    Unreliable.answers = ["403"]
    with pytest.raises(ObjectStoreError) as refused:
        unreliable.put("a", b"x")
    assert not refused.value.retryable


def test_what_is_not_there_is_removed_also_where_a_server_says_so(unreliable: S3ObjectStore) -> None:
    Unreliable.answers = ["404"]
    unreliable.delete("a")
    Unreliable.answers = ["403"]
    with pytest.raises(ObjectStoreError, match="cannot delete a in"):
        unreliable.delete("a")

"""Streams: every change once, in order, as the view type shows it, for a day."""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.embedded.storage import Storage
from jobtable.embedded.storage.table_catalogue import StreamRecord
from jobtable.errors import RequestRefused, StreamExpired, TableNotFound
from jobtable.testing import FakeClock

Request = dict[str, Any]
VIEWS = ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]
HORIZON = {"ShardIteratorType": "TRIM_HORIZON"}


def definition(view: str | None) -> Request:
    stream = {"StreamEnabled": True, "StreamViewType": view} if view else {"StreamEnabled": False}
    return {
        "TableName": "tab",
        "AttributeDefinitions": [
            {"AttributeName": "a", "AttributeType": "S"},
            {"AttributeName": "b", "AttributeType": "N"},
        ],
        "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}, {"AttributeName": "b", "KeyType": "RANGE"}],
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": stream,
    }


@pytest.fixture
def backend(clock: FakeClock) -> Iterator[EmbeddedBackend]:
    made = EmbeddedBackend(None, clock=clock)
    yield made
    made.close()


def create(backend: EmbeddedBackend, view: str | None = "NEW_AND_OLD_IMAGES") -> str:
    return str(backend.execute("CreateTable", definition(view))["TableDescription"].get("LatestStreamArn"))


def put(backend: EmbeddedBackend, number: int, **others: Any) -> None:
    backend.execute("PutItem", {"TableName": "tab", "Item": {"a": {"S": "x"}, "b": {"N": str(number)}, **others}})


def shard(backend: EmbeddedBackend, arn: str) -> Request:
    (one,) = backend.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
    return {"StreamArn": arn, "ShardId": one["ShardId"]}


def start(backend: EmbeddedBackend, arn: str, kind: str = "TRIM_HORIZON", number: str | None = None) -> str:
    request = shard(backend, arn) | {"ShardIteratorType": kind}
    if number is not None:
        request["SequenceNumber"] = number
    return str(backend.execute("GetShardIterator", request)["ShardIterator"])


def read(backend: EmbeddedBackend, arn: str, kind: str = "TRIM_HORIZON", number: str | None = None) -> list[Request]:
    response = backend.execute("GetRecords", {"ShardIterator": start(backend, arn, kind, number)})
    records: list[Request] = response["Records"]
    return records


def numbers(records: list[Request]) -> list[str]:
    return [record["dynamodb"]["SequenceNumber"] for record in records]


CHANGES: list[tuple[str, Request]] = [
    ("PutItem", {"Item": {"a": {"S": "x"}, "b": {"N": "1"}, "c": {"S": "1"}}}),
    ("PutItem", {"Item": {"a": {"S": "x"}, "b": {"N": "1"}, "c": {"S": "1"}}}),
    ("PutItem", {"Item": {"a": {"S": "x"}, "b": {"N": "1"}, "c": {"S": "2"}}}),
    (
        "UpdateItem",
        {
            "Key": {"a": {"S": "x"}, "b": {"N": "1"}},
            "UpdateExpression": "SET c = :c, d = :d",
            "ExpressionAttributeValues": {":c": {"S": "3"}, ":d": {"SS": ["x", "y"]}},
        },
    ),
    (
        "UpdateItem",
        {
            "Key": {"a": {"S": "x"}, "b": {"N": "1"}},
            "UpdateExpression": "SET d = :d",
            "ExpressionAttributeValues": {":d": {"SS": ["y", "x"]}},
        },
    ),
    ("DeleteItem", {"Key": {"a": {"S": "x"}, "b": {"N": "1"}}}),
    ("DeleteItem", {"Key": {"a": {"S": "x"}, "b": {"N": "1"}}}),
]


def local_records(url: str, view: str) -> list[Request]:
    """What DynamoDB Local's stream shows of CHANGES."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def ask(service: str, operation: str, request: Request) -> Any:
        headers = {
            "X-Amz-Target": f"{service}_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/dynamodb/aws4_request,"
            " SignedHeaders=host, Signature=none",
        }
        connection.request("POST", "/", json.dumps(request), headers)
        return json.loads(connection.getresponse().read())

    name = f"stream-{view}"
    created = ask("DynamoDB", "CreateTable", definition(view) | {"TableName": name})
    arn = created["TableDescription"]["LatestStreamArn"]
    for operation, request in CHANGES:
        ask("DynamoDB", operation, {"TableName": name, **request})
    described = ask("DynamoDBStreams", "DescribeStream", {"StreamArn": arn})["StreamDescription"]
    request = {"StreamArn": arn, "ShardId": described["Shards"][0]["ShardId"], **HORIZON}
    iterator = ask("DynamoDBStreams", "GetShardIterator", request)["ShardIterator"]
    records: list[Request] = ask("DynamoDBStreams", "GetRecords", {"ShardIterator": iterator})["Records"]
    ask("DynamoDB", "DeleteTable", {"TableName": name})
    connection.close()
    return records


def without_identity(record: Request) -> Request:
    """A record without its id, number and time."""
    shown = {key: value for key, value in record.items() if key != "eventID"}
    left_out = ("SequenceNumber", "ApproximateCreationDateTime")
    return shown | {"dynamodb": {key: value for key, value in record["dynamodb"].items() if key not in left_out}}


@pytest.mark.parametrize("view", VIEWS)
def test_records_are_those_of_dynamodb_local(backend: EmbeddedBackend, dynamodb_local_url: str, view: str) -> None:
    arn = create(backend, view)
    for operation, request in CHANGES:
        backend.execute(operation, {"TableName": "tab", **request})
    ours, theirs = read(backend, arn), local_records(dynamodb_local_url, view)
    assert [record["eventName"] for record in ours] == ["INSERT", "MODIFY", "MODIFY", "REMOVE"]
    assert [without_identity(record) for record in ours] == [without_identity(record) for record in theirs]
    assert read(backend, arn) == ours, "asked again, the records are the same"


def test_a_stream_is_described(backend: EmbeddedBackend, clock: FakeClock) -> None:
    arn = create(backend)
    described = backend.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    assert described["StreamStatus"] == "ENABLED"
    assert described["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert described["CreationRequestDateTime"] == clock.seconds()
    assert described["KeySchema"] == definition(None)["KeySchema"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", described["StreamLabel"])
    (one,) = described["Shards"]
    assert re.fullmatch(r"shardId-\d{20}-[0-9a-f]{8}", one["ShardId"])
    assert list(one["SequenceNumberRange"]) == ["StartingSequenceNumber"]
    rest = backend.execute("DescribeStream", {"StreamArn": arn, "ExclusiveStartShardId": one["ShardId"]})
    assert rest["StreamDescription"]["Shards"] == []
    unknown = backend.execute("DescribeStream", {"StreamArn": arn, "ExclusiveStartShardId": "z" * 30})
    assert unknown["StreamDescription"]["Shards"] == []


@pytest.mark.parametrize("kind", ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"])
def test_an_empty_shard_can_be_read_from_its_first_number(backend: EmbeddedBackend, kind: str) -> None:
    arn = create(backend)
    (one,) = backend.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
    first = one["SequenceNumberRange"]["StartingSequenceNumber"]
    iterator = start(backend, arn, kind, first)
    put(backend, 1)
    (record,) = backend.execute("GetRecords", {"ShardIterator": iterator})["Records"]
    assert record["dynamodb"]["SequenceNumber"] > first, "as in the service; DynamoDB Local gives the first change it"
    assert read(backend, arn, kind, first) == [record]


def test_iterators_start_where_they_are_told(backend: EmbeddedBackend) -> None:
    arn = create(backend)
    for number in range(4):
        put(backend, number)
    all_ = numbers(read(backend, arn))
    assert numbers(read(backend, arn, "AT_SEQUENCE_NUMBER", all_[2])) == all_[2:]
    assert numbers(read(backend, arn, "AFTER_SEQUENCE_NUMBER", all_[2])) == all_[3:]
    latest = start(backend, arn, "LATEST")
    assert backend.execute("GetRecords", {"ShardIterator": latest})["Records"] == []
    put(backend, 4)
    (record,) = backend.execute("GetRecords", {"ShardIterator": latest})["Records"]
    assert record["dynamodb"]["Keys"] == {"a": {"S": "x"}, "b": {"N": "4"}}


def test_pages_end_at_the_limit_at_a_thousand_and_at_a_megabyte(backend: EmbeddedBackend) -> None:
    arn = create(backend, "NEW_IMAGE")
    for number in range(7):
        put(backend, number, text={"S": "x" * 300_000})
    iterator = start(backend, arn)
    pages: list[int] = []
    while len(pages) < 4:
        response = backend.execute("GetRecords", {"ShardIterator": iterator})
        pages.append(len(response["Records"]))
        iterator = response["NextShardIterator"]
    assert pages == [3, 3, 1, 0]
    response = backend.execute("GetRecords", {"ShardIterator": start(backend, arn), "Limit": 2})
    assert len(response["Records"]) == 2


def test_a_disabled_stream_ends_and_can_still_be_read(backend: EmbeddedBackend, clock: FakeClock) -> None:
    arn = create(backend)
    put(backend, 1)
    disabling = {"TableName": "tab", "StreamSpecification": {"StreamEnabled": False}}
    backend.execute("UpdateTable", disabling)
    put(backend, 2)
    described = backend.execute("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    assert described["StreamStatus"] == "DISABLED"
    assert "EndingSequenceNumber" in described["Shards"][0]["SequenceNumberRange"]
    response = backend.execute("GetRecords", {"ShardIterator": start(backend, arn)})
    assert len(response["Records"]) == 1
    assert "NextShardIterator" not in response
    enabling = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    again = backend.execute("UpdateTable", {"TableName": "tab", "StreamSpecification": enabling})
    second = again["TableDescription"]["LatestStreamArn"]
    assert second != arn
    put(backend, 3)
    assert [record["dynamodb"]["Keys"]["b"]["N"] for record in read(backend, second)] == ["3"]
    listed = backend.execute("ListStreams", {"TableName": "tab"})["Streams"]
    assert [one["StreamArn"] for one in listed] == [second, arn]
    first_page = backend.execute("ListStreams", {"Limit": 1})
    request = {"Limit": 1, "ExclusiveStartStreamArn": first_page["LastEvaluatedStreamArn"]}
    assert first_page["Streams"] + backend.execute("ListStreams", request)["Streams"] == listed


def test_a_closed_stream_goes_after_a_day_though_its_table_has_recovery(
    backend: EmbeddedBackend, clock: FakeClock
) -> None:
    arn = create(backend)
    put(backend, 1)
    recovery = {"PointInTimeRecoveryEnabled": True}
    backend.execute("UpdateContinuousBackups", {"TableName": "tab", "PointInTimeRecoverySpecification": recovery})
    backend.execute("UpdateTable", {"TableName": "tab", "StreamSpecification": {"StreamEnabled": False}})
    clock.advance(25 * 3600)
    storage_of(backend).keep_up()
    assert backend.execute("ListStreams", {}) == {"Streams": []}
    with pytest.raises(TableNotFound):
        read(backend, arn)


def test_a_list_of_streams_goes_on_behind_one_that_is_gone(backend: EmbeddedBackend) -> None:
    create(backend)
    for name in ("aaa", "zzz"):
        backend.execute("CreateTable", {**definition("KEYS_ONLY"), "TableName": name})
    gone = "arn:aws:dynamodb:ddblocal:000000000000:table/bbb/stream/2020-01-01T00:00:00.000"
    listed = backend.execute("ListStreams", {"ExclusiveStartStreamArn": gone})["Streams"]
    assert [one["TableName"] for one in listed] == ["tab", "zzz"]


def test_a_shard_is_not_its_own_child(backend: EmbeddedBackend) -> None:
    arn = create(backend)
    filter_ = {"Type": "CHILD_SHARDS", "ShardId": shard(backend, arn)["ShardId"]}
    request = {"StreamArn": arn, "ShardFilter": filter_}
    assert backend.execute("DescribeStream", request)["StreamDescription"]["Shards"] == []


@pytest.mark.parametrize("numbers_", ["9" * 30 + "|1", "9" * 21 + "|1", "1|" + "9" * 400, "0|1"])
def test_an_iterator_with_other_numbers_is_refused(backend: EmbeddedBackend, numbers_: str) -> None:
    arn = create(backend)
    content = f"{shard(backend, arn)['ShardId']}|{numbers_}"
    iterator = f"{arn}|1|{base64.b64encode(content.encode()).decode()}"
    with pytest.raises(RequestRefused, match="Invalid ShardIterator"):
        backend.execute("GetRecords", {"ShardIterator": iterator})


def test_an_iterator_names_its_stream_as_that_of_the_service_does(backend: EmbeddedBackend) -> None:
    arn = create(backend)
    iterator = backend.execute("GetShardIterator", {**shard(backend, arn), "ShardIteratorType": "TRIM_HORIZON"})
    following = backend.execute("GetRecords", iterator)["NextShardIterator"]
    for text in (iterator["ShardIterator"], following):
        assert re.fullmatch(rf"{arn}\|\d\|.+", text)


def test_an_iterator_can_start_at_a_time(backend: EmbeddedBackend, clock: FakeClock) -> None:
    arn = create(backend)
    started = clock.seconds()
    for number in range(5):
        put(backend, number)
        clock.advance(10)

    def numbers_at(moment: float) -> list[str]:
        request = {**shard(backend, arn), "ShardIteratorType": "AT_TIMESTAMP", "Timestamp": moment}
        iterator = backend.execute("GetShardIterator", request)["ShardIterator"]
        found = backend.execute("GetRecords", {"ShardIterator": iterator})["Records"]
        return [record["dynamodb"]["Keys"]["b"]["N"] for record in found]

    assert numbers_at(started - 3 * 24 * 3600) == ["0", "1", "2", "3", "4"]
    assert numbers_at(started + 20) == ["2", "3", "4"]
    assert numbers_at(started + 21) == ["3", "4"]
    assert numbers_at(clock.seconds()) == []
    with pytest.raises(RequestRefused, match="future"):
        numbers_at(clock.seconds() + 60)


def test_the_stream_of_a_deleted_table_can_be_read_for_a_day(backend: EmbeddedBackend, clock: FakeClock) -> None:
    arn = create(backend)
    put(backend, 1)
    backend.execute("DeleteTable", {"TableName": "tab"})
    assert len(read(backend, arn)) == 1
    clock.advance(25 * 3600)
    storage_of(backend).keep_up()
    with pytest.raises(TableNotFound):
        read(backend, arn)
    assert backend.execute("ListStreams", {}) == {"Streams": []}


def test_the_streams_of_deleted_tables_are_looked_at_once_a_round(
    backend: EmbeddedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(10):
        create(backend)
        backend.execute("DeleteTable", {"TableName": "tab"})
    looked_at = _counted_streams(monkeypatch)
    storage_of(backend).keep_up()
    assert len(looked_at) == 10


def _counted_streams(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The streams that are looked at from now on."""
    looked_at: list[bytes] = []
    genuine = StreamRecord.from_stored

    def counted(stored: bytes) -> StreamRecord:
        looked_at.append(stored)
        return genuine(stored)

    monkeypatch.setattr(StreamRecord, "from_stored", counted)
    return looked_at


def test_a_round_writes_nothing_where_nothing_is_due(
    backend: EmbeddedBackend, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a day after its table is gone each of thousands of journals took the turn of the writers in every round."""
    writes: list[object] = []
    storage = storage_of(backend)
    genuine = storage.write

    def counted(action: Any) -> Any:
        writes.append(action)
        return genuine(action)

    create(backend)
    put(backend, 1)
    backend.execute("DeleteTable", {"TableName": "tab"})
    create(backend)
    put(backend, 1)
    put(backend, 2)
    monkeypatch.setattr(storage, "write", counted)
    storage.keep_up()
    clock.advance(23 * 3600)
    storage.keep_up()
    assert not writes
    clock.advance(2 * 3600)
    storage.keep_up()
    assert len(writes) == 2
    storage.keep_up()  # the last change of a table always stays, however old
    assert len(writes) == 2


def test_the_streams_of_a_name_are_not_all_read_to_enable_another(
    backend: EmbeddedBackend, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who creates and deletes one table again and again, as tests do, has all its streams of a day."""
    looked_at = _counted_streams(monkeypatch)
    for _ in range(10):
        create(backend)
        backend.execute("DeleteTable", {"TableName": "tab"})
        clock.advance(1)
    assert len(looked_at) < 10


def test_a_page_of_streams_is_read_and_no_more(backend: EmbeddedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(10):
        create(backend)
        backend.execute("DeleteTable", {"TableName": "tab"})
    looked_at = _counted_streams(monkeypatch)
    assert len(backend.execute("ListStreams", {"Limit": 3})["Streams"]) == 3
    assert len(looked_at) <= 4


def test_records_are_kept_for_a_day(backend: EmbeddedBackend, clock: FakeClock) -> None:
    arn = create(backend)
    put(backend, 1)
    old = start(backend, arn)
    (number,) = numbers(read(backend, arn))
    clock.advance(14 * 60)
    put(backend, 2)
    clock.advance(24 * 3600 - 10)
    assert [record["dynamodb"]["Keys"]["b"]["N"] for record in read(backend, arn)] == ["2"]
    with pytest.raises(StreamExpired) as expired:
        read(backend, arn, "AT_SEQUENCE_NUMBER", number)
    assert expired.value.code == "TrimmedDataAccessException"
    with pytest.raises(StreamExpired) as expired:
        backend.execute("GetRecords", {"ShardIterator": old})
    assert expired.value.code == "ExpiredIteratorException"
    storage_of(backend).keep_up()
    assert [record["dynamodb"]["Keys"]["b"]["N"] for record in read(backend, arn)] == ["2"]
    put(backend, 3)
    assert numbers(read(backend, arn)) == sorted(numbers(read(backend, arn)))


def test_no_number_comes_twice_however_much_is_trimmed(backend: EmbeddedBackend, clock: FakeClock) -> None:
    arn = create(backend)
    seen: list[str] = []
    for day in range(3):
        put(backend, 2 * day)
        put(backend, 2 * day + 1)
        latest = read(backend, arn)
        assert [record["dynamodb"]["Keys"]["b"]["N"] for record in latest] == [str(2 * day), str(2 * day + 1)]
        seen += numbers(latest)
        clock.advance(25 * 3600)
        storage_of(backend).keep_up()
        assert read(backend, arn) == []
    assert seen == sorted(set(seen))


def test_an_iterator_can_be_used_for_fifteen_minutes(backend: EmbeddedBackend, clock: FakeClock) -> None:
    arn = create(backend)
    iterator = start(backend, arn)
    clock.advance(15 * 60 - 1)
    response = backend.execute("GetRecords", {"ShardIterator": iterator})
    clock.advance(14 * 60)
    backend.execute("GetRecords", {"ShardIterator": response["NextShardIterator"]})
    with pytest.raises(StreamExpired):
        backend.execute("GetRecords", {"ShardIterator": iterator})


def storage_of(backend: EmbeddedBackend) -> Storage:
    return backend._storage


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("DescribeStream", {}),
        ("DescribeStream", {"StreamArn": 1}),
        ("DescribeStream", {"StreamArn": "nonsense"}),
        ("GetShardIterator", {"StreamArn": "nonsense", "ShardId": "SHARD", **HORIZON}),
        ("ListStreams", {"ExclusiveStartStreamArn": "nonsense"}),
        ("DescribeStream", {"StreamArn": "ARN", "Limit": 0}),
        ("ListStreams", {"Limit": 101}),
        ("ListStreams", {"TableName": "x"}),
        ("GetRecords", {}),
        ("GetRecords", {"ShardIterator": "nonsense"}),
        ("GetRecords", {"ShardIterator": "a|b|c"}),
        ("GetRecords", {"ShardIterator": "ARN|001|" + "ÿ"}),
        ("GetRecords", {"ShardIterator": "x", "Limit": 1001}),
        ("DescribeStream", {"StreamArn": "ARN", "ShardFilter": {}}),
        ("DescribeStream", {"StreamArn": "ARN", "ShardFilter": {"Type": "FOO"}}),
        ("DescribeStream", {"StreamArn": "ARN", "ShardFilter": {"Type": "CHILD_SHARDS", "ShardId": "x" * 27}}),
        *(("DescribeStream", {"StreamArn": "ARN", "ExclusiveStartShardId": "x" * length}) for length in (0, 27, 66)),
        ("GetShardIterator", {"ShardId": "SHARD", **HORIZON}),
        ("GetShardIterator", {"StreamArn": "ARN", "ShardId": "SHARD", "ShardIteratorType": "AT_TIMESTAMP"}),
        ("GetShardIterator", {"StreamArn": "ARN", "ShardId": "SHARD", "Timestamp": 1, **HORIZON}),
        *(
            (
                "GetShardIterator",
                {"StreamArn": "ARN", "ShardId": "SHARD", "ShardIteratorType": "AT_TIMESTAMP", "Timestamp": moment},
            )
            for moment in (float("nan"), float("-inf"), True, "now")
        ),
        ("GetShardIterator", {}),
        ("GetShardIterator", {"StreamArn": "ARN", "ShardId": "SHARD"}),
        ("GetShardIterator", {"StreamArn": "ARN", "ShardId": "SHARD", "ShardIteratorType": "OLDEST"}),
        ("GetShardIterator", {"StreamArn": "ARN", "ShardId": "SHARD", "ShardIteratorType": "AT_SEQUENCE_NUMBER"}),
        ("GetShardIterator", {"StreamArn": "ARN", "ShardId": "SHARD", "SequenceNumber": "0" * 21, **HORIZON}),
        *(
            (
                "GetShardIterator",
                {
                    "StreamArn": "ARN",
                    "ShardId": "SHARD",
                    "ShardIteratorType": "AT_SEQUENCE_NUMBER",
                    "SequenceNumber": number,
                },
            )
            for number in ("1", "x" * 21, "9" * 21, "0" * 20 + "7", "9" * 41)
        ),
    ],
)
def test_malformed_requests_are_refused(backend: EmbeddedBackend, operation: str, request_: Request) -> None:
    arn = create(backend)
    names = {"ARN": arn, "SHARD": shard(backend, arn)["ShardId"]}
    request = {
        key: value if not isinstance(value, str) else re.sub("ARN|SHARD", lambda found: names[found[0]], value)
        for key, value in request_.items()
    }
    with pytest.raises(RequestRefused):
        backend.execute(operation, request)


@pytest.mark.parametrize("arn", ["ARN1", "arn:aws:dynamodb:ddblocal:000000000000:table/none/stream/x"])
def test_an_unknown_stream_or_shard_is_not_found(backend: EmbeddedBackend, arn: str) -> None:
    real = create(backend)
    one = shard(backend, real)
    with pytest.raises(TableNotFound):
        backend.execute("DescribeStream", {"StreamArn": arn.replace("ARN", real)})
    with pytest.raises(TableNotFound):
        backend.execute("GetShardIterator", one | HORIZON | {"StreamArn": arn.replace("ARN", real)})
    with pytest.raises(TableNotFound):
        backend.execute("GetShardIterator", one | HORIZON | {"ShardId": "unknown"})
    iterator = start(backend, real).replace(real, f"{real}1")
    with pytest.raises(TableNotFound):
        backend.execute("GetRecords", {"ShardIterator": iterator})

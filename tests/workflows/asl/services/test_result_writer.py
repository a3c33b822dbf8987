"""The results of distributed Maps."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.workflows.asl.services.conftest import Ask

from jobtable.objects import ObjectStore
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MachineType
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.services.service_calls import ServiceCalls
from jobtable.workflows.asl.verbs import ChildExecution

MAP_RUN = "arn:aws:states:us-east-1:000000000000:mapRun:machine/Each:11112222"
STARTED = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
RESULTS = [[1, 2], "three"]


def child(name: str, status: str, output: Any = None, **more: Any) -> ChildExecution:
    record = Execution(
        machine="machine/Each",
        name=name,
        job_id="job",
        status=ExecutionStatus(status),
        definition_sha256="",
        region="us-east-1",
        account="000000000000",
        input="",
        started_at=STARTED,
        map_run_id="11112222",
        **{"stopped_at": STARTED, **more},
    )
    return ChildExecution(record, '{"n":1}', None if output is None else json.dumps(output))


CHILDREN = [
    child("a", "SUCCEEDED", [1, 2]),
    child("b", "FAILED", error="Odd", cause="it is odd", type=MachineType.STANDARD),
    child("c", "SUCCEEDED", "three"),
    child("d", "RUNNING", stopped_at=None),
]


def write(services: ServiceCalls, **more: Any) -> Any:
    writer = {"Resource": "arn:aws:states:::s3:putObject", "Parameters": {"Bucket": "b", "Prefix": "out"}}
    return services.write_results({**writer, "WriterConfig": {}, "MapRunArn": MAP_RUN, **more}, RESULTS, CHILDREN)


def test_the_manifest_names_the_files_of_each_status(services: ServiceCalls, ask: Ask, objects: ObjectStore) -> None:
    assert write(services) == {"Bucket": "b", "Key": "out/11112222/manifest.json"}
    manifest = json.loads(ask("aws-sdk:s3:getObject", Bucket="b", Key="out/11112222/manifest.json")["Body"])
    assert (manifest["DestinationBucket"], manifest["MapRunArn"]) == ("b", MAP_RUN)
    files = manifest["ResultFiles"]
    assert set(files) == {"FAILED", "PENDING", "SUCCEEDED"}
    records = {}
    for name, (file,) in files.items():
        assert file["Key"] == f"out/11112222/{name}_0.json"
        content = objects.get(f"buckets/b/{file['Key']}")
        assert file["Size"] == len(content)
        records[name] = json.loads(content)
    assert records["SUCCEEDED"][0] == {
        "ExecutionArn": "arn:aws:states:us-east-1:000000000000:execution:machine/Each:a",
        "Input": '{"n":1}',
        "InputDetails": {"Included": True},
        "Name": "a",
        "Output": "[1, 2]",
        "OutputDetails": {"Included": True},
        "RedriveCount": 0,
        "RedriveStatus": "NOT_REDRIVABLE",
        "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
        "StartDate": "2026-01-02T03:04:05.678Z",
        "StateMachineArn": "arn:aws:states:us-east-1:000000000000:stateMachine:machine/Each",
        "Status": "SUCCEEDED",
        "StopDate": "2026-01-02T03:04:05.678Z",
    }
    assert [each["Name"] for each in records["SUCCEEDED"]] == ["a", "c"]
    (failed,), (pending,) = records["FAILED"], records["PENDING"]
    assert (failed["Error"], failed["Cause"], failed["RedriveStatus"]) == ("Odd", "it is odd", "REDRIVABLE_BY_MAP_RUN")
    assert (pending["Name"], pending["Status"]) == ("d", "RUNNING")
    assert not {"StopDate", "Output", "Error"} & set(pending)


@pytest.mark.parametrize(
    ("config", "file", "content"),
    [
        ({"Transformation": "COMPACT", "OutputType": "JSON"}, "SUCCEEDED_0.json", '[[1,2],"three"]'),
        ({"Transformation": "FLATTEN", "OutputType": "JSON"}, "SUCCEEDED_0.json", '[1,2,"three"]'),
        ({"Transformation": "FLATTEN", "OutputType": "JSONL"}, "SUCCEEDED_0.jsonl", '1\n2\n"three"\n'),
    ],
)
def test_outputs_alone_are_exported(
    services: ServiceCalls, objects: ObjectStore, config: dict[str, str], file: str, content: str
) -> None:
    write(services, WriterConfig=config, Parameters={"Bucket": "b"})
    assert objects.get(f"buckets/b/11112222/{file}").decode() == content


@pytest.mark.parametrize(
    ("config", "returned"),
    [({}, RESULTS), ({"Transformation": "COMPACT"}, RESULTS), ({"Transformation": "FLATTEN"}, [1, 2, "three"])],
)
def test_without_a_resource_the_results_are_returned(
    services: ServiceCalls, objects: ObjectStore, config: dict[str, str], returned: Any
) -> None:
    assert write(services, Resource=None, WriterConfig=config) == returned
    assert list(objects.list()) == []


def test_without_a_resource_the_executions_can_be_returned(services: ServiceCalls) -> None:
    returned = write(services, Resource=None, WriterConfig={"Transformation": "NONE"})
    assert [each["Name"] for each in returned] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({"Resource": "arn:aws:states:::sqs:sendMessage"}, "use s3:putObject"),
        ({"Parameters": {}}, "The field 'Bucket' is required but was missing"),
        ({"Parameters": {"Bucket": "b", "Prefix": "x" * 2_000}}, "at most 255 fit"),
        ({"WriterConfig": {"Transformation": "ZIP"}}, "The Transformation ZIP is not supported"),
        ({"WriterConfig": {"OutputType": "XML"}}, "The OutputType XML is not supported"),
    ],
)
def test_failures(services: ServiceCalls, more: dict[str, Any], cause: str) -> None:
    with pytest.raises(StateFault) as caught:
        write(services, **more)
    assert caught.value.error == "States.ResultWriterFailed"
    assert cause in caught.value.cause

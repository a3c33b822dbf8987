"""The bundled journey with real workers: on the embedded engine, and on DynamoDB Local with a real S3 server."""

from __future__ import annotations

import time
import uuid
from functools import partial
from pathlib import Path

import boto3
import pytest
from tests.systems.journeys.access_patterns import journey

from jobtable.app import Services, open_jobs
from jobtable.jobs.stored.entities import main
from jobtable.jobs.worker.worker import Worker
from jobtable.store.backend import Item
from jobtable.systems.journeys.archives.journey_backups import JourneyBackups
from jobtable.systems.journeys.entities import JobExecution, journeys
from jobtable.systems.journeys.example.product_catalogue import create_catalogue
from jobtable.systems.journeys.example.rule_book import example_rules
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE
from jobtable.systems.journeys.object_keys import key_of
from jobtable.systems.journeys.parts import JobExecutionStatus, JourneyConfiguration, JourneyStatus
from jobtable.systems.journeys.raw_items import position
from jobtable.systems.journeys.runner import QUEUE, JourneyRunner
from jobtable.systems.journeys.running import aggregates
from jobtable.systems.journeys.service import Journeys
from jobtable.systems.journeys.stage import Stage


@pytest.fixture(params=["embedded", "DynamoDB Local and S3"])
def urls(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A store and an object store that other processes can open too."""
    if request.param == "embedded":
        return f"file:{tmp_path / 'jobs.db'}", f"file:{tmp_path / 'objects'}"
    host = request.getfixturevalue("dynamodb_local_url").removeprefix("http://")
    endpoint, bucket = request.getfixturevalue("s3_url"), f"journeys-{uuid.uuid4()}"
    # Only now: the S3 server would take them for its own, and be closed to everyone else.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket=bucket)
    client.close()
    store = f"dynamodb+http://a:b@{host}?region=us-east-1&prefix=t{uuid.uuid4().hex[:8]}-"
    return store, f"s3://{bucket}?region=us-east-1&endpoint={endpoint}"


def test_a_journey_runs_is_exported_wiped_and_imported(urls: tuple[str, str], tmp_path: Path) -> None:
    create_catalogue(tmp_path / "catalogue.db", products=60)
    with Services.open(*urls) as services:
        services.store.tables.create(*(t for t in (main, journeys) if t.name not in services.store.tables.names()))
        created = journey("J1").replace(parameters={"source": str(tmp_path / "catalogue.db"), "batchRows": 25})
        now = services.store.clock.now()
        rules = example_rules("J1", "ada", now)
        services.get(Journeys).create_journey(created, DEFAULT_TEMPLATE.stages("J1", now), rules)
        services.get(JourneyRunner).run("J1")
        # The jobs that look after the end of each stage are small, and run in the worker's own process.
        report = Worker(partial(open_jobs, *urls), [QUEUE], mode="inline", until_empty=True).run()
        assert (report.completed, report.runs) == (12, 12)
        done = services.get(Journeys).get_journey("J1")
        assert (done.status, done.overall_progress) == (JourneyStatus.COMPLETED, 100)
        executions = list(services.get(Journeys).list_executions("J1"))
        assert done.aggregates == aggregates.recount(executions, services.get(Journeys).list_rules("J1"))
        for execution in executions:
            for record in services.get(Journeys).list_job_reports(execution.job_id):
                assert record.metrics is not None
                assert services.objects.head(key_of(record.s3_location)).sha256 == record.metrics.sha256
            for location in {
                entry.s3_location or "" for entry in services.get(Journeys).list_job_logs(execution.job_id)
            }:
                assert services.objects.head(key_of(location)).size > 0
        _check_backup(services, tmp_path / "j.zip")


def _check_backup(services: Services, path: Path) -> None:
    backups = services.get(JourneyBackups)
    items, of_jobs = list(backups.list_items("J1")), _items_of_jobs(services)
    objects = {found.key: services.objects.get(found.key) for found in services.objects.list()}
    assert all(services.is_referenced(key) for key in objects)
    assert {key.partition("/")[0] for key in objects} == {"jobs", "journeys"}
    backups.get_journey_complete("J1", path)
    backups.delete_journey("J1")
    assert (list(services.objects.list()), _items_of_jobs(services)) == ([], [])
    backups.import_journey_complete(path)
    assert list(backups.list_items("J1")) == items
    assert _items_of_jobs(services) == of_jobs
    assert {found.key: services.objects.get(found.key) for found in services.objects.list()} == objects


def _items_of_jobs(services: Services) -> list[Item]:
    """Everything in the table of jobs but the queue and the workers."""
    found = services.store.ask("Scan", {"TableName": services.store.table_name(main)}, "test")["Items"]
    return sorted((item for item in found if item["TYPE"]["S"] not in ("QUEUE", "INSTANCE")), key=position)


class Hanging(Stage):
    """A mapping that never ends."""

    def field_mapping(self) -> None:
        self.log_info("waiting")
        time.sleep(600)

    def mapping_validation(self) -> None:
        """Never reached."""


def test_a_stage_that_takes_too_long_fails_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is killed: what it could not record itself, the job that waits for its end records."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3])  # where the process of the stage finds this module
    for seconds in (1, 10, 100):  # a busy machine takes its time to begin the step
        url = f"file:{tmp_path / f'{seconds}.db'}"
        with Services.open(url) as services:
            execution = _timed_out(services, url, seconds)
            assert services.get(Journeys).get_journey("J1").status is JourneyStatus.FAILED
            assert f"timeout: it ran longer than {seconds} s" in (execution.error_message or "")
            assert services.get(Journeys).get_journey("J1").aggregates == aggregates.recount([execution], [])
        if execution.steps:
            break
    assert execution.steps[0].status is JobExecutionStatus.FAILED


def _timed_out(services: Services, url: str, seconds: int) -> JobExecution:
    """The execution of a stage that hangs and may take so long."""
    configuration = JourneyConfiguration(timeout=seconds, retry_attempts=0)
    template = DEFAULT_TEMPLATE.replacing("tmf_mapping", Hanging)
    stages = [each for each in template.stages("J1", services.store.clock.now()) if each.order == 3]
    services.get(Journeys).create_journey(journey("J1").replace(configuration=configuration), stages)
    services.get(JourneyRunner).run("J1")
    Worker(partial(open_jobs, url), [QUEUE], mode="inline", until_empty=True).run()
    (execution,) = services.get(Journeys).list_executions("J1")
    return execution

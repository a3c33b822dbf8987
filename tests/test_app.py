"""The services over the stores that URLs and settings name."""

from __future__ import annotations

import gc
import pickle
import weakref
from functools import partial
from pathlib import Path

import pytest

from jobtable.app import Services, open_jobs, tables_of
from jobtable.errors import ConnectionUrlError, StorageError, TableNotFound
from jobtable.jobs.stored.entities import main
from jobtable.jobs.submit.definition import NewJob
from jobtable.objects import object_key
from jobtable.settings import Settings
from jobtable.system import declared
from jobtable.workflows.durable.function_tasks import service_of


def test_a_store_in_the_cloud_needs_an_object_store() -> None:
    with pytest.raises(ConnectionUrlError, match="s3://BUCKET"):
        Services.open("dynamodb://eu-central-1")


def test_each_process_of_a_worker_opens_the_same_jobs(tmp_path: Path) -> None:
    open_them = pickle.loads(pickle.dumps(partial(open_jobs, f"file:{tmp_path}/jobs.db")))
    with open_them() as first, open_them() as second:
        job = first.submit(NewJob(name="a", task="m:f"))
        first.objects.put("jobs/x", b"content")
        assert second.queries.get_job(job.job_id) == job
        assert second.objects.get("jobs/x") == b"content"
    with pytest.raises(StorageError, match="closed"):
        first.queries.get_job(job.job_id)


def test_services_make_the_tables_that_they_need_on_an_embedded_store() -> None:
    with Services.from_settings(Settings(store="memory:")) as services:
        assert services.store.tables.names() == []
        assert services.jobs is services.jobs
        assert services.store.tables.names() == ["jobtable"]
        for system, declared_services in declared("services"):
            for service in declared_services:
                kind = system.load(service.kind)
                assert services.get(kind) is services.get(kind)
            assert {table.name for table in tables_of(system)} <= set(services.store.tables.names())


def test_services_make_no_tables_in_the_cloud(dynamodb_local_url: str) -> None:
    host = dynamodb_local_url.removeprefix("http://")
    with Services.open(f"dynamodb+http://a:b@{host}?prefix=none-", "memory:") as services:
        assert list(services.store.tables.names()) == []
        with pytest.raises(TableNotFound):
            services.jobs.submit(NewJob(name="a", task="m:f"))
        assert list(services.store.tables.names()) == []


def test_services_know_the_objects_of_every_system_and_leave_others_alone() -> None:
    with Services.open("memory:") as services:
        of_systems = [prefix for _, prefixes in declared("objects") for prefix in prefixes]
        for prefix in ("jobs", "workflows", "durable", *of_systems):
            assert not services.is_referenced(object_key(prefix, "gone", "log", "1.txt"))
        assert services.is_referenced(object_key("photographs", "1.png"))


def test_nothing_counts_as_an_orphan_because_a_table_is_gone() -> None:
    key = object_key("jobs", "job-1", "log", "1.txt")
    with Services.open("memory:") as services:
        assert not services.is_referenced(key)
        services.store.tables.delete(main)
        with pytest.raises(TableNotFound):
            services.is_referenced(key)
    with Services.open("memory:", creates=False) as services:
        assert not services.is_referenced(key)


def test_services_that_are_no_longer_used_are_released() -> None:
    with Services.open("memory:") as services:
        assert services.executions is services.executions
        assert service_of(services.engine) is service_of(services.engine)
        engine = weakref.ref(services.engine)
    del services
    gc.collect()
    assert engine() is None

"""The names that users import: one that is added or taken away is a change for every one of them."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import jobtable
import jobtable.assist
import jobtable.cli
import jobtable.jobs
import jobtable.web

EXPORTS = {
    jobtable: (
        "Attr Attribute Backend Beside Condition Entity Index Json Key Name OrNull PackedVector Page Part Query "
        "Selection Services Store Stored Table Timestamp Transaction Update Uuid Vector __version__ camel_case "
        "connect default open_jobs"
    ),
    jobtable.jobs: (
        "DependsOn EdgeCondition FailTask Job JobContext Jobs Lease NewJob Outcome ParentWaits RetryPolicy Status "
        "StopTask SuspendTask Worker task"
    ),
    jobtable.assist: "quoted",
    jobtable.cli: (
        "AsJson Limit ObjectsUrl StoreUrl User new_group on_services open_services print_fields print_json print_list "
        "print_text say"
    ),
    jobtable.web: (
        "ANYONE AllServices LiveTopics PageOf Paging READ TheJobs TheObjects TheStore WORK WRITE allow "
        "api_router page_router render service"
    ),
}


def check_exports(package: ModuleType, names: str) -> None:
    """A package offers these names and no others, each loaded when it is first used."""
    assert sorted(package.__all__) == names.split()
    assert all(hasattr(package, name) for name in package.__all__)
    assert set(package.__all__) <= set(dir(package))
    assert not hasattr(package, "Nothing")


@pytest.mark.parametrize("package", EXPORTS, ids=lambda package: package.__name__)
def test_what_a_package_exports(package: ModuleType) -> None:
    check_exports(package, EXPORTS[package])


def test_a_module_of_tasks_loads_no_worker() -> None:
    assert (
        printed("import sys; from jobtable.jobs import task; print('jobtable.jobs.worker.worker' in sys.modules)")
        == "False"
    )


def test_errors_come_with_the_package() -> None:
    assert printed("import jobtable; print(jobtable.errors.NotFoundError.__name__)") == "NotFoundError"


def printed(program: str) -> str:
    """What a program prints that begins with nothing loaded."""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return done.stdout.strip()

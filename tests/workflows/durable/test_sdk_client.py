"""Handlers in processes of their own, whose unchanged SDK makes its checkpoints over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.workflows.durable.driving import LEASE_SECONDS, Driver, answer
from tests.workflows.durable.lambda_serving import ACCESS_KEY, SECRET_KEY, lambda_served

from jobtable.app import Services
from jobtable.embedded.server import SignatureCheck
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.lifecycle.runs import Suspended
from jobtable.workflows.durable import handler_calls
from jobtable.workflows.durable.durable_core import QUEUE
from jobtable.workflows.durable.entities import DurableStatus
from jobtable.workflows.durable.handler_calls import Answered, Call

_ROOT = Path(__file__).parents[3]


@pytest.fixture
def url(services: Services) -> Iterator[str]:
    with lambda_served(services, SignatureCheck(ACCESS_KEY, SECRET_KEY, service="lambda")) as url:
        yield url

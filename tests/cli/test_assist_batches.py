"""The commands of batches: how far each is, what became of the lines, and an early end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobtable.app import Services
from jobtable.assist.batch_lines import BatchLine
from jobtable.assist.batch_submission import Batches, NewBatch
from jobtable.jobs.worker.worker import Worker
from jobtable.testing.assist import AssistServer
from tests.assist.batch_runs import configure

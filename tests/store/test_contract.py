"""The contract, on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.store import Backend
from jobtable.testing.contract import BackendContract


class TestEmbeddedInMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        backend = EmbeddedBackend(None)
        yield backend
        backend.close()


class TestEmbeddedOnDisk(BackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[Backend]:
        backend = EmbeddedBackend(tmp_path / "contract.db")
        yield backend
        backend.close()


class TestDynamoDBLocal(BackendContract):
    @pytest.fixture
    def backend(self, dynamodb_local: Backend) -> Backend:
        return dynamodb_local

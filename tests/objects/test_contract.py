"""The object contract on every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.objects.memory import MemoryObjectStore
from jobtable.objects.object_store import ObjectStore
from jobtable.objects.s3 import S3ObjectStore
from jobtable.testing.object_contract import ObjectContract


class TestMemory(ObjectContract):
    @pytest.fixture
    def objects(self) -> ObjectStore:
        return MemoryObjectStore()


class TestFilesystem(ObjectContract):
    @pytest.fixture
    def objects(self, tmp_path: Path) -> ObjectStore:
        return FilesystemObjectStore(tmp_path / "objects")


class TestS3(ObjectContract):
    @pytest.fixture
    def objects(self, s3_objects: S3ObjectStore) -> ObjectStore:
        return s3_objects

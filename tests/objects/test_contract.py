"""The object contract on every store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.objects.memory import MemoryObjectStore
from jobtable.objects.s3 import S3ObjectStore
from jobtable.objects.store import ObjectStore
from jobtable.testing.object_contract import ObjectContract

CREDENTIALS = ("test", "test")


class TestMemory(ObjectContract):
    @pytest.fixture
    def objects(self) -> ObjectStore:
        return MemoryObjectStore()


class TestFilesystem(ObjectContract):
    @pytest.fixture
    def objects(self, tmp_path: Path) -> ObjectStore:
        return FilesystemObjectStore(tmp_path / "objects")


@pytest.fixture(scope="session")
def bucket(s3_url: str) -> str:
    name = f"contract-{uuid.uuid4()}"
    client = boto3.client(
        "s3", endpoint_url=s3_url, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    client.create_bucket(Bucket=name)
    client.close()
    return name


class TestS3(ObjectContract):
    @pytest.fixture
    def objects(self, s3_url: str, bucket: str) -> Iterator[ObjectStore]:
        objects = S3ObjectStore(
            bucket, f"p-{uuid.uuid4()}", region="us-east-1", endpoint_url=s3_url, credentials=CREDENTIALS
        )
        yield objects
        objects.close()

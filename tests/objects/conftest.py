"""One bucket on the S3 server; each test keeps to a prefix of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest

from jobtable.objects.s3 import S3ObjectStore

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.fixture(scope="session")
def s3_client(s3_url: str) -> Iterator[S3Client]:
    client = boto3.client(
        "s3", endpoint_url=s3_url, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    yield client
    client.close()


@pytest.fixture(scope="session")
def bucket(s3_client: S3Client) -> str:
    name = f"objects-{uuid.uuid4()}"
    s3_client.create_bucket(Bucket=name)
    return name


@pytest.fixture
def prefix() -> str:
    return f"p-{uuid.uuid4()}"


@pytest.fixture
def s3_objects(s3_url: str, bucket: str, prefix: str) -> Iterator[S3ObjectStore]:
    objects = S3ObjectStore(bucket, prefix, region="us-east-1", endpoint_url=s3_url, credentials=("test", "test"))
    yield objects
    objects.close()

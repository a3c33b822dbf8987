"""The statements that the page of the engine shows do what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConditionalCheckFailed

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "embedded.md"
JOBS = {
    "TableName": "jobs",
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("id", "status", "created")],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-status",
            "KeySchema": [
                {"AttributeName": "status", "KeyType": "HASH"},
                {"AttributeName": "created", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


def test_the_statements_of_the_page_run() -> None:
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    select, insert, update, other_update, delete, exists = block.strip().split("\n")
    backend = EmbeddedBackend(None)
    backend.execute("CreateTable", JOBS)
    backend.execute("ExecuteStatement", {"Statement": insert, "Parameters": [{"M": {"mail": {"S": "dana"}}}]})
    (updated,) = backend.execute("ExecuteStatement", {"Statement": update})["Items"]
    assert (updated["runs"], updated["tags"], updated["owner"]) == (
        {"N": "1"},
        {"SS": ["new", "seen"]},
        {"M": {"mail": {"S": "dana"}}},
    )
    name = "UPDATE jobs SET status = 'open' SET created = 'now' SET name = 'train' WHERE id = '42'"
    backend.execute("ExecuteTransaction", {"TransactStatements": [{"Statement": name}]})
    other = "INSERT INTO jobs VALUE {'id': '43'}"
    backend.execute("ExecuteTransaction", {"TransactStatements": [{"Statement": exists}, {"Statement": other}]})
    found = backend.execute("ExecuteStatement", {"Statement": select, "Parameters": [{"S": "open"}]})["Items"]
    assert found == [{"name": {"S": "train"}, "mail": {"S": "dana"}}]
    with pytest.raises(ConditionalCheckFailed):
        backend.execute("ExecuteStatement", {"Statement": delete})
    backend.execute("ExecuteStatement", {"Statement": other_update})
    key = {"TableName": "jobs", "Key": {"id": {"S": "42"}}}
    assert backend.execute("GetItem", key)["Item"]["runs"] == {"N": "2"}
    backend.close()

"""Tags of tables: given, replaced, listed, taken away."""

from __future__ import annotations

import pytest
from tests.embedded.table_definitions import BROKEN, INVALID, Request, globals_, index, table

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import RequestError, RequestRefused


def test_tags_are_added_replaced_listed_at_once_and_removed(engine: EmbeddedBackend) -> None:
    created = engine.execute("CreateTable", table(Tags=[{"Key": "team", "Value": "ml"}]))
    arn = created["TableDescription"]["TableArn"]
    tags = [{"Key": f"key {number:02}/ä", "Value": f"+-=._:@ {number}"} for number in range(12)]
    engine.execute("TagResource", {"ResourceArn": arn, "Tags": [*tags, {"Key": "team", "Value": "data"}]})
    listed = engine.execute("ListTagsOfResource", {"ResourceArn": arn})
    assert listed == {"Tags": [*tags, {"Key": "team", "Value": "data"}]}
    engine.execute("UntagResource", {"ResourceArn": arn, "TagKeys": [tag["Key"] for tag in tags] + ["unknown"]})
    assert engine.execute("ListTagsOfResource", {"ResourceArn": arn}) == {"Tags": [{"Key": "team", "Value": "data"}]}


def test_any_token_gives_the_first_page_of_tags(engine: EmbeddedBackend) -> None:
    tags = [{"Key": "team", "Value": "ml"}]
    arn = engine.execute("CreateTable", table(Tags=tags))["TableDescription"]["TableArn"]
    assert engine.execute("ListTagsOfResource", {"ResourceArn": arn, "NextToken": "x"}) == {"Tags": tags}


def test_tags_of_a_table_have_a_size_together(engine: EmbeddedBackend) -> None:
    tags = [{"Key": f"{number:02}" + "ä" * 126, "Value": "ß" * 128} for number in range(20)]
    arn = engine.execute("CreateTable", table(Tags=tags))["TableDescription"]["TableArn"]
    fill = {"Key": "fill", "Value": "x" * 36}
    engine.execute("TagResource", {"ResourceArn": arn, "Tags": [fill]})
    with pytest.raises(RequestRefused) as caught:
        engine.execute("TagResource", {"ResourceArn": arn, "Tags": [fill | {"Value": "x" * 37}]})
    assert caught.value.message == "Tag set size 10241 bytes is above max size limit of 10240 bytes"


TOO_MANY_TAGS = "Number of Tags exceed the current limit for the provided ResourceArn"


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        (None, f"{BROKEN}null at 'tags' failed to satisfy constraint: Member must not be null"),
        ([], "Atleast one Tag needs to be provided as Input."),
        ([{"Key": "", "Value": ""}], "The Tag Key provided is invalid, Key: "),
        ([{"Value": ""}], "The Tag Key provided is invalid, Key: null"),
        ([None], "The Tag Key provided is invalid, Key: null"),
        ([{"Key": "x" * 129, "Value": ""}], f"The Tag Key provided is invalid, Key: {'x' * 129}"),
        ([{"Key": "x", "Value": "y" * 257}], f"The Tag Value provided is invalid, Value: {'y' * 257}"),
        ([{"Key": "x"}], "The Tag Value provided is invalid, Value: null"),
        ([{"Key": "aws:x", "Value": ""}], "Tag Key cannot be prefixed with aws:, Key: aws:x"),
        ([{"Key": "x!", "Value": ""}], "The Tag Key provided is invalid, Key: x!"),
        ([{"Key": "x", "Value": "100%"}], "The Tag Value provided is invalid, Value: 100%"),
        (
            [{"Key": "x", "Value": "1"}, {"Key": "x", "Value": "2"}],
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found x",
        ),
        ([{"Key": str(number), "Value": ""} for number in range(51)], TOO_MANY_TAGS),
    ],
)
def test_tags_that_break_a_rule_are_refused(
    engine: EmbeddedBackend, tags: list[Request | None] | None, message: str
) -> None:
    arn = engine.execute("CreateTable", table())["TableDescription"]["TableArn"]
    with pytest.raises(RequestRefused) as caught:
        engine.execute("TagResource", {"ResourceArn": arn, "Tags": tags})
    assert caught.value.message == message
    assert engine.execute("ListTagsOfResource", {"ResourceArn": arn}) == {"Tags": []}


@pytest.mark.parametrize(
    ("keys_", "message"),
    [
        (None, f"{BROKEN}null at 'tagKeys' failed to satisfy constraint: Member must not be null"),
        ([], "Atleast one Tag Key needs to be provided as Input."),
        (["x" * 129], f"The Tag Key provided is invalid, Key: {'x' * 129}"),
        (["x", "AWS:x"], "Tag Key cannot be prefixed with aws:, Key: AWS:x"),
        ([str(number) for number in range(51)], TOO_MANY_TAGS),
    ],
)
def test_keys_of_tags_that_break_a_rule_are_refused(
    engine: EmbeddedBackend, keys_: list[str] | None, message: str
) -> None:
    arn = engine.execute("CreateTable", table())["TableDescription"]["TableArn"]
    with pytest.raises(RequestRefused) as caught:
        engine.execute("UntagResource", {"ResourceArn": arn, "TagKeys": keys_})
    assert caught.value.message == message


TABLE_ARN = "arn:aws:dynamodb:ddblocal:000000000000:table/tab"


@pytest.mark.parametrize(
    ("arn", "message"),
    [
        (None, "Invalid TableArn"),
        ("nonsense", f"{INVALID}ARNs must start with 'arn:': nonsense"),
        ("arn:aws:s3:::tab", f"{INVALID}Provided Arn is not a DynamoDB resource arn: arn:aws:s3:::tab"),
        (
            f"{TABLE_ARN}/index/ggg",
            f"{INVALID}Invalid resource arn provided, only table or stream is accepted. Provided resource arn:"
            f" {TABLE_ARN}/index/ggg",
        ),
        (
            f"{TABLE_ARN}/backup/01794979127170-3183c8ac",
            f"{INVALID}Provided Arn is not a DynamoDB resource arn: {TABLE_ARN}/backup/01794979127170-3183c8ac",
        ),
        (f"{TABLE_ARN}x", f"Requested resource not found: ResourceArn: {TABLE_ARN}x not found"),
        (
            f"{TABLE_ARN}/stream/2026-01-01T00:00:00.000",
            f"Requested resource not found: ResourceArn: {TABLE_ARN}/stream/2026-01-01T00:00:00.000 not found",
        ),
    ],
)
def test_only_tables_have_tags(engine: EmbeddedBackend, arn: str | None, message: str) -> None:
    engine.execute("CreateTable", globals_(index("ggg", "a")))
    with pytest.raises(RequestError) as caught:
        engine.execute("ListTagsOfResource", {"ResourceArn": arn})
    assert caught.value.message == message
    assert (caught.value.code == "ResourceNotFoundException") == ("not found" in message)

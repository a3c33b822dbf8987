"""The scripted server runs batches as OpenAI does: in steps, with a file of answers and one of errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import openai
import pytest
from openai.types import Batch

from jobtable.testing.assist import AssistServer, Question, Reply, failing

CHAT: Final = "/v1/chat/completions"


def script(question: Question) -> Reply | None:
    return failing("refused", message="too rude") if question.prompt == "rude" else None


@pytest.fixture
def server() -> Iterator[AssistServer]:
    with AssistServer(script) as running:
        yield running


@pytest.fixture
def client(server: AssistServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.openai_url, api_key="a key", max_retries=0) as opened:
        yield opened


def line(custom_id: str, prompt: str, url: str = CHAT) -> dict[str, Any]:
    body = {"model": "a-model", "messages": [{"role": "user", "content": prompt}]}
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


def submit(client: openai.OpenAI, *lines: Any, key: str = "k") -> Batch:
    """Upload lines and start a batch of them."""
    content = b"".join(each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in lines)
    headers = {"Idempotency-Key": f"{key}-file"}
    file = client.files.create(file=("in.jsonl", content), purpose="batch", extra_headers=headers)
    return client.batches.create(
        input_file_id=file.id,
        endpoint=CHAT,
        completion_window="24h",
        metadata={"job": key},
        extra_headers={"Idempotency-Key": f"{key}-batch"},
    )


def statuses(client: openai.OpenAI, batch: Batch) -> list[str]:
    """Look at a batch until it ends; return what was seen."""
    seen: list[str] = [batch.status]
    while seen[-1] not in ("completed", "failed", "expired", "cancelled"):
        seen.append(client.batches.retrieve(batch.id).status)
    return seen


def results(client: openai.OpenAI, file: str | None) -> dict[str, Any]:
    assert file is not None
    found = [json.loads(each) for each in client.files.content(file).text.splitlines()]
    return {each["custom_id"]: each for each in found}


def test_a_batch_goes_through_its_steps_and_charges_each_answer(server: AssistServer, client: openai.OpenAI) -> None:
    batch = submit(client, line("one", "1"), line("two", "2"), line("three", "rude"))

    assert statuses(client, batch) == ["validating", "in_progress", "finalizing", "completed"]
    ended = client.batches.retrieve(batch.id)
    answers, errors = results(client, ended.output_file_id), results(client, ended.error_file_id)
    assert list(answers) == ["two", "one"]
    assert answers["one"]["response"]["body"]["choices"][0]["message"]["content"] == "You said: 1"
    assert errors["three"]["response"]["body"]["error"]["message"] == "too rude"
    assert ended.request_counts is not None
    assert ended.request_counts.model_dump() == {"total": 3, "completed": 2, "failed": 1}
    assert [(each.custom_id, each.batch_id) for each in server.charges] == [("one", batch.id), ("two", batch.id)]


def test_a_batch_that_is_created_again_with_its_key_is_the_same_one(
    server: AssistServer, client: openai.OpenAI
) -> None:
    first, second = (submit(client, line("one", "1")) for _ in range(2))

    assert first.id == second.id
    assert len(list(client.files.list())) == len(list(client.batches.list())) == 1
    assert submit(client, line("one", "1"), key="other").id != first.id
    assert [each.metadata for each in client.batches.list(limit=1)] == [{"job": "other"}, {"job": "k"}]


def test_an_expired_batch_has_the_answers_it_made_and_says_what_is_left(
    server: AssistServer, client: openai.OpenAI
) -> None:
    server.options.lines_until_expiry = 1

    batch = submit(client, line("one", "1"), line("two", "2"))

    assert statuses(client, batch)[-1] == "expired"
    ended = client.batches.retrieve(batch.id)
    assert list(results(client, ended.output_file_id)) == ["one"]
    assert results(client, ended.error_file_id)["two"]["error"]["code"] == "batch_expired"
    assert len(server.charges) == 1


def test_a_cancelled_batch_keeps_what_is_done(server: AssistServer, client: openai.OpenAI) -> None:
    batch = submit(client, line("one", "1"), line("two", "2"))
    client.batches.retrieve(batch.id)

    assert client.batches.cancel(batch.id).status == "cancelling"
    ended = client.batches.retrieve(batch.id)
    assert (ended.status, list(results(client, ended.output_file_id))) == ("cancelled", ["one"])
    assert results(client, ended.error_file_id)["two"]["error"]["code"] == "batch_cancelled"
    with pytest.raises(openai.ConflictError):
        client.batches.cancel(batch.id)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([], "empty_file"),
        ([b"{\n"], "invalid_json_line"),
        ([line("one", "1"), line("one", "2")], "duplicate_custom_id"),
        ([line("one", "1", url="/v1/embeddings")], "invalid_url"),
        ([{"custom_id": "one", "method": "POST", "url": CHAT}], "missing_required_parameter"),
    ],
)
def test_a_batch_with_an_invalid_line_fails_as_a_whole(
    server: AssistServer, client: openai.OpenAI, lines: list[Any], code: str
) -> None:
    batch = submit(client, *lines)

    assert statuses(client, batch) == ["validating", "failed"]
    errors = client.batches.retrieve(batch.id).errors
    assert errors is not None
    assert [each.code for each in errors.data or []] == [code]
    assert server.charges == []


def test_the_steps_of_a_batch_fail_as_scripted(server: AssistServer, client: openai.OpenAI) -> None:
    server.script(Reply(loses="answer"), operation="batches.create")
    server.script(failing("overloaded"), Reply(cut_after=5), operation="files.content")

    with pytest.raises(openai.APIConnectionError):
        submit(client, line("one", "1"))
    (batch,) = client.batches.list()
    assert submit(client, line("one", "1")).id == batch.id
    assert statuses(client, batch)[-1] == "completed"
    output = client.batches.retrieve(batch.id).output_file_id
    with pytest.raises(openai.InternalServerError):
        results(client, output)
    with pytest.raises(openai.APIConnectionError):
        results(client, output)
    assert list(results(client, output)) == ["one"]


def test_files_are_listed_and_deleted(client: openai.OpenAI) -> None:
    content = b'{"text": "\r\n--x"}\n'
    file = client.files.create(file=("a.jsonl", content), purpose="batch")

    assert client.files.content(file.id).content == content
    assert client.files.retrieve(file.id).bytes == len(content)
    assert client.files.delete(file.id).deleted
    assert list(client.files.list(purpose="batch")) == []
    for act in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError):
            act(file.id)
    with pytest.raises(openai.NotFoundError):
        client.batches.create(input_file_id=file.id, endpoint=CHAT, completion_window="24h")

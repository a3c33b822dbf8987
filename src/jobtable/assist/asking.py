"""Questions to models: asked, checked, and asked again with the fault of an invalid answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel

from jobtable.assist.answer_reading import LONGEST_ANSWER, AnswerShape, BadAnswerError, read_answer
from jobtable.assist.entities import AssistCall, CallStatus
from jobtable.assist.providers import ChatAnswer, ChatRequest, Usage
from jobtable.assist.quoting import RULE, quoted_all
from jobtable.assist.sending import Sender, Source
from jobtable.assist.verbs import CallPlan, Ledger
from jobtable.errors import AnswerRefusedError, ValueRefusedError
from jobtable.jobs.report.assistant import Assisted, Cache, Data, Message, Prompt

LONGEST_PURPOSE = 100
HIGHEST_TEMPERATURE = 2
_ROLES = ("system", "user", "assistant")
_MOST_REQUESTS = 100
"""Of one question, over all runs of its job."""
_LONGEST_QUOTE = 4_000
"""Characters of an invalid answer, and of the schema, that are sent back."""
_NO_TEXT = "(nothing)"


@dataclass(frozen=True)
class Question:
    """What a task wants to know, and how."""

    purpose: str
    messages: tuple[Message, ...]
    shape: AnswerShape[Any] | None
    temperature: float = 0.0
    max_output_tokens: int = 1024
    tries: int = 3
    cache: Cache = "job"

    def request(self, model: str, refused: Refused | None) -> ChatRequest:
        """Return the next request: the question, and the last invalid answer with its fault."""
        again = () if refused is None else refused.messages(self.shape)
        shape = self.shape
        return ChatRequest(
            model=model,
            messages=(*self.messages, *again),
            schema=None if shape is None else shape.schema,
            schema_name="answer" if shape is None else shape.name,
            temperature=self.temperature,
            max_output_tokens=self.max_output_tokens,
        )


@dataclass(frozen=True)
class Refused:
    """An answer that was not valid."""

    call: AssistCall
    number: int
    text: str
    fault: str

    def messages(self, shape: AnswerShape[Any] | None) -> tuple[Message, Message]:
        """Return the answer and what to do better. The number makes each request another one, found by its hash."""
        return messages_sending_back(self.text, f"Answer {self.number} is not valid: {self.fault}", shape)


def messages_sending_back(text: str, fault: str, shape: AnswerShape[Any] | None) -> tuple[Message, Message]:
    """Return an invalid answer as the model returned it, and what is wrong with it."""
    wanted = ""
    if shape is not None:
        schema = json.dumps(shape.schema, ensure_ascii=False, separators=(",", ":"))
        wanted = " Return only JSON, without explanations."
        if len(schema) <= _LONGEST_QUOTE:
            wanted += f" This is its JSON schema: {schema}"
    return (
        {"role": "assistant", "content": _shortened(text) if text.strip() else _NO_TEXT},
        {"role": "user", "content": f"{fault}. Answer the question again.{wanted}"},
    )


class Asker:
    """Asks the questions of one run of a job."""

    def __init__(self, ledger: Ledger, sender: Sender) -> None:
        self._ledger = ledger
        self._sender = sender

    def ask(self, question: Question, source: Source) -> Assisted[Any]:
        """Return the first valid answer. AnswerRefusedError if there is none after `tries` requests of this run.

        Invalid answers of earlier runs are not paid for again: the question continues after them.
        """
        calls: list[AssistCall] = []
        faults: list[str] = []
        refused: Refused | None = None
        sent = 0
        while True:
            request = question.request(source.model, refused)
            plan = self._plan(question, source, request, refused, attempt=len(calls) + 1)
            made = self._sender.make(plan, source, _Chat(source, request))
            sent += made.was_sent
            try:
                value = read_answer(made.answer, question.shape)
            except BadAnswerError as bad:
                calls.append(self._refused(made.call, str(bad)))
                faults.append(str(bad))
                refused = Refused(made.call, len(calls), made.answer.text, str(bad))
                is_over = sent >= question.tries or len(calls) >= _MOST_REQUESTS or (bad.is_refusal and made.was_sent)
                if is_over:
                    raise _no_answer(question, source, faults) from None
            else:
                return _assisted(value, source, [*calls, made.call])

    def skip(self, question: Question) -> AssistCall:
        """Record that no model was asked."""
        request = question.request("none", None)
        text = request_text("none", request)
        return self._ledger.skip(
            CallPlan(question.purpose, "chat", "none", "none", text, Usage(), cache=question.cache)
        )

    def _plan(
        self, question: Question, source: Source, request: ChatRequest, refused: Refused | None, attempt: int
    ) -> CallPlan:
        text = request_text(source.provider.name, request)
        return CallPlan(
            purpose=question.purpose,
            kind="chat",
            provider=source.provider.name,
            model=source.model,
            request=text,
            most_usage=Usage(most_tokens(text), request.max_output_tokens),
            attempt=attempt,
            follows=None if refused is None else refused.call.call_id,
            cache=question.cache,
            price=source.prices.find(source.provider.kind, source.model),
        )

    def _refused(self, call: AssistCall, fault: str) -> AssistCall:
        return call if call.status is CallStatus.REFUSED else self._ledger.refuse(call, fault)


def request_text(provider: str, request: Any) -> str:
    """Return a whole request as JSON: what is recorded, and hashed to find it again."""
    return json.dumps({"provider": provider, **asdict(request)}, ensure_ascii=False, separators=(",", ":"))


def most_tokens(text: str) -> int:
    """Return an upper bound of the tokens of a text: none is shorter than a byte of UTF-8."""
    return len(text.encode())


def messages_of(prompt: Prompt, data: Data | None) -> tuple[Message, ...]:
    """Return the messages of a prompt, and after them the data of others, marked as such; or ValueRefusedError."""
    given: Sequence[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    messages = [_message(each, number) for number, each in enumerate(given, start=1)]
    if not messages:
        raise ValueRefusedError("a prompt needs at least one message")
    if data is None:
        return tuple(messages)
    return ({"role": "system", "content": RULE}, *messages, _message({"role": "user", "content": quoted_all(data)}, 0))


def _message(message: Mapping[str, Any], number: int) -> Message:
    role, content = message.get("role"), message.get("content")
    if message.keys() != {"role", "content"} or role not in _ROLES or not isinstance(content, str):
        raise ValueRefusedError(
            f"message {number} of the prompt must be a role ({', '.join(_ROLES)}) and a content, which is a text"
        )
    return {"role": role, "content": valid_text(content, f"message {number}" if number else "data")}


def valid_text(text: str, what: str) -> str:
    """Return a text if it can be sent; ValueRefusedError if it is blank or not valid Unicode."""
    if not text.strip():
        raise ValueRefusedError(f"{what} is blank; a model needs a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueRefusedError(
            f"{what} is not valid Unicode at character {error.start}; replace lone surrogates"
        ) from error
    return text


def question_of(
    purpose: str, prompt: Prompt, output: type[BaseModel] | None, data: Data | None, **how: Any
) -> Question:
    """Return a question, or raise ValueRefusedError for values that no question can have."""
    check_purpose(purpose)
    question = Question(purpose, messages_of(prompt, data), None if output is None else AnswerShape.of(output), **how)
    if question.tries < 1 or question.max_output_tokens < 1:
        raise ValueRefusedError("tries and max_output_tokens must be at least 1")
    if not 0 <= question.temperature <= HIGHEST_TEMPERATURE:
        raise ValueRefusedError(f"temperature must be from 0 to {HIGHEST_TEMPERATURE}, not {question.temperature}")
    return question


def check_purpose(purpose: str) -> None:
    """Raise ValueRefusedError for a text that cannot be the purpose of a call."""
    if not purpose.strip() or len(purpose) > LONGEST_PURPOSE or not purpose.isprintable():
        raise ValueRefusedError(
            f"a purpose must have 1 to {LONGEST_PURPOSE} printable characters, not {purpose[:LONGEST_PURPOSE]!r}"
        )


@dataclass(frozen=True)
class _Chat:
    """A text is recorded as it is, or with the reason for which it ended early; and only as far as it is read."""

    source: Source
    request: ChatRequest

    def ask(self, key: str) -> ChatAnswer:
        return self.source.provider.chat(self.request, call_id=key, timeout_seconds=self.source.timeout_seconds)

    def recall(self, key: str) -> ChatAnswer | None:
        return self.source.provider.recall(self.request, call_id=key, timeout_seconds=self.source.timeout_seconds)

    def recorded(self, answer: ChatAnswer) -> Any:
        text = answer.text[: LONGEST_ANSWER + 1].encode("utf-8", "replace").decode()
        return text if answer.finish == "stop" else {"text": text, "finish": answer.finish}

    def restored(self, call: AssistCall, recorded: Any) -> ChatAnswer:
        text, finish = (recorded, "stop") if isinstance(recorded, str) else (recorded["text"], recorded["finish"])
        usage = Usage(call.tokens_in, call.tokens_out)
        return ChatAnswer(text, usage, call.answered_by or call.model, finish)


def _assisted(value: Any, source: Source, calls: Sequence[AssistCall]) -> Assisted[Any]:
    return Assisted(
        value=value,
        was_asked=True,
        provider=source.provider.name,
        model=calls[-1].answered_by or source.model,
        call_ids=tuple(call.call_id for call in calls),
        cost_nanodollars=sum(call.cost_nanodollars for call in calls),
    )


def _no_answer(question: Question, source: Source, faults: Sequence[str]) -> AnswerRefusedError:
    told = "; ".join(f"{number}: {fault}" for number, fault in enumerate(faults, start=1))
    asked = f"{source.model} of {source.provider.name}"
    return AnswerRefusedError(f"{asked} has no valid answer for {question.purpose!r} ({told})", tuple(faults))


def _shortened(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]} [... {len(text) - _LONGEST_QUOTE:,} more]"

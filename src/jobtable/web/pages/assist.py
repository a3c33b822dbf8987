"""The pages of models that were asked: what they cost, and one call with prompt and answer."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date as Date  # noqa: N812 - a field is called date
from datetime import timedelta
from itertools import accumulate
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from jobtable.assist.budgets import Budget
from jobtable.assist.call_texts import answer_key
from jobtable.assist.costs import AssistReads, CostField, CostSum, Used
from jobtable.assist.entities import AssistCall, AssistTotal
from jobtable.assist.prices import NANODOLLARS
from jobtable.errors import SettingsError, ValueRefusedError
from jobtable.jobs.stored.entities import Job
from jobtable.store import Page
from jobtable.web.api.assist import CallId
from jobtable.web.formats import pretty
from jobtable.web.guard import READ, allow
from jobtable.web.injection import JobId, TheAssist, TheStore
from jobtable.web.pages.frame import page_router, render
from jobtable.web.pages.machines import shown_json

router = page_router()

_CALLS_OF_JOB = 20
_LATEST = 20
_MOST_GROUPS = 50
"""Rows of a table of costs; the cheapest are left out."""
_MOST_MESSAGES = 200
_MOST_LETTERS = 500_000
_CONTENT = ("messages", "texts", "requests", "schema")
"""Members of a request that are shown by themselves."""
_TABLES: tuple[tuple[str, tuple[CostField, ...]], ...] = (
    ("By model", ("provider", "model")),
    ("By purpose", ("purpose",)),
)
"""Beside the chart: the last field names a row, the first is under it."""
_FLOAT_BYTES = 4
_COLOURS = 10
"""The palette of plots.js."""


@dataclass(frozen=True)
class ModelsAsked:
    """The calls of a job, newest first, and what they and those of its tree have used."""

    calls: Page[AssistCall]
    job: AssistTotal | None
    tree: AssistTotal | None
    is_first: bool
    budget: Budget

    @property
    def held(self) -> AssistTotal:
        """What is used and reserved of the budget."""
        return self.tree or AssistTotal(job_id=self.budget.job_id, scope="tree")

    @property
    def totals(self) -> list[tuple[str, AssistTotal]]:
        """The totals by their names; that of the tree only if others in it asked."""
        of_tree = self.tree if self.job is None or (self.tree and self.tree.calls != self.job.calls) else None
        return [(name, total) for name, total in (("This job", self.job), ("Its tree", of_tree)) if total is not None]


def models_asked(assist: AssistReads, job: Job, cursor: str) -> ModelsAsked | None:
    """Return what a job has asked of models; None if it has no budget and neither it nor its tree asked."""
    job_id, budget = job.job_id, Budget.of(job)
    calls = assist.list_calls(job_id, newest_first=True).page(cursor or None, size=_CALLS_OF_JOB)
    of_job, of_tree = assist.find_total(job_id), assist.find_total(job_id, "tree")
    if not calls.items and of_job is of_tree is None and not budget.is_limited:
        return None
    return ModelsAsked(calls, of_job, of_tree, not cursor, budget)


class Span(BaseModel):
    """The days of the page of costs, as its form sends them; empty for the last month."""

    from_: str = Field("", alias="from")
    to: str = ""

    def days(self) -> tuple[Date | None, Date | None]:
        """Return the first and the last day, or raise ValueRefusedError."""
        return _day(self.from_), _day(self.to)


def _day(text: str) -> Date | None:
    try:
        return Date.fromisoformat(text) if text else None
    except ValueError as error:
        raise ValueRefusedError(f"{text[:40]!r} is not a day; write it as in 2025-11-01") from error


@router.get("/assist")
@allow(READ)
def show_costs(request: Request, assist: TheAssist, span: Annotated[Span, Query()]) -> Response:
    """Show what models cost in some days, and the providers."""
    first, last = assist.span(*span.days())
    by_day = assist.sum_costs(["date", "system"], first=first, last=last)
    total = Used()
    for each in by_day:
        total.add(each)
    return render(
        request,
        "assist/costs.html",
        title="Assistants",
        first=first,
        last=last,
        total=total,
        plots=_plots(by_day, first, last),
        tables=[
            (title, fields, assist.sum_costs(fields, first=first, last=last)[:_MOST_GROUPS])
            for title, fields in _TABLES
        ],
        latest=assist.list_calls_of_day(last, newest_first=True).page(size=_LATEST).items,
        most_groups=_MOST_GROUPS,
        **_providers(assist),
    )


def _providers(assist: AssistReads) -> dict[str, Any]:
    """Return the providers, or why their settings cannot be read: the costs are shown all the same."""
    try:
        return {"providers": assist.list_providers(), "problem": None}
    except SettingsError as error:
        return {"providers": [], "problem": str(error)}


_MEASURES: tuple[tuple[str, str, Callable[[Used], float]], ...] = (
    ("Cost per day in dollars", "$,.4~f", lambda used: used.cost_nanodollars / NANODOLLARS),
    ("Tokens per day", ",.3~s", lambda used: used.tokens_in + used.tokens_out),
)
"""What is plotted: title, plotly.js number format, and value."""


def _plots(sums: list[CostSum], first: Date, last: Date) -> list[dict[str, Any]]:
    """Return a plot of the cost of each day, if there was one, and one of the tokens."""
    days = [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]
    systems = sorted({each.system or "" for each in sums})
    found = []
    for title, form, measure in _MEASURES:
        values = {(each.system, str(each.date)): measure(each) for each in sums}
        if any(values.values()):
            traces = [
                {
                    "type": "bar",
                    "name": system,
                    "x": days,
                    "y": [values.get((system, day), 0) for day in days],
                    "palette": number % _COLOURS,
                }
                for number, system in enumerate(systems)
            ]
            found.append({"title": title, "traces": traces, "isByDay": True, "isStacked": True, "format": form})
    return found


@dataclass(frozen=True)
class ShownMessage:
    """A message of a prompt, as text."""

    role: str
    text: str


@router.get("/assist/calls/{job_id}/{call_id}")
@allow(READ)
def show_call(request: Request, job_id: JobId, call_id: CallId, assist: TheAssist, store: TheStore) -> Response:
    """Show a call with its prompt and its answer."""
    whole = assist.read_call(job_id, call_id)
    sent = whole.request or {}
    messages = list(_messages(sent))
    about = next(iter(sent.get("requests", ())), {}) | sent  # the lines of a batch are alike
    return render(
        request,
        "assist/call.html",
        title=whole.call.purpose,
        call=whole.call,
        job=store.find(Job.key(job_id=job_id)),
        next_call_id=whole.next_call_id,
        is_sent_known=whole.request is not None,
        messages=_first(messages),
        message_count=len(messages),
        schema=pretty(about["schema"]) if about.get("schema") else "",
        settings={name: value for name, value in about.items() if name not in _CONTENT},
        answer=_answer(whole.answer),
        finish=whole.answer.get("finish") if isinstance(whole.answer, dict) else None,
        answer_key=answer_key(whole.call),
    )


def _first(messages: list[ShownMessage]) -> list[ShownMessage]:
    """Return the messages that a page can show: so many, and none after so many characters."""
    letters = accumulate((len(each.text) for each in messages), initial=0)
    return [each for each, before in zip(messages[:_MOST_MESSAGES], letters, strict=False) if before < _MOST_LETTERS]


def _messages(sent: dict[str, Any]) -> Iterator[ShownMessage]:
    """Yield what was said: messages, texts, or the lines of a batch."""
    for each in sent.get("messages", ()):
        yield ShownMessage(str(each.get("role", "?")), _content(each.get("content")))
    for number, text in enumerate(sent.get("texts", ()), start=1):
        yield ShownMessage(f"text {number}", text)
    for number, line in enumerate(sent.get("requests", ()), start=1):
        yield ShownMessage(f"line {number}", "\n\n".join(each.text for each in _messages(line)))


def _content(content: Any) -> str:
    """Return the content of a message: a text, or parts of several kinds."""
    return content if isinstance(content, str) else pretty(content)


def _answer(answer: Any) -> str:
    """Return an answer as people read it: vectors by their number, JSON indented, other text as it is."""
    match answer:
        case None:
            return ""
        case str():
            return shown_json(answer)
        case {"text": str(text), "finish": str()}:  # it ended early
            return shown_json(text)
        case {"dimensions": int(dimensions), "float32": str(data)}:
            count = len(b64decode(data)) // (_FLOAT_BYTES * dimensions)
            return f"{count:,} vector{'' if count == 1 else 's'} of {dimensions:,} numbers"
    return pretty(answer)

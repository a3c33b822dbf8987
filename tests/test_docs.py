"""The documentation is true: its code runs, and its links lead somewhere."""

from __future__ import annotations

import asyncio
import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobtable import connect
from jobtable.assist.assist_settings import AssistSettings, ProviderSettings
from jobtable.cli.main import commands, load
from jobtable.errors import ConditionFailedError
from jobtable.jobs import NewJob
from tests.samples import Job, main
from tests.web.pictures import MOST_BYTES

ROOT = Path(__file__).parent.parent
ELSEWHERE = ("evals", "notes")
"""Commands of examples, which their own tests run."""
NO_MODULES = re.compile(r"jobtable\.(?:toml|env|md|worker|db(?:\.objects)?)")
"""Files, and a logger."""

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def run(block: str, namespace: dict[str, Any]) -> None:
    exec(compile(block, "documentation", "exec", dont_inherit=True), namespace)


def test_the_readme_example_runs_and_is_short(tmp_path: Path) -> None:
    block, *_ = python_blocks("README.md")
    assert len([line for line in block.splitlines() if line.strip()]) <= 20
    (tmp_path / "example.py").write_text(block)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "status='RUNNING'" in done.stdout


def test_the_readme_job_runs(tmp_path: Path) -> None:
    _, block, tasks = python_blocks("README.md")
    (tmp_path / "mathtasks.py").write_text(tasks)
    (tmp_path / "example.py").write_text(block)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


def test_the_map_names_every_package_and_module_of_jobs() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"\b(\w+\.py)\b", page))
    package = ROOT / "src/jobtable"
    top_level = {path.name for folder in (package, package / "jobs") for path in folder.glob("[a-z]*.py")}
    assert top_level - named == set()
    assert {name for name in named if not any(package.rglob(name))} == set()
    packages = [init.parent for pattern in ("*", "*/*") for init in package.glob(f"{pattern}/__init__.py")]
    assert {each.name for each in packages if f"{each.name}/" not in page} == set()


def test_the_examples_of_jobs_run() -> None:
    for block in python_blocks("docs/guides/jobs.md"):
        namespace: dict[str, Any] = {}
        run(block, namespace)
        namespace["jobs"].store.close()


def test_the_examples_of_the_model_run() -> None:
    namespace: dict[str, Any] = {"__name__": "model_examples"}
    for block in python_blocks("docs/guides/model.md"):
        run(block, namespace)
    assert namespace["JobMetric"].__schema__.table is namespace["main"]


def test_the_examples_of_the_store_run() -> None:
    with connect("memory:") as store:
        store.tables.create(main)
        one, other = (Job.model_validate({"job_id": i, "created_at": "2025-01-01", "created_by": "a"}) for i in "12")
        store.add(one)
        for block in python_blocks("docs/guides/store.md"):
            run(block, {"store": store, "Job": Job, "j": "1", "status": other})
        assert store.get(Job.key(job_id="1")).status == "RUNNING"
        assert store.find(Job.key(job_id="2")) is not None


def test_the_recipes_work() -> None:
    namespace: dict[str, Any] = {"__name__": "recipes"}
    for block in python_blocks("docs/guides/recipes.md"):
        run(block, namespace)
    _try_locks_and_edits(**namespace)
    asyncio.run(_try_the_app(namespace["app"]))
    _try_an_older_shape(namespace["store"], namespace["evals"], namespace["Result"])
    namespace["test_a_lock_expires"]()
    namespace["store"].close()


def test_the_examples_of_asking_run() -> None:
    example, budget, scripted, batch = python_blocks("docs/guides/asking.md")
    assert example.strip() in (ROOT / "examples" / "feedback" / "feedback.py").read_text()
    namespace: dict[str, Any] = {"NewJob": NewJob, "comments": ["late"]}
    run(budget, namespace)
    assert namespace["budgeted"].job_config()["max_cost"] == 0.5
    run(scripted, namespace)
    assert namespace["answer"] == "Lima"
    assert len(namespace["charged"]) == 1
    provider = ProviderSettings(kind="openai", model="any-model")
    namespace["settings"] = AssistSettings(provider="test", providers={"test": provider})
    run(batch, namespace)
    assert namespace["waiting"] == ["What kind of thing is Lima?", "What kind of thing is 7?"]


def _try_locks_and_edits(store: Any, locked: Any, edit: Any, Lock: Any, Prompt: Any, **_: Any) -> None:  # noqa: N803
    with locked("x", "ann"), pytest.raises(ConditionFailedError) as held, locked("x", "bob"):
        pass
    assert held.value.current.holder == "ann"
    with locked("x", "bob"):
        assert store.get(Lock.key(name="x")).holder == "bob"
    assert store.find(Lock.key(name="x")) is None
    store.add(Lock(name="x", holder="ann", expires_at=1))
    with locked("x", "bob"):
        pass
    prompt = Prompt(name="first", text="a", changed_at="2025-01-01")
    store.add(prompt)
    assert edit(prompt, "b").version == 2
    with pytest.raises(ConditionFailedError):
        edit(prompt, "c")


async def _try_the_app(app: Any) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        new = {"name": "second", "text": "a", "changed_at": "2025-01-02T00:00:00Z"}
        answers = [await client.post("/prompts", json=new) for _ in range(2)]
        answers += [await client.get("/prompts/second"), await client.get("/prompts/none")]
        answers += [await client.get("/prompts", params={"cursor": "made up"})]
        assert [answer.status_code for answer in answers] == [201, 409, 200, 404, 400]
        page = (await client.get("/prompts")).json()
    assert [prompt["name"] for prompt in page["items"]] == ["second", "first"]


def _try_an_older_shape(store: Any, table: Any, result: Any) -> None:
    item = {"PK": {"S": "RUN#r"}, "SK": {"S": "RESULT#00001"}, "TYPE": {"S": "RESULT"}, "text": {"S": "yes"}}
    store.backend.execute("PutItem", {"TableName": "evals", "Item": {**item, "score": {"S": "87%"}}})
    assert store.tables.rekey(table) == 1
    (found,) = store.query(result.by_score(run_id="r"))
    assert (found.answer, found.score, found.model) == ("yes", 0.87, "unknown")
    store.put(found)
    assert store.get(result.key(run_id="r", number=1)) == result(run_id="r", number=1, answer="yes", score=0.87)


@pytest.mark.parametrize("page", ["adopting", "embedded"])
def test_the_examples_of_tests_run(tmp_path: Path, page: str) -> None:
    (tmp_path / "test_example.py").write_text("\n".join(python_blocks(f"docs/guides/{page}.md")))
    command = [sys.executable, "-m", "pytest", "--quiet", "test_example.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_examples_of_objects_run() -> None:
    namespace: dict[str, Any] = {}
    for block in python_blocks("docs/guides/objects.md"):
        run(block, namespace)
    assert namespace["info"].size == 11


def test_the_examples_of_the_systems_run() -> None:
    namespace: dict[str, Any] = {}
    for block in python_blocks("docs/systems/index.md"):
        run(block, namespace)
    assert namespace["waiting"] == ["grid"]
    assert namespace["best"].child_job_id == "trial-7"
    assert namespace["execution"].execution_number == 1
    assert namespace["embeddings"] == [namespace["made"]]
    assert namespace["found"] == [namespace["album"]]
    namespace["store"].close()


def test_the_examples_of_journeys_run(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "journey_examples", "folder": tmp_path}
    for block in python_blocks("docs/systems/journeys.md"):
        run(block, namespace)
    assert namespace["finished"].status == "completed"
    assert len(namespace["recent"]) == len(namespace["every_line"]) > 0
    assert {report["reportType"] for report in namespace["reports"]} >= {"summary", "performance", "timeline"}
    assert namespace["imported"].items == namespace["exported"].items


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def commands_in(page: str) -> Iterator[str]:
    """Every use of the command `jobtable` on a page, in the shell's blocks and in the text, without the name itself."""
    for block in re.findall(r"```(?:sh|console|ini|cron)\n(.*?)```", page, re.DOTALL):
        for line in block.splitlines():
            yield from re.findall(r"(?:^|[ (/])jobtable ([^|>)#&;]*)", line)
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    yield from re.findall(r"`jobtable ([^`]+)`", text)


def command_at(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words begin with, and what is left of them."""
    name, *rest = words
    aliases = {each.alias: full for full, (_, each) in commands().items() if each.alias}
    assert name in {*commands(), *aliases}, f"there is no command {name}"
    command = load(aliases.get(name, name))
    while rest and hasattr(command, "commands"):
        assert rest[0] in command.commands, f"{name} has no {rest[0]}"
        command = command.commands[rest.pop(0)]
    return command, rest


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_is_one(page: Path) -> None:
    for text in commands_in(page.read_text()):
        words = shlex.split(text.split(" > ")[0])
        if words[0].startswith("-") or words[0] in ("COMMAND", *ELSEWHERE):
            continue
        command, options = command_at(words)
        if not hasattr(command, "commands"):
            context = command.context_class(command, info_name=text)
            command.make_parser(context).parse_args(options)  # raises for an option that is not there


def test_the_pictures_of_the_readme_are_small() -> None:
    named = re.findall(r"docs/pictures/[\w-]+\.png", (ROOT / "README.md").read_text())
    there = {f"docs/pictures/{file.name}" for file in (ROOT / "docs/pictures").iterdir()}
    assert set(named) == there
    for name in named:
        picture = (ROOT / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) <= MOST_BYTES, name


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        linked = [(page.parent / link).resolve() for link in re.findall(r"\]\(([^)#:]+\.md)", page.read_text())]
        waiting += [each for each in linked if each.exists()]
    assert set(PAGES) - reached == set()


def test_every_field_type_and_verb_is_documented() -> None:
    model = (ROOT / "docs/guides/model.md").read_text()
    for name in (
        "Timestamp",
        "Uuid",
        "Vector",
        "PackedVector",
        "Json",
        "Part",
        "OrNull",
        "Stored",
        "Attr",
        "Name",
        "Beside",
    ):
        assert f"`{name}" in model or f"[{name}" in model or f"{name}(" in model, name
    store_page = (ROOT / "docs/guides/store.md").read_text()
    store = connect("memory:")
    verbs = [n for n in dir(store) if not n.startswith("_") and callable(getattr(store, n))]
    missing = [verb for verb in verbs if verb not in store_page and verb not in ("ask", "close", "table_name")]
    store.close()
    assert missing == []


def _exists(dotted: str) -> bool:
    """Whether a dotted name is a module of the package, or something in one."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[end:])
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_module_and_file_that_is_named_exists(page: Path) -> None:
    text = page.read_text()
    dotted = {name for name in re.findall(r"\bjobtable(?:\.\w+)+", text) if not NO_MODULES.fullmatch(name)}
    assert {name for name in dotted if not _exists(name)} == set()
    files = set(re.findall(r"`((?:[a-z]\w*/)+(?:\w+\.py)?)`", text))
    assert {name for name in files if not ((ROOT / name).exists() or any((ROOT / "src").rglob(name)))} == set()

"""`--module`: tables that a program of one's own declares are made, compared, deployed and copied like the others."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from jobtable import connect
from jobtable.cli.main import app

TABLE = """
from jobtable import Index, Table

evals = Table("evals", pk="PK", type_attribute="TYPE", indexes=[{indexes}])
"""
ENTITIES = """
import eval_tables
from jobtable import Entity, Key


class Run(Entity, table=eval_tables.evals, type="RUN"):
    key = Key("RUN#{{name}}")
    {by_owner}

    name: str
    owner: str
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


class Program:
    """A program with a table in one module and its entities in another, as it grows."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self.write("", "")

    def write(self, indexes: str, by_owner: str) -> None:
        (self._folder / "eval_tables.py").write_text(TABLE.format(indexes=indexes))
        (self._folder / "eval_model.py").write_text(ENTITIES.format(by_owner=by_owner))
        for name in ("eval_tables", "eval_model"):
            self._monkeypatch.delitem(sys.modules, name, raising=False)

    @property
    def entity(self) -> Any:
        """The entity as the program declares it now."""
        return importlib.import_module("eval_model").Run


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)  # the second text may come within the second of the first
    return Program(tmp_path, monkeypatch)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'own.db'}"


def test_tables_of_a_module_grow_with_it(program: Program, url: str) -> None:
    own = ("--module", "eval_model", "--store", url)
    assert run("tables", "create", *own).output == "evals created\n"
    assert json.loads(run("tables", "list", *own, "--json").output) == [
        {"table": "evals", "deployed": True, "entities": 1}
    ]
    with connect(url) as store:
        store.add(program.entity(name="a", owner="ann"))
    program.write('Index("GSI1", "GSI1PK")', 'by_owner = Key("OWNER#{owner}", index="GSI1")')
    assert "index GSI1 is declared, but not deployed" in run("tables", "diff", *own).output
    assert json.loads(run("tables", "update", *own, "--json").stdout) == [{"table": "evals", "added": "index GSI1"}]
    with connect(url) as store:
        assert [each.name for each in store.query(program.entity.by_owner(owner="ann"))] == ["a"]


@pytest.mark.usefixtures("program")
def test_a_template_has_the_tables_of_modules_and_of_systems() -> None:
    made = yaml.safe_load(run("tables", "template", "--module", "eval_tables", "--system", "jobs").output)
    tables = [each for each in made["Resources"].values() if each["Type"] == "AWS::DynamoDB::Table"]
    assert [table["Properties"]["TableName"] for table in tables] == ["jobtable", "evals"]


def test_a_table_of_a_module_is_exported_and_imported(program: Program, url: str, tmp_path: Path) -> None:
    own, file = ("--module", "eval_model"), str(tmp_path / "evals.jsonl")
    run("tables", "create", *own, "--store", url)
    with connect(url) as store:
        store.add(program.entity(name="a", owner="ann"))
    told = run("export", "evals", file, "--store", url)
    assert (told.exit_code, "name the module of your own tables with `--module`" in told.output) == (3, True)
    assert run("export", "evals", file, *own, "--store", url).exit_code == 0
    copy = f"file:{tmp_path / 'copy.db'}"
    assert run("import", file, *own, "--store", copy).exit_code == 0
    with connect(copy) as store:
        assert store.get(program.entity.key(name="a")).owner == "ann"


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("eval_nowhere", "cannot import eval_nowhere: ModuleNotFoundError: No module named 'eval_nowhere'"),
        ("json", "json declares no tables"),
    ],
)
def test_a_module_without_tables_is_told(module: str, told: str, url: str) -> None:
    connect(url).close()
    done = run("tables", "list", "--module", module, "--store", url)
    assert done.exit_code == 2
    assert told in done.output

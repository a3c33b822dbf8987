"""The bundled journey: what each of its stages finds and does on a generated catalogue, and what it does not hide."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.systems.journeys.access_patterns import START, journey, rule
from tests.systems.journeys.worlds import World, world_on

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import DefinitionError, NotFoundError
from jobtable.store import Store
from jobtable.systems.journeys.entities import JobExecution
from jobtable.systems.journeys.example.documents import Checksum, TableMapping, to_line
from jobtable.systems.journeys.example.product_catalogue import create_catalogue
from jobtable.systems.journeys.example.rule_book import example_rules, interpret, read_rules
from jobtable.systems.journeys.example.source_database import open_source
from jobtable.systems.journeys.journey_template import DEFAULT_TEMPLATE, JourneyTemplate
from jobtable.systems.journeys.parts import JourneyStatus, Priority
from jobtable.systems.journeys.stage import Stage


@dataclass(frozen=True)
class Example:
    """The bundled journey on a catalogue."""

    world: World
    catalogue: Path

    def create(self, template: JourneyTemplate = DEFAULT_TEMPLATE) -> None:
        parameters: dict[str, Any] = {"source": str(self.catalogue), "batchRows": 40}
        created = journey("E").replace(parameters=parameters)
        rules = example_rules("E", "ada", START)
        self.world.verbs.create_journey(created, template.stages("E", START), rules)
        self.world.runner.run("E")

    def run(self, template: JourneyTemplate = DEFAULT_TEMPLATE) -> None:
        self.create(template)
        self.world.work()

    def of(self, stage_id: str) -> JobExecution:
        found = self.world.verbs.list_stage_executions(self.world.verbs.get_stage("E", stage_id)).first()
        assert found is not None
        return found

    def status(self) -> JourneyStatus:
        return self.world.verbs.get_journey("E").status


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Example]:
    create_catalogue(tmp_path / "c.db", products=100)
    with Store(EmbeddedBackend(None)) as store:
        yield Example(world_on(store), tmp_path / "c.db")


def test_every_stage_does_its_work(example: Example) -> None:
    example.run()
    assert example.status() is JourneyStatus.COMPLETED
    raw = example.of("raw_analysis").results
    assert raw["tablesAnalyzed"] == 8
    inferred = [(r["from"], r["column"], r["table"]) for r in raw["relationships"] if not r["declared"]]
    assert inferred == [("stock_level", "prod_id", "product")]
    assert raw["emptyColumns"] == ["product.legacy_flag"]
    assert example.of("stripped_schema").results["dropped"] == ["schema_version", "tmp_import_2019"]
    mappings = {found["table"]: found for found in example.of("tmf_mapping").results["mappings"]}
    assert mappings["product"]["collection"] == "productOffering"
    assert mappings["product"]["fields"]["sku"] == "productCode"
    assert "legacy_flag" not in mappings["product"]["fields"]
    order = example.of("migration_planning").results["order"]
    assert order.index("category") < order.index("product") < order.index("product_price")
    loaded = example.of("data_migration").results["loaded"]
    compared = example.of("verification_validation").results["compared"]
    assert {name: entry["documents"] for name, entry in loaded.items()} == {
        name: entry["rows"] for name, entry in compared.items()
    }
    assert all(entry["isSame"] for entry in compared.values())
    example.world.check_sums()


def test_a_document_has_what_its_row_had(example: Example) -> None:
    example.run()
    job_id = example.of("data_migration").job_id
    folder = f"journeys/E/stages/data_migration/executions/{job_id}/files/data_loading/productOffering"
    objects = example.world.jobs.objects
    lines = [line for found in objects.list(folder) for line in objects.get(found.key).splitlines()]
    documents = {document["id"]: document for document in map(json.loads, lines)}
    with closing(sqlite3.connect(example.catalogue)) as connection:
        row = connection.execute("SELECT sku, cat_id, is_active FROM product WHERE prod_id = 7").fetchone()
    assert documents["7"]["productCode"] == row[0]
    assert documents["7"]["catId"] == {"id": str(row[1]), "@referredType": "category"}
    assert documents["7"]["isSellable"] is (row[2] == "Y")


def test_a_source_that_changed_since_is_noticed(example: Example) -> None:
    example.create()
    while example.world.verbs.get_journey("E").current_stage_id != "verification_validation":
        example.world.work(1)
    with closing(sqlite3.connect(example.catalogue)) as connection, connection:
        connection.execute("UPDATE product SET prod_name = 'changed since' WHERE prod_id = 3")
    example.world.work()
    assert example.status() is JourneyStatus.FAILED
    assert "differs from the source in productOffering" in (example.of("verification_validation").error_message or "")


def test_what_breaks_a_rule_is_counted(example: Example) -> None:
    with closing(sqlite3.connect(example.catalogue)) as connection, connection:
        connection.execute("UPDATE product SET sku = 'no code' WHERE prod_id = 3")
    example.run()
    last = example.of("verification_validation")
    assert sum(last.results["violations"].values()) == last.results["recordsFailed"] == 1
    assert last.metrics.error_count == 1


class OwnMapping(Stage):
    """Maps nothing."""

    def field_mapping(self) -> None:
        self.results["mappings"] = []

    def mapping_validation(self) -> None:
        self.log_info("nothing to validate")


class Lacking(Stage):
    """Has one step of two."""

    def field_mapping(self) -> None:
        """The only one."""


def test_a_stage_of_the_template_can_be_replaced(example: Example) -> None:
    example.run(DEFAULT_TEMPLATE.replacing("tmf_mapping", OwnMapping).allowing_skip("raw_analysis"))
    assert example.of("tmf_mapping").results == {"mappings": []}
    assert example.world.verbs.get_stage("E", "raw_analysis").can_skip


def test_a_template_refuses_what_cannot_run() -> None:
    with pytest.raises(NotFoundError, match="no stage nine; it has raw_analysis"):
        DEFAULT_TEMPLATE.replacing("nine", OwnMapping)
    with pytest.raises(DefinitionError, match="no method for step mapping_validation"):
        DEFAULT_TEMPLATE.replacing("tmf_mapping", Lacking).stages("J1", START)
    with pytest.raises(DefinitionError, match="cannot load 'nowhere:Class'"):
        DEFAULT_TEMPLATE.replacing("tmf_mapping", "nowhere:Class").stages("J1", START)
    with pytest.raises(DefinitionError, match="not a subclass of Stage"):
        DEFAULT_TEMPLATE.replacing("tmf_mapping", "json:JSONDecoder").stages("J1", START)


def test_a_module_that_raises_when_it_is_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_stages.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DefinitionError, match="cannot load 'broken_stages:Mapping': RuntimeError: no licence"):
        DEFAULT_TEMPLATE.replacing("tmf_mapping", "broken_stages:Mapping").stages("J1", START)


def test_the_same_seed_gives_the_same_catalogue(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        create_catalogue(tmp_path / name, products=20, seed=seed)
    rows = {}
    for name in "abc":
        with open_source(tmp_path / name) as source:
            rows[name] = list(source.all_rows("product", ["prod_id", "sku", "prod_name", "weight_kg"]))
    assert rows["a"] == rows["b"] != rows["c"]
    with pytest.raises(FileExistsError):
        create_catalogue(tmp_path / "a")


def test_names_of_tables_and_columns_may_be_anything(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "odd.db")) as connection, connection:
        connection.execute('CREATE TABLE "a "" b" ("x; DROP" INTEGER PRIMARY KEY, "blob" BLOB)')
        connection.execute('INSERT INTO "a "" b" VALUES (1, ?)', (b"\x00\xff",))
    with open_source(tmp_path / "odd.db") as source:
        assert source.tables() == ['a " b']
        assert list(source.all_rows('a " b', ["x; DROP", "blob"])) == [{"x; DROP": 1, "blob": "00ff"}]
        assert source.profile('a " b', "x; DROP")["distinct"] == 1
    with pytest.raises(NotFoundError, match="no source database"), open_source(tmp_path / "none.db"):
        pass


def test_the_first_of_two_rules_counts_and_others_are_named() -> None:
    texts = [
        ("Map 'sku' field to TMF 'productCode'", Priority.CRITICAL),
        ("Map 'sku' field to TMF 'code'; Map 'product.sku' field to TMF 'itemCode'", Priority.LOW),
        ("Do something clever", Priority.LOW),
    ]
    rules = [rule("J1", "one", n, priority, content) for n, (content, priority) in enumerate(texts)]
    book = read_rules(rules)
    assert (book.target_of("other", "sku"), book.target_of("product", "sku")) == ("productCode", "itemCode")
    assert book.unknown == (rules[2].rule_id,)


@given(st.integers(-(10**15), 10**15))
def test_cents_become_exact_amounts(cents: int) -> None:
    text = interpret("cents", cents)
    assert round(float(text) * 100) == cents or abs(cents) > 10**13
    assert text.replace(".", "").lstrip("-0") == str(abs(cents)).lstrip("0")


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers(), max_size=3), max_size=8), st.randoms())
def test_a_checksum_does_not_mind_the_order(rows: list[dict[str, int]], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = Checksum(), Checksum()
    one.add(map(to_line, rows))
    other.add(map(to_line, shuffled))
    assert (one.count, one.text) == (other.count, other.text)
    other.add([b"more"])
    assert one.text != other.text


def test_null_is_left_out_of_documents() -> None:
    mapping = TableMapping("t", "c", {"id": "id", "a": "x", "b": "y"}, ("id",), {"b": "d"}, {"a": "yes or no"})
    assert mapping.document_of({"id": 1, "a": None, "b": None}) == {"@type": "c", "id": "1"}
    assert mapping.document_of({"id": 1, "a": "N", "b": 2})["y"] == {"id": "2", "@referredType": "d"}

"""Stage 3: tables and columns are mapped to the collections and fields of the target, by rules."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from jobtable.errors import ValueRefusedError
from jobtable.systems.journeys.example.rule_book import RuleBook, read_rules
from jobtable.systems.journeys.parts import RuleType
from jobtable.systems.journeys.stage import Stage


class TmfMapping(Stage):
    """Maps every table to a collection and every column to a field: by a rule, or by its name in camelCase."""

    def field_mapping(self) -> None:
        """Map all remaining tables and columns."""
        schema = self.earlier("stripped_schema").results
        book = read_rules(self.rules(RuleType.FIELD_MAPPING))
        for rule_id in book.unknown:
            self.log_warning(f"rule {rule_id} has an unknown form")
        collections = {
            table["name"]: book.tables.get(table["name"]) or _camel(table["name"]) for table in schema["tables"]
        }
        mappings = [self._mapping(table, schema["relationships"], collections, book) for table in schema["tables"]]
        by_rule = sum(mapping.pop("byRule") for mapping in mappings)
        self.results.update(mappings=mappings, fieldsByRule=by_rule, unusedRules=_unused(book, schema["tables"]))
        for name in self.results["unusedRules"]:
            self.log_warning(f"a rule maps {name}, which is not a column")
        fields = sum(len(mapping["fields"]) for mapping in mappings)
        self.results["fieldsMapped"] = fields
        self.report("Mapping", summary=f"{fields} fields, {by_rule} of them by rules", results=mappings)

    def _mapping(
        self, table: dict[str, Any], relationships: list[dict[str, Any]], collections: dict[str, str], book: RuleBook
    ) -> dict[str, Any]:
        name = table["name"]
        columns = [column["name"] for column in table["columns"]]
        chosen = {column: book.target_of(name, column) for column in columns}
        references = {r["column"]: collections[r["table"]] for r in relationships if r["from"] == name}
        return {
            "table": name,
            "collection": collections[name],
            "fields": {column: chosen[column] or _camel(column) for column in columns},
            "identity": [column["name"] for column in table["columns"] if column["primaryKey"]],
            "references": references,
            "byRule": sum(target is not None for target in chosen.values()),
        }

    def mapping_validation(self) -> None:
        """Reject a mapping of two columns or two tables to the same target."""
        mappings = self.results["mappings"]
        problems = _repeated("collection", [mapping["collection"] for mapping in mappings])
        for mapping in mappings:
            problems += _repeated(f"field of {mapping['collection']}", list(mapping["fields"].values()))
        for problem in problems:
            self.log_error(problem)
        if problems:
            raise ValueRefusedError(f"the mapping is ambiguous: {'; '.join(problems)}")
        self.results["isValid"] = True
        self.log_info("the mapping is unambiguous", collections=len(mappings))


def _camel(name: str) -> str:
    head, *rest = [part for part in re.split(r"[_\W]+", name.lower()) if part] or [name]
    return head + "".join(part.capitalize() for part in rest)


def _repeated(what: str, names: list[str]) -> list[str]:
    return [f"{what} {name} occurs {count} times" for name, count in Counter(names).items() if count > 1]


def _unused(book: RuleBook, tables: list[dict[str, Any]]) -> list[str]:
    there = {column["name"] for table in tables for column in table["columns"]}
    there |= {f"{table['name']}.{column['name']}" for table in tables for column in table["columns"]}
    return sorted(set(book.fields) - there)

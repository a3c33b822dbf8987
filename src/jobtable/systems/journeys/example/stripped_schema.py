"""Stage 2: the schema without technical and dead parts, with uniform types."""

from __future__ import annotations

from typing import Any

from jobtable.systems.journeys.example.rule_book import read_rules
from jobtable.systems.journeys.parts import RuleType
from jobtable.systems.journeys.stage import Stage

_JSON_TYPES = {
    "INTE": "integer",
    "INT": "integer",
    "REAL": "number",
    "FLOA": "number",
    "DOUB": "number",
    "NUME": "number",
}


class StrippedSchema(Stage):
    """Drops what the rules call technical and what is empty, and uses the types of JSON."""

    def schema_cleaning(self) -> None:
        """Drop tables by rule, tables without a key, and columns that are always NULL."""
        raw = self.earlier("raw_analysis").results
        book = read_rules(self.rules(RuleType.DATA_INTERPRETATION))
        empty = set(raw["emptyColumns"])
        kept, dropped = [], []
        for table in raw["schema"]:
            has_key = any(column["primaryKey"] for column in table["columns"])
            if book.is_dropped(table["name"]) or not has_key:
                reason = "has no key" if not has_key else "is dropped by a rule"
                self.log_info(f"{table['name']} {reason}", rows=table["rows"])
                dropped.append(table["name"])
                continue
            columns = [c for c in table["columns"] if f"{table['name']}.{c['name']}" not in empty]
            kept.append({**table, "columns": columns})
        self.results.update(tables=kept, dropped=dropped)
        self.report("Cleaned schema", summary=f"{len(kept)} tables kept, {len(dropped)} dropped", results=kept)

    def structure_normalization(self) -> None:
        """Convert the types to JSON's, and keep the relationships between remaining tables."""
        tables = [self._normalized(table) for table in self.results["tables"]]
        names = {table["name"] for table in tables}
        all_of_them = self.earlier("raw_analysis").results["relationships"]
        left = [r for r in all_of_them if r["from"] in names and r["table"] in names]
        self.results.update(tables=tables, relationships=left, fieldsExtracted=sum(len(t["columns"]) for t in tables))
        self.log_info("normalized the schema", tables=len(tables), relationships=len(left))

    def _normalized(self, table: dict[str, Any]) -> dict[str, Any]:
        columns = [
            {**column, "jsonType": _JSON_TYPES.get(column["type"].upper()[:4], "string")} for column in table["columns"]
        ]
        return {"name": table["name"], "rows": table["rows"], "columns": columns}

"""Stage 1: the tables of the source, their relationships, and a profile of their values."""

from __future__ import annotations

from typing import Any

from jobtable.systems.journeys.example.source_database import SourceDatabase, open_source
from jobtable.systems.journeys.stage import Stage


class RawAnalysis(Stage):
    """Reads the schema of the source, finds declared and undeclared relationships, and profiles the columns."""

    def schema_extraction(self) -> None:
        """Read every table with its columns."""
        schema: list[dict[str, Any]] = []
        with open_source(self.local_path("source")) as source:
            for name in source.tables():
                columns = source.columns(name)
                rows = source.count(name)
                schema.append({"name": name, "rows": rows, "columns": columns, "indexes": source.indexes(name)})
                self.log_info(f"read the schema of {name}", columns=len(columns), rows=rows)
        fields = sum(len(table["columns"]) for table in schema)
        self.results.update(schema=schema, tablesAnalyzed=len(schema), fieldsExtracted=fields)
        self.report("Schema of the source", summary=f"{len(schema)} tables with {fields} columns", results=schema)

    def metadata_analysis(self) -> None:
        """Find declared foreign keys, and columns whose values are all keys of another table."""
        relationships: list[dict[str, Any]] = []
        with open_source(self.local_path("source")) as source:
            for table in self.results["schema"]:
                declared = [{**key, "declared": True} for key in source.foreign_keys(table["name"])]
                taken = {key["column"] for key in declared}
                inferred = [key for key in self._inferred(source, table) if key["column"] not in taken]
                for key in inferred:
                    self.log_warning(f"{table['name']}.{key['column']} is an undeclared reference to {key['table']}")
                relationships += [{"from": table["name"], **key} for key in declared + inferred]
        self.results["relationships"] = relationships
        self.report("Relationships", summary=f"{len(relationships)} relationships", results=relationships)

    def _inferred(self, source: SourceDatabase, table: dict[str, Any]) -> list[dict[str, Any]]:
        """Find columns with the name of another table's primary key that contain only its values."""
        found = []
        for other in self.results["schema"]:
            keys = [column["name"] for column in other["columns"] if column["primaryKey"]]
            if other["name"] == table["name"] or len(keys) != 1:
                continue
            for column in table["columns"]:
                is_named_so = column["name"] == keys[0] and not column["primaryKey"]
                if is_named_so and source.is_contained(table["name"], column["name"], other["name"], keys[0]):
                    found.append({"column": keys[0], "table": other["name"], "references": keys[0], "declared": False})
        return found

    def data_profiling(self) -> None:
        """Profile the values of each column."""
        schema = self.results["schema"]
        profiles = {}
        empty = []
        with open_source(self.local_path("source")) as source:
            for number, table in enumerate(schema):
                for column in table["columns"]:
                    name = f"{table['name']}.{column['name']}"
                    profiles[name] = source.profile(table["name"], column["name"])
                    if table["rows"] and profiles[name]["nulls"] == table["rows"]:
                        empty.append(name)
                        self.log_warning(f"{name} is always NULL")
                self.progress(100 * (number + 1) / len(schema), table["name"])
        self.results["emptyColumns"] = empty
        self.results["recordsProcessed"] = sum(table["rows"] for table in schema)
        self.report("Profile of the data", summary=f"{len(profiles)} columns, {len(empty)} empty", results=profiles)

"""Stage 4: the order in which tables are migrated, and their batches."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from jobtable.systems.journeys.stage import Stage

DEFAULT_BATCH_ROWS = 200


class MigrationPlanning(Stage):
    """Orders the tables so that referenced ones come first, and divides them into batches."""

    def dependency_analysis(self) -> None:
        """Order the tables; a cycle is cut and reported."""
        schema = self.earlier("stripped_schema").results
        graph: dict[str, set[str]] = {table["name"]: set() for table in schema["tables"]}
        for relationship in schema["relationships"]:
            if relationship["table"] != relationship["from"]:
                graph[relationship["from"]].add(relationship["table"])
        cut = []
        while True:
            try:
                order = list(TopologicalSorter({name: sorted(graph[name]) for name in sorted(graph)}).static_order())
                break
            except CycleError as error:
                before, after = error.args[1][0], error.args[1][1]
                graph[after].discard(before)
                cut.append(f"{after} -> {before}")
                self.log_warning(f"cut a cycle of references: {after} is migrated before {before}")
        self.results.update(order=order, cutReferences=cut)
        self.log_info("ordered the tables", order=order)

    def batch_planning(self) -> None:
        """Divide each table into batches."""
        rows = {table["name"]: table["rows"] for table in self.earlier("stripped_schema").results["tables"]}
        size = int(self.parameters.get("batchRows", DEFAULT_BATCH_ROWS))
        plan = [
            {"table": name, "rows": rows[name], "batches": -(-rows[name] // size)} for name in self.results["order"]
        ]
        batches = sum(entry["batches"] for entry in plan)
        self.results.update(plan=plan, batchRows=size, batches=batches)
        self.report("Plan", summary=f"{sum(rows.values())} rows in {batches} batches", results=plan)

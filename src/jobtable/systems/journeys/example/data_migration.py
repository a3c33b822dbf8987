"""Stage 5: rows become documents, batch by batch; an interrupted step continues after its last batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobtable.systems.journeys.example.documents import Checksum, TableMapping, read_lines, to_line
from jobtable.systems.journeys.example.rule_book import read_rules
from jobtable.systems.journeys.example.source_database import SourceDatabase, open_source
from jobtable.systems.journeys.parts import RuleType
from jobtable.systems.journeys.stage import Stage

BEFORE_THE_FIRST_ROW = -(1 << 63)


class DataMigration(Stage):
    """Reads the source in batches, transforms each by mapping and rules, and writes the documents of the target.

    Every batch is one file in object storage, which is the same when it is written again. So repeating a batch whose
    position was not saved does no harm.
    """

    def data_extraction(self) -> None:
        """Copy the rows of the source, in the order of the plan."""
        planning = self.earlier("migration_planning").results
        size, total = planning["batchRows"], max(planning["batches"], 1)
        done = self.position or {"table": 0, "batch": 0, "after": BEFORE_THE_FIRST_ROW, "total": 0}
        mappings = mappings_of(self)
        with open_source(self.local_path("source")) as source:
            for number, entry in enumerate(planning["plan"]):
                if number < done["table"]:
                    continue
                if number > done["table"]:
                    done = {**done, "table": number, "batch": 0, "after": BEFORE_THE_FIRST_ROW}
                while self._extract_batch(source, mappings[entry["table"]], done, size):
                    self.save(done, percent=100 * done["total"] / total)
                self.log_info(f"extracted {entry['table']}", batches=done["batch"])

    def _extract_batch(self, source: SourceDatabase, mapping: TableMapping, done: dict[str, Any], size: int) -> bool:
        """Write the next batch of a table, and move the position; return False if there is none."""
        rows, last = source.rows(mapping.table, mapping.columns, after=done["after"], limit=size)
        if not rows:
            return False
        self.write_file(mapping.table, f"{done['batch']:05d}.jsonl", source=b"".join(map(to_line, rows)))
        done.update(batch=done["batch"] + 1, after=last, total=done["total"] + 1)
        return True

    def data_transformation(self) -> None:
        """Turn every row into a document."""
        mappings = mappings_of(self)
        for table, name in self._remaining("data_extraction"):
            rows = read_lines(self.open_file("data_extraction", table, name))
            documents = b"".join(to_line(mappings[table].document_of(row)) for row in rows)
            self.write_file(table, name, source=documents)
            self.log_debug(f"transformed {table}/{name}")

    def data_loading(self) -> None:
        """Write the documents to their collections, and count them."""
        mappings = mappings_of(self)
        for table, name in self._remaining("data_transformation"):
            with self.open_file("data_transformation", table, name) as documents:
                self.write_file(mappings[table].collection, name, source=documents)
        loaded = {mapping.collection: self._loaded(mapping.collection) for mapping in mappings.values()}
        total = sum(entry["documents"] for entry in loaded.values())
        self.results.update(loaded=loaded, recordsProcessed=total, recordsSucceeded=total)
        self.report("Loaded documents", summary=f"{total} documents in {len(loaded)} collections", results=loaded)

    def _loaded(self, collection: str) -> dict[str, Any]:
        checksum = Checksum()
        for folder, name in self.list_files("data_loading"):
            if folder == collection:
                with self.open_file("data_loading", folder, name) as documents:
                    checksum.add(documents)
        return {"documents": checksum.count, "checksum": checksum.text}

    def _remaining(self, step_id: str) -> Iterator[tuple[str, str]]:
        """Yield the remaining batches of a step; each is done when the next one is requested."""
        files = list(self.list_files(step_id))
        done = self.position or 0
        for number, (table, name) in enumerate(files[done:], start=done + 1):
            yield table, name
            self.save(number, percent=100 * number / len(files))


def mappings_of(stage: Stage) -> dict[str, TableMapping]:
    """Return how each table becomes a collection, by the mapping stage and the rules."""
    book = read_rules(stage.rules(RuleType.DATA_INTERPRETATION))
    return {
        found["table"]: TableMapping(
            table=found["table"],
            collection=found["collection"],
            fields=found["fields"],
            identity=tuple(found["identity"]),
            references=found["references"],
            readings={column: book.readings[column] for column in found["fields"] if column in book.readings},
        )
        for found in stage.earlier("tmf_mapping").results["mappings"]
    }

"""Stage 6: the target is compared with the source, and checked against the rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from jobtable.errors import ValueRefusedError
from jobtable.systems.journeys.example.data_migration import mappings_of
from jobtable.systems.journeys.example.documents import Checksum, read_lines, to_line
from jobtable.systems.journeys.example.rule_book import read_rules
from jobtable.systems.journeys.example.source_database import open_source
from jobtable.systems.journeys.parts import ReportType, RuleType
from jobtable.systems.journeys.stage import Stage

_SHOWN_VIOLATIONS = 20


class Verification(Stage):
    """Compares counts and checksums with the source, checks the validation rules, and reports the totals."""

    def count_verification(self) -> None:
        """Compare every stored collection with what the source yields now."""
        compared, wrong = {}, []
        mappings = mappings_of(self)
        with open_source(self.local_path("source")) as source:
            for number, mapping in enumerate(mappings.values(), start=1):
                expected, found = Checksum(), Checksum()
                rows = source.all_rows(mapping.table, mapping.columns)
                expected.add(to_line(mapping.document_of(row)) for row in rows)
                found.add(map(to_line, self._documents(mapping.collection)))
                is_same = (expected.count, expected.text) == (found.count, found.text)
                compared[mapping.collection] = {
                    "rows": expected.count,
                    "documents": found.count,
                    "checksum": found.text,
                    "isSame": is_same,
                }
                if not is_same:
                    wrong.append(mapping.collection)
                    self.log_error(f"{mapping.collection} differs from {mapping.table}", **compared[mapping.collection])
                self.progress(100 * number / len(mappings), mapping.collection)
        self.results["compared"] = compared
        if wrong:
            raise ValueRefusedError(f"the target differs from the source in {', '.join(wrong)}")
        self.report("Counts and checksums", summary=f"{len(compared)} collections are complete", results=compared)

    def rule_validation(self) -> None:
        """Check every document against the validation rules of its fields."""
        book = read_rules(self.rules(RuleType.VALIDATION_RULES))
        patterns = {field: re.compile(pattern) for field, pattern in book.patterns.items()}
        violations: Counter[str] = Counter()
        for mapping in mappings_of(self).values():
            fields = set(mapping.fields.values())
            required = [field for field in book.required if field in fields]
            checked = {field: pattern for field, pattern in patterns.items() if field in fields}
            for document in self._documents(mapping.collection):
                for problem in _problems(document, required, checked):
                    violations[problem] += 1
                    if violations.total() <= _SHOWN_VIOLATIONS:
                        self.log_error(f"{mapping.collection} {document['id']}: {problem}")
        self.results["violations"] = dict(violations)
        self.metrics["violations"] = float(violations.total())

    def final_report(self) -> None:
        """Report what was transformed and what was not."""
        compared = self.results["compared"]
        documents = sum(entry["documents"] for entry in compared.values())
        violations = sum(self.results["violations"].values())
        dropped = self.earlier("stripped_schema").results["dropped"]
        self.results.update(recordsProcessed=documents, recordsFailed=violations)
        self.report(
            "What was transformed",
            summary=f"{documents} documents in {len(compared)} collections; {violations} violations of rules",
            report_type=ReportType.METRICS,
            results={"collections": compared, "violations": self.results["violations"], "droppedTables": dropped},
            recommendations=["Review the violations before you use the target"] if violations else [],
        )

    def _documents(self, collection: str) -> Iterator[dict[str, Any]]:
        for folder, name in self.list_files("data_loading", stage_id="data_migration"):
            if folder == collection:
                yield from read_lines(self.open_file("data_loading", folder, name, stage_id="data_migration"))


def _problems(document: dict[str, Any], required: list[str], patterns: dict[str, re.Pattern[str]]) -> Iterator[str]:
    for field in required:
        if field not in document:
            yield f"{field} is missing"
    for field, pattern in patterns.items():
        if field in document and not pattern.fullmatch(str(document[field])):
            yield f"{field} does not match {pattern.pattern}"

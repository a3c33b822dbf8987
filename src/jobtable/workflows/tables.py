"""The table of workflows."""

from __future__ import annotations

from jobtable.model import Index, Table

workflows = Table(
    "jobtable-workflows",
    pk="PK",
    sk="SK",
    type_attribute="TYPE",
    ttl="TimeToLive",
    stream=True,
    indexes=[Index("GSI1", "GSI1PK", "GSI1SK"), Index("GSI2", "GSI2PK", "GSI2SK")],
)

"""The record that the benchmarks store: 20 fields of the usual types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jobtable.model import Entity, Key, Table, Timestamp

samples = Table("samples", pk="PK", sk="SK", type_attribute="TYPE")


class Sample(Entity, table=samples, type="SAMPLE"):
    """A training run, as a team would record it."""

    key = Key("RUN#{run_id}", "STEP#{step:09d}")

    run_id: str
    step: int
    name: str
    description: str
    owner: str
    project: str
    region: str
    status: str
    commit: str
    epoch: int
    batch_size: int
    seed: int
    loss: float
    accuracy: float
    learning_rate: float
    is_best: bool
    is_public: bool
    created_at: Timestamp
    tags: list[str]
    settings: dict[str, str]


def values(run: str, step: int) -> dict[str, Any]:
    """The field values of one record."""
    return {
        "run_id": run,
        "step": step,
        "name": "receipt-layout-large",
        "description": "Fine-tuning on the September receipts, with the new augmentation",
        "owner": "dana@example.com",
        "project": "receipts",
        "region": "eu-central-1",
        "status": "RUNNING",
        "commit": "9f1c2d7e8b3a4c5d6e7f8091a2b3c4d5e6f70819",
        "epoch": 17,
        "batch_size": 64,
        "seed": 20251101,
        "loss": 0.03125,
        "accuracy": 0.984375,
        "learning_rate": 0.0005,
        "is_best": False,
        "is_public": True,
        "created_at": datetime(2025, 11, 1, 20, 30, 0, 123456, tzinfo=UTC),
        "tags": ["nightly", "receipts", "gpu"],
        "settings": {"optimizer": "adamw", "schedule": "cosine", "precision": "bf16"},
    }


def sample(run: str, step: int) -> Sample:
    """One record as an entity."""
    return Sample(**values(run, step))

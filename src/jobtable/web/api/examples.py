"""A body for each of the important requests, as the API's description shows it: by the name of the operation."""

from __future__ import annotations

from typing import Any

_JOB: dict[str, Any] = {
    "name": "train the small model",
    "task": "training:train",
    "params": {"learning_rate": 0.01, "layers": [64, 32]},
    "queue": "gpu",
    "priority": 700,
    "key": "small-model-2025-11-01",
    "max_attempts": 3,
    "timeout_seconds": 3600,
    "tags": ["nightly"],
}
_LEASE = {"instance_id": "worker-1", "epoch": 1}
_INSTANCE = {"instance_type": "p3.2xlarge", "gpu_count": 1, "is_spot": True, "queues": ["gpu"], "slots": 2}
_WHY = {"message": "the data was wrong"}

BODIES: dict[str, Any] = {
    "submit_job": _JOB,
    "submit_jobs": [{**_JOB, "name": f"part {part}", "key": f"part-{part}"} for part in (1, 2)],
    "cancel_jobs": {"job_ids": ["part-1", "part-2"], "message": "the data was wrong"},
    "retry_jobs": {"job_ids": ["part-1", "part-2"]},
    "open_group": {"name": "nightly", "key": "nightly-2025-11-01"},
    "cancel_job": _WHY,
    "stop_job": _WHY,
    "prioritise_job": {"priority": 900},
    "add_dependency": {"job_id": "5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11", "gate": "start", "condition": "completed"},
    "create_queue": {"queue_name": "nightly", "max_concurrent_jobs": 4, "description": "what runs at night"},
    "change_queue": {"max_concurrent_jobs": 8},
    "register_instance": _INSTANCE,
    "beat_instance": _INSTANCE,
    "claim_jobs": {"instance_id": "worker-1", "limit": 2, "lease_seconds": 30},
    "send_heartbeat": _LEASE,
    "report_progress": {**_LEASE, "progress": 40, "message": "epoch 4"},
    "add_log_lines": {**_LEASE, "lines": [{"message": "the loss is 0.131", "level": "INFO"}]},
    "add_metrics": {**_LEASE, "metrics": [{"metric_name": "val_loss", "value": 0.131, "epoch": 4}]},
    "finish_job": {**_LEASE, "kind": "completed", "result": {"val_loss": 0.131}},
    "release_job": {**_LEASE, "reason": "the machine is taken away"},
    "submit_sweep": {
        "sweep_id": "learning-rates",
        "sweep": {
            "name": "learning rates",
            "task": "training:train",
            "objective": "val_loss",
            "direction": "minimize",
            "trials": 20,
            "sampler": "random",
            "stopper": {"name": "asha", "first_epoch": 1, "factor": 3, "last_epoch": 9},
            "seed": 7,
            "space": {
                "learning_rate": {"type": "float", "low": 0.0001, "high": 1, "log": True},
                "layers": {"type": "int", "low": 1, "high": 4},
                "optimizer": ["sgd", "adam"],
            },
        },
    },
    "extend_sweep": {"total": 50},
    "create_journey": {
        "journey_id": "JRN-1",
        "name": "Product catalogue",
        "created_by": "data_team",
        "oda_component_type": "PRODUCTCATALOG",
        "source": {"schema_id": "schema-1", "schema_name": "Legacy products"},
        "parameters": {"source": "/data/catalogue.db", "batchRows": 200},
        "template": {"example_rules": True},
    },
    "start_run": {
        "conversation_id": "town",
        "comments_csv": (
            "timestamp,datetime,comment-id,author-id,agrees,disagrees,moderated,comment-body\n"
            "1417396472000,2014-12-01,0,0,1,0,1,The library should open on Sundays.\n"
        ),
        "votes_csv": "timestamp,datetime,comment-id,voter-id,vote\n1417396473000,2014-12-01,0,1,1\n",
        "seed": 7,
    },
    "rerun": {"first": "LAYOUT", "seed": 8},
    "start_execution": {
        "definition": "jobtable.systems.albums.example:STEP_FUNCTIONS",
        "image": "VGhlIEJlYXRsZXMgLSBBYmJleSBSb2FkICgxOTY5KQo=",
        "name": "shelf.txt",
    },
    "complete_task": {
        "albums": [{"album_index": 1, "album_name": "Abbey Road", "artist": "The Beatles", "year": 1969}],
        "token": "the token that was shown once",
    },
    "create_token": {"role": "read", "name": "dashboards", "expires_in_seconds": 2592000},
}

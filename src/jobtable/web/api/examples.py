"""Example bodies of the core's requests, by operation; a system has them beside its routes, in `EXAMPLES`."""

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
_STATES = {"Wait": {"Type": "Wait", "Seconds": 60, "Next": "Done"}, "Done": {"Type": "Succeed"}}
_DEFINITION = {"Comment": "Wait for a minute.", "StartAt": "Wait", "States": _STATES}

_PROPOSAL: dict[str, Any] = {
    "title": "Call topic 3 `Parking`",
    "changes": [{"field": "name", "before": "Topic 3", "after": "Parking"}],
    "apply": "topics:rename",
    "payload": {"topic": 3},
    "reason": "most of its comments are about parking",
    "subject": "topic name",
    "confidence": 0.93,
}
_CALL = {**_LEASE, "call_id": "chat-9f86d081884c7d659a2feaa0c55ad015"}
_PLAN = {
    **_CALL,
    "purpose": "label a review",
    "kind": "chat",
    "provider": "openai",
    "model": "gpt-4.1-mini",
    "request": '{"messages": [{"role": "user", "content": "Is this spam?"}], "model": "gpt-4.1-mini"}',
    "most_tokens_in": 40,
    "most_tokens_out": 100,
    "price": {"tokens_in": 400_000_000, "tokens_out": 1_600_000_000, "version": "list 2026-06-12"},
}

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
    "begin_assist_call": _PLAN,
    "skip_assist_call": _PLAN,
    "end_assist_call": {**_CALL, "answer": "no", "tokens_in": 31, "tokens_out": 1, "seconds": 0.8},
    "fail_assist_call": {**_CALL, "error": "the provider did not answer in 120 s", "seconds": 120},
    "refuse_assist_answer": {**_CALL, "fault": "the answer is not JSON"},
    "find_assist_vectors": {
        **_LEASE,
        "provider": "local",
        "model": "all-MiniLM-L6-v2",
        "digests": ["n4bQgYhMfWWaL+qgxVrQFQ=="],
    },
    "share_assist_vectors": {**_CALL, "digests": ["n4bQgYhMfWWaL+qgxVrQFQ=="], "dimensions": 384},
    "take_assist_slot": {**_CALL, "provider": "openai", "most": 8, "seconds": 150},
    "release_assist_slot": {**_CALL, "provider": "openai", "pause_seconds": 20},
    "create_machine": {"name": "orders", "definition": _DEFINITION, "publish": True},
    "check_machine_definition": {"definition": _DEFINITION},
    "change_machine": {"definition": _DEFINITION},
    "create_machine_alias": {"alias": "live", "routes": [{"version": 1, "weight": 100}]},
    "start_machine_execution": {"name": "order-7", "input": '{"order": 7}'},
    "poll_activity": {"worker": "packer-1", "wait_seconds": 20},
    "send_task_success": {"token": "AQCEAAAAKgAAAAMAAAAA", "output": '{"packed": true}'},
    "send_task_failure": {"token": "AQCEAAAAKgAAAAMAAAAA", "error": "Broken", "cause": "it fell"},
    "create_activity": {"name": "pack"},
    "start_durable_execution": {"name": "order-7", "payload": {"order": 7}},
    "call_function": {"payload": '{"order": 7}'},
    "send_callback_success": {"callback_id": "Q2FsbGJhY2s=", "result": '"paid"'},
    "propose_change": _PROPOSAL,
    "propose_for_job": {**_LEASE, **_PROPOSAL},
    "ask_question": {"title": "Ship order 7?", "choices": ["yes", "no"], "answer_within_seconds": 86400},
    "answer_question": {"answer": "yes"},
    "reject_task": {"remark": "the old name is clearer"},
    "accept_proposals": {"task_ids": ["5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11"]},
    "reject_tasks": {"task_ids": ["5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11"], "remark": "the old names are clearer"},
    "add_inbox_rule": {"subject": "topic name", "least_confidence": 0.9, "most_cost_nanodollars": 10000000},
    "create_token": {"role": "read", "name": "dashboards", "expires_in_seconds": 2592000},
}

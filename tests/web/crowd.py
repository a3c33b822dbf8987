"""A store that holds many of everything, written as items: what a page reads may not depend on how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any

from tests.systems.albums import access_patterns as albums
from tests.systems.journeys import access_patterns as journeys
from tests.systems.receipts.pictures import CORNERS, PICTURE, ocr_result

from jobtable.access.entities import AccessToken, Role
from jobtable.app import Services
from jobtable.jobs.stored.entities import (
    Instance,
    InstanceJob,
    Job,
    JobArtifact,
    JobCheckpoint,
    JobDependency,
    JobGates,
    JobLog,
    JobLogText,
    JobMetric,
    JobResource,
    JobStatus,
    Queue,
    QueueJob,
)
from jobtable.jobs.stored.fields import Health, InstanceStatus, Status, rank_of
from jobtable.model import Entity
from jobtable.systems.albums.entities import ExecutionStatus, TaskStatus, WorkflowMetrics, WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.systems.conversations.converter import DataConverter
from jobtable.systems.conversations.entities import ConversationRun, StoredFile
from jobtable.systems.conversations.pipeline import STAGE_OF, stage_job_id
from jobtable.systems.conversations.runs import ConversationRuns
from jobtable.systems.journeys.default_stages import default_stages
from jobtable.systems.journeys.parts import Priority, ReportType
from jobtable.systems.journeys.service import Journeys
from jobtable.systems.receipts.entities import (
    BatchSummary,
    CompletionBatchResult,
    EmbeddingBatchResult,
    LabelHygieneResult,
    LabelMetadata,
    PlacesCache,
    Receipt,
    ReceiptChatGPTValidation,
    ReceiptField,
    ReceiptLabelAnalysis,
    ReceiptLineItemAnalysis,
    ReceiptMetadata,
    ReceiptStructureAnalysis,
    ReceiptValidationCategory,
    ReceiptValidationResult,
    ReceiptValidationSummary,
    ReceiptWordLabel,
    ResultType,
)
from jobtable.systems.sweeps.parameters import FloatRange
from jobtable.systems.sweeps.planner import Planner
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep
from jobtable.systems.sweeps.trials import final_name, recorded_at, trial_id
from jobtable.testing import FakeClock

START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
STEP = WorkflowType.STEP_FUNCTIONS


def at(number: int) -> datetime:
    """So many milliseconds after the beginning of this day."""
    return START + timedelta(milliseconds=number)


def fill(services: Services, count: int) -> None:
    """Write so many of everything."""
    _ = services.get(AlbumWorkflows), services.get(Journeys)  # with their tables
    services.objects.put("reports/x.json", b"{}")
    _start_runs(services)
    store = services.store
    for part in (_jobs, _places_of_jobs, _journey, _receipts, _images, _batches, _conversation):
        store.batch_put(part(count))
    for entity in chain(_albums(count), _batch_results(count)):
        store.put(entity)  # kinds that share their keys are put one by one
    _sweep(services, count)


def _jobs(count: int) -> Iterator[Entity]:
    yield Job(
        job_id="job",
        name="job",
        created_at=at(0),
        created_by="ada",
        status=Status.RUNNING,
        queue_name="gpu",
        is_gated=True,
        is_awaiting=True,
        job_config={"group": True},
        dependents=count,
    )
    yield JobGates(job_id="job", open_completions=count)
    for n in range(count):
        status = Status.COMPLETED if n % 10 else Status.RUNNING if n % 20 else Status.PENDING
        yield Job(
            job_id=f"child-{n}",
            name=f"child {n}",
            created_at=at(n),
            created_by="ada",
            status=status if n else Status.PENDING,
            queue_name="gpu",
            parent_job_id="job",
            root_job_id="job",
            dependents=1,
        )
        yield JobDependency(job_id="job", dependency_job_id=f"child-{n}", type="child", created_at=at(n))
        yield JobDependency(job_id=f"child-{n}", dependency_job_id="job", type="parent", created_at=at(n))
        yield JobStatus(job_id="job", status=Status.RUNNING, updated_at=at(n))
        yield JobStatus(job_id=f"child-{n}", status=Status.COMPLETED, updated_at=at(n))
        yield JobLog(job_id="job", timestamp=at(n), message=f"line {n}")
        yield JobMetric(job_id="job", metric_name="loss", timestamp=at(n), value=float(n), epoch=n % 7)
        yield JobMetric(job_id="job", metric_name=f"metric {n:06d}", timestamp=at(n), value=1.0)
        yield JobCheckpoint(
            job_id="job", timestamp=at(n), s3_bucket="b", s3_key="reports/x.json", size_bytes=2, step=n, epoch=0
        )
        file: dict[str, Any] = {"job_id": "job", "s3_bucket": "b", "s3_key": f"jobs/{n}", "created_at": at(n)}
        yield JobArtifact(**file, name=f"{n}.bin", size_bytes=1, sha256="0", content_type="text/plain")
        yield JobLogText(**file, lease_epoch=n)
        yield JobResource(
            job_id="job",
            resource_id=f"gpu-{n}",
            resource_type="GPU",
            instance_id=f"i-{n}",
            instance_type="p3",
            allocated_at=at(0),
            status="held",
        )
        yield JobResource(
            job_id=f"child-{n}",
            resource_id="gpu-0",
            resource_type="GPU",
            instance_id="i",
            instance_type="p3",
            allocated_at=at(0),
            status="held",
        )


def _places_of_jobs(count: int) -> Iterator[Entity]:
    yield Queue(queue_name="gpu", created_at=at(0), job_count=count, max_concurrent_jobs=10)
    here: dict[str, Any] = {"instance_type": "p3", "launched_at": at(0)}
    yield Instance(instance_id="i", status=InstanceStatus.RUNNING, **here)
    for n in range(count):
        yield Queue(queue_name=f"queue-{n}", created_at=at(0))
        yield QueueJob(queue_name="gpu", job_id=f"child-{n}", enqueued_at=at(n), rank=rank_of(500), group_id="s")
        yield QueueJob(queue_name=f"queue-{n}", job_id="job", enqueued_at=at(n))
        for status in InstanceStatus:
            yield Instance(instance_id=f"{status}-{n}", status=status, health_status=Health.HEALTHY, **here)
        yield InstanceJob(instance_id="i", job_id=f"child-{n}", assigned_at=at(n), status=Status.RUNNING)
        yield InstanceJob(instance_id=f"i-{n}", job_id="job", assigned_at=at(n), status=Status.RUNNING)
        yield AccessToken(
            token_id=f"t{n}", name="n", role=Role.READ, secret_sha256="0", created_at=at(0), created_by="ada"
        )


def _sweep(services: Services, count: int) -> None:
    sweep = Sweep(
        name="sweep", task="tests.web.tasks:bowl", space={"x": FloatRange(low=0, high=1)}, trials=count, objective="o"
    )
    parent = services.get(Sweeps).submit(sweep, sweep_id="sweep")
    for generation in range(sweep.generation_count()):
        Planner(services.jobs).plan("sweep", generation, is_inline=True)
    services.store.batch_put(
        JobMetric(
            job_id="sweep",
            metric_name=name,
            timestamp=recorded_at(parent.created_at, n),
            value=float(n),
            child_job_id=trial_id("sweep", n),
            epoch=0,
        )
        for n in range(count)
        for name in ("o", final_name("o"))
    )
    for n in range(25):  # the list has 20 on a page
        services.get(Sweeps).submit(sweep, sweep_id=f"sweep-{n}")


def _journey(count: int) -> Iterator[Entity]:
    yield journeys.journey("J", at(0))
    yield from default_stages("J", at(0))
    for n in range(count):
        yield journeys.journey(f"J-{n}", at(n))
        yield journeys.rule("J", "raw_analysis", n, Priority.HIGH)
        yield journeys.execution("J", 1, "raw_analysis", n + 1, f"run-{n}")
        yield journeys.log("J", "run-0", "step", n + 1, f"L{n}")
        made = journeys.report("J", "run-0", ReportType.SUMMARY, n)
        yield made.replace(report_id=f"r{n}", s3_location="s3://bucket/reports/x.json")


def _albums(count: int) -> Iterator[Entity]:
    yield albums.execution("exec-1", STEP, 0)
    for n in range(count):
        yield albums.album("exec-1", n)
        for kind in WorkflowType:
            for status in (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED):
                now = at(n)
                made = albums.execution(f"exec-{kind}-{status}-{n}", kind, 0, status)
                yield made.replace(created_at=now, updated_at=now, start_time=now)
            for task_status in TaskStatus:
                yield albums.task(
                    "task" if (n, kind) == (0, STEP) else f"t-{kind}-{task_status}-{n}", kind, n, task_status
                )
            yield WorkflowMetrics(
                **{**albums.metrics(1, kind).model_dump(), "date": date(2000, 1, 1) + timedelta(days=n)}
            ).replace(created_at=at(n))


def _receipts(count: int) -> Iterator[Entity]:
    """One image with one large receipt."""
    result = ocr_result("image", lines=1, words=count, letters=1)
    yield from result.under_the_image()
    yield result.image
    here: dict[str, Any] = {"image_id": "image", "receipt_id": 1}
    for n in range(count):
        yield ReceiptWordLabel(
            **here, line_id=1, word_id=n, label="TOTAL", validation_status="VALID", timestamp_added=at(n)
        )
        yield ReceiptField(**here, field_type=f"F{n}", words=[], timestamp_added=at(n))
        field: dict[str, Any] = {**here, "field_name": f"f{n}", "validation_timestamp": at(0)}
        yield ReceiptValidationCategory(**field, field_category="Date", status="VALID")
        yield ReceiptValidationResult(
            **{**field, "field_name": "total"}, result_index=n, type=ResultType.SUCCESS, message="fine"
        )
        yield ReceiptChatGPTValidation(**here, timestamp=at(n), original_status="INVALID", revised_status="VALID")


def _batch_results(count: int) -> Iterator[Entity]:
    for n in range(count):
        word: dict[str, Any] = {"image_id": "image", "receipt_id": 1, "line_id": 1, "word_id": n, "status": "DONE"}
        yield CompletionBatchResult(
            **word,
            batch_id="batch",
            original_label="TOTAL",
            label_changed=False,
            validated_at=at(0),
            label_target="merchant",
        )
        yield EmbeddingBatchResult(**word, batch_id="batch-e", label="TOTAL", pinecone_id="p", text="w")


def _images(count: int) -> Iterator[Entity]:
    """Many images with a small receipt each."""
    for n in range(count):
        image_id = f"image-{n}"
        result = ocr_result(image_id, lines=1, words=1, letters=1)
        yield from result.under_the_image()
        yield result.image
        yield Receipt(image_id="image", receipt_id=n + 2, **PICTURE, **CORNERS)
        here: dict[str, Any] = {"image_id": image_id, "receipt_id": 1}
        yield ReceiptMetadata(**here, merchant_name="Shop", match_confidence=0.5, timestamp=at(n))
        yield ReceiptField(**here, field_type="DATE", words=[], timestamp_added=at(n))
        yield ReceiptLabelAnalysis(**here, labels=[], version="1", timestamp_added=at(n))
        yield ReceiptStructureAnalysis(**here, sections=[], version="1", timestamp_added=at(n))
        yield ReceiptLineItemAnalysis(**here, items=[], total_found=False, version="1", timestamp_added=at(n))
        yield ReceiptValidationSummary(**here, overall_status="NEEDS_REVIEW", version="1", validation_timestamp=at(n))
        field: dict[str, Any] = {**here, "field_name": "total", "validation_timestamp": at(n)}
        yield ReceiptValidationCategory(**field, field_category="Date", status="VALID")
        yield ReceiptValidationResult(**field, result_index=0, type=ResultType.WARNING, message="fine")


def _batches(count: int) -> Iterator[Entity]:
    yield LabelMetadata(label="TOTAL", status="ACTIVE", last_updated=at(0), label_target="merchant")
    yield BatchSummary(batch_id="batch", batch_type="COMPLETION", status="PENDING")
    for n in range(count):
        yield BatchSummary(batch_id=f"b{n}", batch_type="COMPLETION", status="PENDING")
        yield LabelMetadata(label=f"L{n}", status="ACTIVE", last_updated=at(0), label_target="merchant")
        found: dict[str, Any] = {"gpt_agreed": False, "timestamp": at(n)}
        yield LabelHygieneResult(hygiene_id=f"a{n}", alias="STORE", canonical_label=f"L{n}", **found)
        yield LabelHygieneResult(hygiene_id=f"b{n}", alias=f"A{n}", canonical_label="TOTAL", **found)
        yield PlacesCache(
            search_type="ADDRESS", search_value=f"{n}", place_id="P", places_response=None, last_updated=at(n)
        )


def _start_runs(services: Services) -> None:
    comments = b"comment-id,comment-body,moderated\n1,trees,1\n2,buses,1\n"
    votes = b"comment-id,voter-id,vote\n1,1,1\n2,1,-1\n"
    for run in ("run-a", "run-b"):
        services.get(ConversationRuns).start("talk", comments, votes, run_id=run, user="ada")


def _conversation(count: int) -> Iterator[Entity]:
    clock, make = FakeClock(START), DataConverter()
    file = StoredFile(key="conversations/36324/run/comments.csv", size_bytes=1, sha256="0" * 64)
    stages = {kind.__name__: stage_job_id("run-a", stage) for kind, stage in STAGE_OF.items()}
    for n in range(count):
        yield ConversationRun(
            run_id=f"r{n}", conversation_id="talk", created_at=at(n), created_by="ada", comments=file, votes=file
        )
        made = (
            make.create_comment_embedding("talk", n, [0.5] * 10, clock=clock, job_id="x"),
            make.create_cluster_assignment("talk", n, [n, 0], clock=clock, job_id="x"),
            make.create_cluster("talk", 0, n, 1, clock=clock, job_id="x"),
            make.create_graph_edge("talk", n, n + 1, 0.5, clock=clock, job_id="x"),
            make.create_topic_name("talk", 0, n, "Parks", model_name="m", clock=clock, job_id="x"),
            make.create_comment_extremity("talk", n, 0.5, calculation_method="v", clock=clock, job_id="x"),
        )
        for each in made:
            yield each.replace(job_id=stages[type(each).__name__])

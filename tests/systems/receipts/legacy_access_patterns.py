"""Two legacy images with their tags, and jobs beside them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from tests.access_patterns import Question, World
from tests.systems.receipts.legacy.table import legacy_items
from tests.systems.receipts.pictures import NOON, PLACED

from jobtable.jobs.stored.field_types import InstanceStatus, Status
from jobtable.model import Entity
from jobtable.store import Store
from jobtable.systems.receipts.legacy.entities import (
    Instance,
    InstanceJob,
    JobCheckpoint,
    JobDependency,
    JobLog,
    JobMetric,
    JobResource,
    JobStatus,
    Queue,
    ReceiptWord,
    legacy,
)
from jobtable.systems.receipts.legacy.legacy_jobs import LegacyJobQueries
from jobtable.systems.receipts.legacy.service import LegacyService

_FIRST, _SECOND = "image-00000", "image-00001"
_JOB, _OTHER = "job-00000", "job-00001"


def items() -> Iterator[Entity]:
    """The world: two images with a receipt each, and two jobs of which one waits for the other."""
    yield from legacy_items(2)
    for minute, status in enumerate([Status.PENDING, Status.RUNNING, Status.COMPLETED]):
        yield JobStatus(job_id=_JOB, status=status, updated_at=NOON + timedelta(minutes=minute))
    yield JobMetric(job_id=_JOB, metric_name="loss", timestamp=NOON + timedelta(minutes=5), value=0.5)
    yield JobDependency(job_id=_OTHER, dependency_job_id=_JOB, type="SUCCESS", created_at=NOON)
    yield Instance(instance_id="I", instance_type="gpu", launched_at=NOON, status=InstanceStatus.RUNNING)
    yield JobResource(
        job_id=_JOB,
        resource_id="gpu-0",
        resource_type="GPU",
        instance_id="I",
        instance_type="gpu",
        allocated_at=NOON,
        status="held",
    )
    for minute in (2, 1):
        moment = NOON + timedelta(minutes=minute)
        yield JobLog(job_id=_JOB, timestamp=moment, message=f"line {minute}")
        yield JobCheckpoint(
            job_id=_JOB, timestamp=moment, s3_bucket="b", s3_key="k", size_bytes=1, step=minute, epoch=0
        )
    yield Queue(queue_name="gpu", created_at=NOON)
    yield Queue(queue_name="cpu", created_at=NOON)
    yield InstanceJob(instance_id="I", job_id=_JOB, assigned_at=NOON, status=Status.COMPLETED)


def _answers(store: Store) -> list[str]:
    word = ReceiptWord(image_id=_FIRST, receipt_id=1, line_id=1, word_id=2, text="milk", **PLACED)
    return [answer.response for answer in LegacyService(store).list_gpt_answers(word, "FOOD")]


_SEED = "legacy-receipts"
WORLD = World(
    name="legacy receipts",
    tables=(legacy,),
    items=items,
    questions={
        (_SEED, "List the words with a tag"): Question(
            lambda s: [(e.image_id, e.word_id) for e in LegacyService(s).list_words_by_tag("FOOD")],
            [(_FIRST, 1), (_FIRST, 2), (_SECOND, 1), (_SECOND, 2)],
        ),
        (_SEED, "List the receipt words with a tag"): Question(
            lambda s: [(e.image_id, e.word_id) for e in LegacyService(s).list_receipt_words_by_tag("food")],
            [(_FIRST, 1), (_FIRST, 2), (_SECOND, 1), (_SECOND, 2)],
        ),
        (_SEED, "List the tags of all receipts"): Question(
            lambda s: [(e.image_id, e.word_id, e.tag_name) for e in LegacyService(s).list_all_receipt_word_tags()],
            [(image_id, word_id, "FOOD") for image_id in (_FIRST, _SECOND) for word_id in (1, 2)],
        ),
        (_SEED, "List the lines of all images"): Question(
            lambda s: [(e.image_id, e.line_id) for e in LegacyService(s).list_all_lines()], [(_FIRST, 1), (_SECOND, 1)]
        ),
        (_SEED, "List all images"): Question(
            lambda s: [e.image_id for e in LegacyService(s).list_images()], [_FIRST, _SECOND]
        ),
        (_SEED, "Get an image with everything under it"): Question(
            lambda s: [type(e).__name__ for e in LegacyService(s).list_under_image(_FIRST)][:4],
            ["Image", "Line", "Word", "Letter"],
        ),
        (_SEED, "List the receipts of an image"): Question(
            lambda s: [e.image_id for e in LegacyService(s).list_receipts(_SECOND)], [_SECOND]
        ),
        (_SEED, "List all receipts"): Question(
            lambda s: [e.image_id for e in LegacyService(s).list_all_receipts()], [_FIRST, _SECOND]
        ),
        (_SEED, "List the words of all receipts"): Question(
            lambda s: [e.word_id for e in LegacyService(s).list_all_receipt_words()], [1, 2, 1, 2]
        ),
        (_SEED, "List what GPT was asked about a word's tag"): Question(_answers, ["FOOD", "yes"]),
        (_SEED, "Get all information about a job"): Question(
            lambda s: [type(e).__name__ for e in LegacyJobQueries(s).list_under_job(_JOB)],
            ["JobCheckpoint"] * 2 + ["Job"] + ["JobLog"] * 2 + ["JobMetric"] * 2 + ["JobResource"] + ["JobStatus"] * 3,
        ),
        (_SEED, "List jobs by status"): Question(
            lambda s: sorted(e.job_id for e in LegacyJobQueries(s).list_jobs_by_status("COMPLETED")), [_JOB, _OTHER]
        ),
        (_SEED, "List jobs by user"): Question(
            lambda s: sorted(e.job_id for e in LegacyJobQueries(s).list_jobs_by_user("ada")), [_JOB, _OTHER]
        ),
        (_SEED, "List the status history of a job"): Question(
            lambda s: [e.status for e in LegacyJobQueries(s).list_statuses(_JOB)], ["PENDING", "RUNNING", "COMPLETED"]
        ),
        (_SEED, "List the resources of a job"): Question(
            lambda s: [e.resource_id for e in LegacyJobQueries(s).list_resources(_JOB)], ["gpu-0"]
        ),
        (_SEED, "List the jobs of a resource"): Question(
            lambda s: [e.job_id for e in LegacyJobQueries(s).list_uses_of_resource("gpu-0")], [_JOB]
        ),
        (_SEED, "List the checkpoints of a job"): Question(
            lambda s: [e.step for e in LegacyJobQueries(s).list_checkpoints(_JOB)], [1, 2]
        ),
        (_SEED, "List the logs of a job"): Question(
            lambda s: [e.message for e in LegacyJobQueries(s).list_logs(_JOB)], ["line 1", "line 2"]
        ),
        (_SEED, "List the queues of a job"): Question(
            lambda s: [e.queue_name for e in LegacyJobQueries(s).list_queues_of_job(_JOB)], ["gpu"]
        ),
        (_SEED, "List all queues"): Question(
            lambda s: [e.queue_name for e in LegacyJobQueries(s).list_queues()], ["cpu", "gpu"]
        ),
        (_SEED, "Get the most recent status update of a job"): Question(
            lambda s: [e.status for e in [LegacyJobQueries(s).find_latest_status(_JOB)] if e], ["COMPLETED"]
        ),
        (_SEED, "List the metrics of a job since a time"): Question(
            lambda s: [e.value for e in LegacyJobQueries(s).list_metrics_since(_JOB, "loss", NOON)], [0.5]
        ),
        (_SEED, "List the values of a metric of all jobs"): Question(
            lambda s: sorted(e.value for e in LegacyJobQueries(s).list_metric("loss")), [0.0, 1 / 7, 0.5]
        ),
        (_SEED, "List the dependencies of a job"): Question(
            lambda s: [e.dependency_job_id for e in LegacyJobQueries(s).list_dependencies(_OTHER)], [_JOB]
        ),
        (_SEED, "List the dependents of a job"): Question(
            lambda s: [e.job_id for e in LegacyJobQueries(s).list_dependents(_JOB)], [_OTHER]
        ),
        (_SEED, "List instances by status"): Question(
            lambda s: [e.instance_id for e in LegacyJobQueries(s).list_instances_by_status("RUNNING")], ["I"]
        ),
        (_SEED, "List the jobs of an instance"): Question(
            lambda s: [e.job_id for e in LegacyJobQueries(s).list_jobs_of_instance("I")], [_JOB]
        ),
        (_SEED, "List the instances of a job"): Question(
            lambda s: [e.instance_id for e in LegacyJobQueries(s).list_instances_of_job(_JOB)], ["I"]
        ),
        (_SEED, "List the jobs of a queue"): Question(
            lambda s: [e.job_id for e in LegacyJobQueries(s).list_jobs_of_queue("gpu")], [_JOB, _OTHER]
        ),
    },
)

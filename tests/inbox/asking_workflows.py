"""Workflows that ask a person, of both styles, and what runs them in a test's process."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.config import Duration, WaitForCallbackConfig
from aws_durable_execution_sdk_python.retries import RetryDecision
from tests.running import run_jobs

from jobtable.inbox import Question, asking
from jobtable.jobs.engine import Jobs
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.machine_verbs import MachineDraft
from jobtable.workflows.asl.catalogue.machines import Machines
from jobtable.workflows.asl.machine_definition import check_definition
from jobtable.workflows.functions import function
from jobtable.workflows.table_and_queues import QUEUES

ROLE = "arn:aws:iam::123456789012:role/any"
QUEUE_URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/jobtable-inbox"
TOPIC_ARN = "arn:aws:sns:eu-central-1:123456789012:team-jobtable-inbox"
BODY: dict[str, Any] = {
    "title": "Ship it?",
    "choices": ["yes", "no"],
    "answer_within_seconds": 3600,
    "deliver": "tests.inbox.labels:deliver",
    "token.$": "$$.Task.Token",
}


def asking_machine(service: str = "sqs", **body: Any) -> dict[str, Any]:
    """A machine that asks, and says by a Choice what was answered, or by which error nobody answered."""
    message = {name: value for name, value in {**BODY, **body}.items() if value is not None}
    parameters = {
        "sqs": {"QueueUrl": QUEUE_URL, "MessageBody": message},
        "sns": {"TopicArn": TOPIC_ARN, "Message": message},
    }
    action = {"sqs": "sqs:sendMessage", "sns": "sns:publish"}[service]
    return {
        "StartAt": "Ask",
        "States": {
            "Ask": {
                "Type": "Task",
                "Resource": f"arn:aws:states:::{action}.waitForTaskToken",
                "Parameters": parameters[service],
                "ResultPath": "$.answer",
                "Catch": [
                    {"ErrorEquals": ["Declined"], "ResultPath": "$.problem", "Next": "Declined"},
                    {"ErrorEquals": ["States.Timeout"], "ResultPath": "$.problem", "Next": "Late"},
                ],
                "Next": "WhatWasAnswered",
            },
            "WhatWasAnswered": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.answer", "StringEquals": "yes", "Next": "Shipped"}],
                "Default": "Kept",
            },
            "Shipped": {"Type": "Pass", "Result": "shipped", "End": True},
            "Kept": {"Type": "Pass", "Result": "kept", "End": True},
            "Declined": {"Type": "Pass", "Parameters": {"declined.$": "$.problem.Cause"}, "End": True},
            "Late": {"Type": "Pass", "Result": "late", "End": True},
        },
    }


def create(jobs: Jobs, definition: dict[str, Any], name: str = "asking") -> None:
    """Create a machine."""
    machines = Machines(jobs.store, jobs.objects, check_definition)
    machines.create(MachineDraft(name, json.dumps(definition), ROLE), arns=Arns())


def work(jobs: Jobs) -> None:
    """Run all jobs of workflows that are ready."""
    ran = 1
    while ran:
        for queue in QUEUES:
            jobs.promote_due(queue)
        ran = sum(run_jobs(jobs, queue, retryable=True) for queue in QUEUES)


def _never(error: Exception, attempt: int) -> RetryDecision:
    return RetryDecision.no_retry()


@function(name="inbox-asking", inline=True)
@durable_execution
def ask_durably(event: dict[str, Any], context: DurableContext) -> str:
    """Ask a person whether to ship, and say what was answered."""
    question = Question(
        "Ship it?",
        choices=["yes", "no"],
        answer_within=timedelta(hours=1),
        rejected_error="Declined",
        deliver="tests.inbox.labels:deliver",
    )
    config = WaitForCallbackConfig(timeout=Duration.from_seconds(event.get("timeout", 86_400)), retry_strategy=_never)
    answer = context.wait_for_callback(asking(context, question), name="ask", config=config)
    return "shipped" if json.loads(answer) == "yes" else "kept"

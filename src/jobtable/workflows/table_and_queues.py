"""The table of workflows, and the queues of their jobs."""

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

EXECUTIONS_QUEUE = "workflows"
"""The queue of the jobs that move executions of state machines: small and inline."""
FUNCTIONS_QUEUE = "functions"
"""The queue of the jobs that call functions, durable ones included."""
QUEUES = (EXECUTIONS_QUEUE, FUNCTIONS_QUEUE)
TASK_MODULES = ("jobtable.workflows.asl.execution.moving", "jobtable.workflows.durable.function_tasks")
"""The modules of the tasks of these jobs, which workers load before their first job."""

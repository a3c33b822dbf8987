"""Where executions find the machines that they start."""

from __future__ import annotations

from jobtable.errors import missing
from jobtable.workflows.asl.arns import find_states_arn
from jobtable.workflows.asl.catalogue.machine_verbs import MachineVerbs
from jobtable.workflows.asl.verbs import RunnableMachine


class MachinesByArn:
    """The machines of a store under their ARNs: what `states:startExecution` names."""

    def __init__(self, machines: MachineVerbs) -> None:
        self._machines = machines

    def runnable(self, arn: str) -> RunnableMachine:
        """Return what the ARN of a machine, version or alias names, or raise NotFoundError."""
        found = find_states_arn(arn)
        if found is None or found.kind != "stateMachine" or len(found.parts) > 2:
            raise missing("state machine", arn)
        return self._machines.runnable(found.name, found.parts[1] if len(found.parts) == 2 else None)

"""The names of things in AWS's form."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jobtable.errors import ValueRefusedError

REGION = "us-east-1"
ACCOUNT = "000000000000"
_REFUSED_CHARACTERS = re.compile(r'[\s<>{}\[\]?*"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\U0010ffff]')
_MOST_CHARACTERS = 80
_STATES_ARN = re.compile(
    r"arn:aws[\w-]*:states:(?P<region>[\w-]*):(?P<account>\d*):(?P<kind>\w+):(?P<rest>.+)", re.DOTALL
)


@dataclass(frozen=True)
class Arns:
    """Makes the ARNs of one region and account."""

    region: str = REGION
    account: str = ACCOUNT

    def machine(self, name: str) -> str:
        """Return the ARN of a state machine."""
        return self._states(f"stateMachine:{name}")

    def execution(self, machine: str, name: str) -> str:
        """Return the ARN of a standard execution."""
        return self._states(f"execution:{machine}:{name}")

    def express(self, machine: str, name: str, run_id: str) -> str:
        """Return the ARN of an express execution."""
        return self._states(f"express:{machine}:{name}:{run_id}")

    def activity(self, name: str) -> str:
        """Return the ARN of an activity."""
        return self._states(f"activity:{name}")

    def map_run(self, machine: str, label: str, run_id: str) -> str:
        """Return the ARN of the run of a distributed Map."""
        return self._states(f"mapRun:{machine}/{label}:{run_id}")

    def function(self, name: str) -> str:
        """Return the ARN of a function."""
        return f"arn:aws:lambda:{self.region}:{self.account}:function:{name}"

    def _states(self, resource: str) -> str:
        return f"arn:aws:states:{self.region}:{self.account}:{resource}"


@dataclass(frozen=True)
class StatesArn:
    """A taken-apart ARN of Step Functions: its kind, and the parts of the name after it."""

    kind: str
    parts: tuple[str, ...]
    arns: Arns

    @property
    def name(self) -> str:
        """The name of the machine, the activity, or the machine of an execution."""
        return self.parts[0]


def find_states_arn(text: str) -> StatesArn | None:
    """Return the parts of an ARN of Step Functions, or None if it is no such ARN."""
    found = _STATES_ARN.fullmatch(text)
    if found is None:
        return None
    return StatesArn(found["kind"], tuple(found["rest"].split(":")), Arns(found["region"], found["account"]))


def has_refused_characters(name: str) -> bool:
    """Return whether a name has characters that names of machines, executions and activities do not have."""
    return _REFUSED_CHARACTERS.search(name) is not None


def check_states_name(kind: str, name: str) -> None:
    """Raise ValueRefusedError unless a machine, an execution or an activity can have this name."""
    if not 1 <= len(name) <= _MOST_CHARACTERS or has_refused_characters(name):
        raise ValueRefusedError(
            f"invalid name of {kind} {name[:100]!r}; use 1 to {_MOST_CHARACTERS} characters without spaces and without "
            'any of < > { } [ ] ? * " # % \\ ^ | ~ ` $ & , ; : /'
        )

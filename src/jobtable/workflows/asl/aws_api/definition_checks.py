"""ValidateStateMachineDefinition."""

from __future__ import annotations

from jobtable.workflows.asl.aws_api.aws_calls import Call, Response, without_none
from jobtable.workflows.asl.entities import MachineType

_MOST_RESULTS = 100


def validate(call: Call) -> Response:
    """ValidateStateMachineDefinition: all faults of a definition."""
    request = call.request
    found = call.diagnose(request["definition"], MachineType(request.get("type") or MachineType.STANDARD))
    wanted = {"ERROR"} if request.get("severity") != "WARNING" else {"ERROR", "WARNING"}
    shown = [each for each in found if each.severity in wanted]
    most = request.get("maxResults") or _MOST_RESULTS
    return {
        "result": "FAIL" if any(each.severity == "ERROR" for each in found) else "OK",
        "diagnostics": [
            without_none(severity=each.severity, code=each.code, message=each.message, location=each.location or None)
            for each in shown[:most]
        ],
        "truncated": len(shown) > most,
    }

"""The expressions of the States Language: JSONPath, intrinsic functions, JSONata, and templates of them.

- `fill(template: Any, scope: Scope, language: Language, field: str = "") -> Any`: a template, `Arguments`, `Output` or
  one string. `field` is its place in the state, as in `Output` or `Choices[1]/Assign`, for messages and locations;
  StateFault("States.Runtime" | "States.IntrinsicFailure" | "States.QueryEvaluationError"). `Assign` is filled with it,
  too.
- `find_path_fault(path: str, *, reference: bool = False) -> str | None`
- `find_template_faults(template: Any, language: Language) -> list[tuple[str, str]]`
"""

from jobtable.workflows.asl.expressions.failures import ExpressionFault
from jobtable.workflows.asl.expressions.path_expressions import is_present, read_path
from jobtable.workflows.asl.expressions.path_placing import place
from jobtable.workflows.asl.expressions.scope import Scope

__all__ = ["ExpressionFault", "Scope", "is_present", "place", "read_path"]

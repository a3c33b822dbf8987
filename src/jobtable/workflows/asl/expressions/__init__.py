"""The expressions of the States Language: JSONPath, intrinsic functions, JSONata, and templates of them.

- `find_path_fault(path: str, *, reference: bool = False) -> str | None`
- `find_template_faults(template: Any, language: Language) -> list[tuple[str, str]]`
"""

from jobtable.workflows.asl.expressions.path_expressions import is_present, read_path
from jobtable.workflows.asl.expressions.path_placing import place
from jobtable.workflows.asl.expressions.scope import Scope
from jobtable.workflows.asl.expressions.templates import fill

__all__ = ["Scope", "fill", "is_present", "place", "read_path"]

"""The expressions of the States Language: JSONPath, intrinsic functions, JSONata, and templates of them.

- `read_path(path: str, scope: Scope) -> Any`: a JSONPath, `$$.` path or `$variable`; StateFault("States.Runtime").
- `fill(template: Any, scope: Scope, language: Language, field: str = "") -> Any`: a template, `Arguments`, `Output` or
  one string. `field` is its place in the state, as in `Output` or `Choices[1]/Assign`, for messages and locations;
  StateFault("States.Runtime" | "States.ParameterPathFailure" | "States.IntrinsicFailure" |
  "States.QueryEvaluationError"). `Assign` is filled with it, too.
- `place(path: str, raw_input: Any, value: Any) -> Any`: ResultPath; StateFault("States.ResultPathMatchFailure").
- `find_path_fault(path: str, *, reference: bool = False) -> str | None`
- `find_template_faults(template: Any, language: Language) -> list[tuple[str, str]]`
"""

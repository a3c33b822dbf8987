"""The expressions of the States Language: JSONPath, intrinsic functions, JSONata, and templates of them."""

from jobtable.workflows.asl.query_languages.expression_checks import find_path_fault, find_template_faults
from jobtable.workflows.asl.query_languages.path_expressions import is_present, read_path
from jobtable.workflows.asl.query_languages.path_placing import place
from jobtable.workflows.asl.query_languages.scope import Scope
from jobtable.workflows.asl.query_languages.template_filling import fill

__all__ = ["Scope", "fill", "find_path_fault", "find_template_faults", "is_present", "place", "read_path"]

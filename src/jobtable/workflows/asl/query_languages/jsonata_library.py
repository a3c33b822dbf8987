"""The one place that knows jsonata-python: what it exports, and what it keeps inside.

Used beyond its documented interface: the syntax tree (`ast` and the members of its symbols), `__evaluate_entry` and
`__evaluate_exit` (called around the evaluation of each symbol), methods that evaluate one operator, signatures of
functions, `NULL_VALUE` (None is its undefined), and error codes with their texts. A test fails when one of them moves.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jobtable.workflows.asl.query_languages.bounded_patterns import Pattern, compile_pattern
from jobtable.workflows.asl.query_languages.expression_errors import MOST_CHARACTERS, to_text

MISSING_EXTRA = "JSONata needs the extra 'workflows'; run: pip install 'jobtable[workflows]'"

_recursion_limit = sys.getrecursionlimit()
try:
    from jsonata import functions, jexception, parser, signature, utils
    from jsonata import jsonata as engine
except ImportError:
    if not TYPE_CHECKING:
        is_installed = False  # the extra is missing
    else:
        raise
else:
    is_installed = True
    # Importing it raises the limit for the whole process; expressions have a limit of their own.
    sys.setrecursionlimit(_recursion_limit)


_ELEMENTS = {
    "a": "arrays",
    "b": "booleans",
    "f": "functions",
    "n": "numbers",
    "o": "objects",
    "s": "strings",
}


class JsonataError(Exception):
    """An expression failed; its text starts with the code of the error, where it has one."""


class MissingLibraryError(Exception):
    """The library is not installed."""

    def __init__(self) -> None:
        super().__init__(MISSING_EXTRA)


def null() -> Any:
    """Return what stands for the null of JSON; None is undefined."""
    return utils.Utils.NULL_VALUE


def is_null(value: Any) -> bool:
    """Return whether a value is the null of JSON."""
    return value is utils.Utils.NULL_VALUE


def is_callable(value: Any) -> bool:
    """Return whether a value is a function or a regular expression."""
    return (
        isinstance(value, Pattern)
        or utils.Utils.is_function(value)
        or functions.Functions.is_lambda(value)
        or functions.Functions.is_regex(value)
    )


def are_equal(left: Any, right: Any) -> bool:
    """Compare two values as `=` does."""
    return bool(utils.Utils.is_deep_equal(left, right))


def apply(function: Any, arguments: list[Any]) -> Any:
    """Call a function value."""
    return functions.Functions.func_apply(function, arguments)


def format_millis(millis: int, picture: str | None, timezone: str | None) -> str:
    """Return a time as `$fromMillis` does."""
    try:
        return str(functions.Functions.datetime_from_millis(millis, picture, timezone))
    except KeyError as error:
        raise fail("D3132", *error.args) from None
    except (OSError, OverflowError):
        raise fail("D1001", millis) from None


def format_number(value: Decimal, picture: str, symbols: Mapping[str, str]) -> str:
    """Return a number as `$formatNumber` does."""
    of_library: Any = functions.Functions
    return str(of_library.format_number(value, picture, symbols))


def sort(values: list[Any], comparator: Any) -> Any:
    """Return values in order, as `$sort` does."""
    return functions.Functions.sort(values, comparator)


def parse_time(text: str, picture: str | None) -> Any:
    """Return the milliseconds of a time as `$toMillis` does; raises ValueError."""
    return functions.Functions.datetime_to_millis(text, picture)


def parse_integer(text: str, picture: str) -> Any:
    """Return an integer as `$parseInteger` does; raises ValueError."""
    return functions.Functions.parse_integer(text, picture)


def fail(code: str, *values: Any) -> Exception:
    """Return the library's own error for a code."""
    return jexception.JException(code, -1, *values)  # type: ignore[no-any-return]


def make_function(implementation: Callable[..., Any], signature: str) -> Any:
    """Return a function value; its signature is checked before each call."""
    return engine.Jsonata.JFunction(engine.Jsonata.JLambda(implementation), signature)


def make_sequence(values: list[Any]) -> Any:
    """Return a sequence: one that has a single value is that value."""
    return utils.Utils.create_sequence_from_iter(values)


@lru_cache(maxsize=512)
def parse(expression: str) -> Any:
    """Return an expression ready to be evaluated, or raise JsonataError."""
    if not is_installed:
        raise MissingLibraryError
    if len(expression) > MOST_CHARACTERS:
        raise JsonataError(f"The expression has more than {MOST_CHARACTERS} characters")
    try:
        return _engine_class()(expression, _compile_regex)
    except jexception.JException as error:
        raise JsonataError(describe(error, with_code=False)) from None
    except RecursionError:
        raise JsonataError("The expression is nested too deeply") from None
    except (ValueError, IndexError, AttributeError, TypeError, KeyError) as error:
        raise JsonataError(f"Syntax error: {error}") from None


def _compile_regex(pattern: str, flags: Any) -> Pattern:
    return compile_pattern(pattern, ignores_case=flags.case_insensitive, is_multiline=flags.multiline)


@lru_cache(maxsize=1)
def function_names() -> set[str]:
    """Return the names of the functions that every expression can call, and of those that Step Functions adds."""
    return {*vars(engine.Jsonata.static_frame)["bindings"], "parse", "partition", "range", "hash", "uuid"}


def tree_of(parsed: Any) -> Any:
    """Return the syntax tree of a parsed expression."""
    return parsed.ast


def evaluate(
    parsed: Any,
    bindings: Mapping[str, Any],
    *,
    on_entry: Callable[[], None],
    on_exit: Callable[[Any], None],
    text_of: Callable[[Any], str | None],
) -> Any:
    """Return the value of an expression; `on_exit` receives that of each part, `&` concatenates what `text_of` returns.

    Raises what these functions raise, JsonataError, and errors of Python where an argument is of the wrong type.
    """

    def enter(_symbol: Any, _input: Any, _frame: Any) -> None:
        on_entry()

    def leave(_symbol: Any, _input: Any, _frame: Any, value: Any) -> None:
        on_exit(value)

    # The library evaluates with the expression that was parsed last on this thread.
    engine.Jsonata.CURRENT.jsonata = parsed
    parsed.text_of = text_of
    frame = {**bindings, "__evaluate_entry": enter, "__evaluate_exit": leave}
    try:
        return parsed.evaluate(None, frame)
    except jexception.JException as error:
        raise JsonataError(describe(error)) from None


def describe(error: Any, *, with_code: bool = True) -> str:
    """Return an error in the words of JSONata, where the library has its own."""
    template = jexception.JException.error_codes.get(error.error)
    if template is None:
        return str(error.error)
    text = template.replace("Object", "function")
    extra = _ELEMENTS.get(error.extra, error.extra) if error.error == "T0412" else error.extra
    for value in (error.current, error.expected, extra):
        start, end = text.find("{{"), text.find("}}")
        if start < 0:
            break
        is_raw = text.startswith("{{{", start)
        end += 3 if is_raw else 2
        text = text[:start] + (str(value) if is_raw else _quote(value)) + text[end:]
    return f"{error.error}: {text}" if with_code else text


def _quote(value: Any) -> str:
    if value is None or is_null(value):
        return "null"
    try:
        return to_text(value)
    except (TypeError, ValueError, RecursionError):
        return f'"{type(value).__name__}"'


@lru_cache(maxsize=1)
def _signature_class() -> Any:
    """Signatures to which null is a value of its own, not a missing one."""

    class NullSignature(signature.Signature):  # type: ignore[misc]
        def get_symbol(self, value: Any) -> str:
            return "l" if is_null(value) else str(super().get_symbol(value))

    return NullSignature


@lru_cache(maxsize=1)
def _frame_class() -> Any:
    """Variables in which a function of the library keeps its name, which errors of all expressions have."""

    class Frame(engine.Jsonata.Frame):  # type: ignore[misc]
        def bind(self, name: str, val: Any) -> None:
            found = getattr(val, "signature", None)
            own_name = "<class" if found is None else found.function_name
            super().bind(name, val)
            if found is not None and isinstance(val, engine.Jsonata.JFunction) and own_name[:6] != "<class":
                found.set_function_name(own_name)

    return Frame


def _parser() -> Any:
    """Return a parser of JSONata 2.0, which Step Functions has: without the operators of 2.1.

    To JSONata 2.0, `a ?? b` is a condition whose second part begins with `?`, and `a ?: b` one that begins with `:`.
    """

    class Refused(parser.Parser.Infix):  # type: ignore[misc]
        def led(self, left: Any) -> Any:
            raise jexception.JException("S0211", self.position, str(self.id)[-1])

    made = parser.Parser()
    made.symbol_table.update({each: Refused(made, each) for each in ("??", "?:")})
    return made


@lru_cache(maxsize=1)
def _engine_class() -> Any:
    """The library's evaluator, with the operators in which it differs from JSONata."""

    class Engine(engine.Jsonata):  # type: ignore[misc]
        text_of: Callable[[Any], str | None]

        def __init__(self, expression: str, regex_engine: Any) -> None:
            engine.Jsonata.PARSER.parser = _parser()  # of this thread, which the library asks for
            super().__init__(expression, regex_engine)
            self.set_validate_input(False)
            self.set_output_convert_nulls(False)

        def evaluate_numeric_expression(self, lhs: Any, rhs: Any, op: str | None) -> Any:
            is_numeric = utils.Utils.is_numeric
            if lhs is not None and not is_numeric(lhs):
                raise jexception.JException("T2001", -1, op, lhs)
            if rhs is not None and not is_numeric(rhs):
                raise jexception.JException("T2002", -1, op, rhs)
            if lhs is None or rhs is None:
                return None
            value = _calculate(float(lhs), float(rhs), str(op))
            return int(value) if math.isfinite(value) and value.is_integer() else value

        def create_frame(self, enclosing_environment: Any = None) -> Any:
            return _frame_class()(enclosing_environment)

        def validate_arguments(self, signature: Any, args: Any, context: Any) -> Any:
            found = getattr(signature, "signature", None)
            if found is None or not any(map(is_null, args or ())):
                return super().validate_arguments(signature, args, context)
            known = object.__new__(_signature_class())
            known.__dict__.update(found.__dict__)
            return known.validate(args, context)

        def evaluate_string_concat(self, lhs: Any, rhs: Any) -> str:
            return (self.text_of(lhs) or "") + (self.text_of(rhs) or "")

        def evaluate_includes_expression(self, lhs: Any, rhs: Any) -> bool:
            if lhs is None or rhs is None:
                return False
            return any(are_equal(each, lhs) for each in (rhs if isinstance(rhs, list) else [rhs]))

    return Engine


def _calculate(left: float, right: float, operator: str) -> float:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if right == 0:
        is_undefined = operator == "%" or left == 0 or math.isnan(left)
        return math.nan if is_undefined else math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right if operator == "/" else math.fmod(left, right)

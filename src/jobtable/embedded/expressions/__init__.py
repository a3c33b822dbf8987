"""DynamoDB's expressions: parsed once, cached by their text, and evaluated on items in wire form.

    placeholders = Placeholders.of(request, "UpdateExpression", "ConditionExpression")
    condition = compile_condition(text, placeholders)      condition.holds(item)
    update = compile_update(text, placeholders)            update.apply(item), update.updated_part(item)
    projection = compile_projection(text, placeholders)    projection.apply(item)
    placeholders.finish()                                  refuses names and values that nothing used

Everything raises RequestRefused with DynamoDB's message. Items and values must be valid (`values.validate_item`).
"""

from jobtable.embedded.expressions.conditions import Condition, compile_condition
from jobtable.embedded.expressions.key_conditions import KeyCondition, SortRange, prepare_key_condition
from jobtable.embedded.expressions.placeholders import InvalidValue, Placeholders
from jobtable.embedded.expressions.projections import Projection, compile_projection
from jobtable.embedded.expressions.updates import Update, compile_update

__all__ = [
    "Condition",
    "InvalidValue",
    "KeyCondition",
    "Placeholders",
    "Projection",
    "SortRange",
    "Update",
    "compile_condition",
    "compile_projection",
    "compile_update",
    "prepare_key_condition",
]

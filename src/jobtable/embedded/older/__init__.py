"""The parameters from before expressions, which older programs still send.

    has_none(request)                                   whether there are none, as in most requests
    older = given("PutItem", request)                   the names of those that there are
    expected(request), older_filter(request, name)      a Condition of Expected, of QueryFilter or of ScanFilter
    attribute_updates(request)                          an Update of AttributeUpdates
    attributes_to_get(request)                          a Projection of AttributesToGet
    OlderKeyCondition(request)                          KeyConditions, to be held against the key schema

Everything becomes what expressions become, so that one engine evaluates both. What is checked before that, and in which
words it is refused, is of their own. Names of attributes are taken as they are: they are no paths.
"""

from jobtable.embedded.older.conditions import expected, older_filter
from jobtable.embedded.older.keys import OlderKeyCondition
from jobtable.embedded.older.parameters import given, has_none, older_faults, refuse_operator
from jobtable.embedded.older.projections import attributes_to_get
from jobtable.embedded.older.updates import attribute_updates

__all__ = [
    "OlderKeyCondition",
    "attribute_updates",
    "attributes_to_get",
    "expected",
    "given",
    "has_none",
    "older_faults",
    "older_filter",
    "refuse_operator",
]

"""The command `jobtable`: one file a command group. The names here are what the commands of a system need."""

from typing import TYPE_CHECKING

from jobtable.exports import offer

if TYPE_CHECKING:
    from jobtable.cli.groups import new_group
    from jobtable.cli.options import AsJson, Limit, ObjectsUrl, StoreUrl, User, open_services
    from jobtable.cli.output import print_fields, print_json, print_list, print_text, say

__all__ = [
    "AsJson",
    "Limit",
    "ObjectsUrl",
    "StoreUrl",
    "User",
    "new_group",
    "open_services",
    "print_fields",
    "print_json",
    "print_list",
    "print_text",
    "say",
]

if not TYPE_CHECKING:  # the modules need the extra `cli`
    __getattr__, __dir__ = offer(__name__, __all__, ["groups", "options", "output"])

"""The command `jobtable`, with one file per command group. Commands of a system use the names listed here."""

from typing import TYPE_CHECKING

from jobtable.lazy_exports import offer

if TYPE_CHECKING:
    from jobtable.cli.framework import new_group
    from jobtable.cli.options import AsJson, Limit, ObjectsUrl, StoreUrl, User, on_services, open_services
    from jobtable.cli.output import print_fields, print_json, print_list, print_text, say

__all__ = [
    "AsJson",
    "Limit",
    "ObjectsUrl",
    "StoreUrl",
    "User",
    "new_group",
    "on_services",
    "open_services",
    "print_fields",
    "print_json",
    "print_list",
    "print_text",
    "say",
]

if not TYPE_CHECKING:  # the modules need the extra `cli`
    __getattr__, __dir__ = offer(__name__, __all__, ["framework", "options", "output"])

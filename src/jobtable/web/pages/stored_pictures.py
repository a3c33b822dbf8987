"""Pictures from object storage that pages show, and those that are not there any more."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from jobtable.errors import ObjectNotFoundError, ObjectStoreError, ValueRefusedError
from jobtable.objects import ObjectStore, content_type
from jobtable.web.pages.frame import object_address

_SHOWN_BY_BROWSERS = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"}
_MOST_ASKED = 20
"""Of how many objects it is asked whether they are there; an image has some receipts."""


def picture_address(key: str) -> str | None:
    """Where a picture is served, if it is one that a browser shows. Scripts of an SVG do not run in an image."""
    return object_address(key) if content_type(key) in _SHOWN_BY_BROWSERS else None


def find_gone(objects: ObjectStore, keys: Iterable[str]) -> set[str]:
    """Which objects are not there; where object storage cannot be asked, none is taken for gone."""
    gone = set()
    for key in islice(dict.fromkeys(keys), _MOST_ASKED):
        try:
            objects.describe(key)
        except (ObjectNotFoundError, ValueRefusedError):  # or it is a key of another program, that no object can have
            gone.add(key)
        except ObjectStoreError:  # what the page tells besides is there all the same: asking on would keep it waiting
            break
    return gone

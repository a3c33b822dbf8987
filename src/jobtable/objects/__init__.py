"""Object storage: the ObjectStore protocol, and its stores in memory, in a folder and in S3."""

from jobtable.objects.connection import open_objects
from jobtable.objects.keys import content_type, key_parts, object_key
from jobtable.objects.orphans import SweepReport, sweep
from jobtable.objects.store import ListedObject, ObjectInfo, ObjectStore, Source

__all__ = [
    "ListedObject",
    "ObjectInfo",
    "ObjectStore",
    "Source",
    "SweepReport",
    "content_type",
    "key_parts",
    "object_key",
    "open_objects",
    "sweep",
]

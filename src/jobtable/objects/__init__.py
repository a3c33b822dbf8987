"""Object storage: the ObjectStore protocol, and its stores in memory, in a folder and in S3."""

from jobtable.objects.keys import content_type, key_parts, object_key
from jobtable.objects.object_store import ListedObject, ObjectInfo, ObjectStore, Source
from jobtable.objects.orphans import SweepReport, sweep
from jobtable.objects.urls import open_objects

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

"""The embedded engine: DynamoDB's API in process, on one SQLite file."""

from jobtable.embedded.backend import EmbeddedBackend

__all__ = ["EmbeddedBackend"]

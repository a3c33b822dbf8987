"""What the pages of executions look at as it changes."""

from __future__ import annotations

from jobtable.systems.albums.entities import workflows
from jobtable.web.events import LiveTopics

TOPICS = LiveTopics((workflows,), lambda _change: ["executions"], ("executions",))
"""executions: executions, their tasks and metrics."""

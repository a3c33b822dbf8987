"""Assistants: models that a task asks, with every prompt, answer, cost and approval on record."""

from jobtable.assist.quoting import quoted

__all__ = ["quoted"]

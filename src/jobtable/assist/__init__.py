"""Assistants: models that a task asks, with every prompt, answer, cost and approval on record."""

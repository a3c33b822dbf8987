"""Workflows on the job engine: state machines in the Amazon States Language, and durable functions."""

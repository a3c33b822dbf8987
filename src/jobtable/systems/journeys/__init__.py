"""Transformation journeys: their stages, rules, job executions, logs and reports."""

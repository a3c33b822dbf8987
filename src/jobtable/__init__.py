"""Jobtable: a typed data layer and job engine for DynamoDB, with an embedded engine that needs nothing started."""

__version__ = "0.1.0"

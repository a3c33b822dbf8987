"""Durable functions: handlers of the AWS Durable Execution SDK on the job engine."""

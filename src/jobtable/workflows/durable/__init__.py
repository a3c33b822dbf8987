"""Durable functions: the operations of Lambda that AWS's durable execution SDK calls, on the store and the job engine."""

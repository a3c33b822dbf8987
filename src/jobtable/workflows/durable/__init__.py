"""Durable functions: the operations of Lambda behind AWS's durable execution SDK, on the store and the job engine."""

"""Hyperparameter sweeps on the job engine: a parent job, a child job for each trial, and the rules in between."""

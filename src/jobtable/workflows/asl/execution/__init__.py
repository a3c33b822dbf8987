"""Executions as jobs: what is stored of a run, what moves it, and what is done for it outside."""

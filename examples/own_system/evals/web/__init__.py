"""The page of the evaluations."""

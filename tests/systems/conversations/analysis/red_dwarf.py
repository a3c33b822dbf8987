"""red-dwarf, a port of Polis' mathematics: what the tests take from it."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its models of Polis' API declare fields in a way that pydantic warns about
    from reddwarf.implementations.base import PolisClusteringResult, run_pipeline
    from reddwarf.utils.consensus import select_consensus_statements
    from reddwarf.utils.stats import (
        calculate_comment_statistics_dataframes,
        priority_metric,
        select_representative_statements,
    )

__all__ = [
    "PolisClusteringResult",
    "calculate_comment_statistics_dataframes",
    "priority_metric",
    "run_pipeline",
    "select_consensus_statements",
    "select_representative_statements",
]

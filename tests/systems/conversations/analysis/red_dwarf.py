"""red-dwarf, a port of Polis' mathematics: what the tests take from it."""

from __future__ import annotations

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its models of Polis' API declare fields in a way that pydantic warns about
    from reddwarf.implementations import base
    from reddwarf.utils import consensus, stats

# Its annotations do not describe what it returns, such as keys with hyphens.
run_pipeline: Any = base.run_pipeline
select_consensus_statements: Any = consensus.select_consensus_statements
calculate_comment_statistics_dataframes: Any = stats.calculate_comment_statistics_dataframes
priority_metric: Any = stats.priority_metric
select_representative_statements: Any = stats.select_representative_statements

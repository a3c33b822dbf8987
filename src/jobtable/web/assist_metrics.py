"""What models were asked today, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from jobtable.assist.costs import AssistReads, CostSum
from jobtable.assist.prices import NANODOLLARS
from jobtable.clock import wall_time

_MOST_SERIES = 200
_MEASURES: dict[str, tuple[str, Callable[[CostSum], float]]] = {
    "calls": ("Calls of models that ended", lambda used: used.calls),
    "failed_calls": ("Calls of models that failed", lambda used: used.failed_calls),
    "unpriced_calls": ("Calls of models of no known price", lambda used: used.unpriced_calls),
    "tokens_in": ("Tokens sent to models", lambda used: used.tokens_in),
    "tokens_out": ("Tokens that models returned", lambda used: used.tokens_out),
    "cost_dollars": ("Cost of models in dollars", lambda used: used.cost_nanodollars / NANODOLLARS),
}


class AssistMetrics(Collector):
    """Counters by provider and model over all workers of the store. They start again each day at midnight UTC."""

    def __init__(self, assist: AssistReads) -> None:
        self._assist = assist

    def collect(self) -> Iterator[Metric]:
        today = wall_time(self._assist.store.clock).date()
        sums = self._assist.sum_costs(["provider", "model"], first=today, last=today)[:_MOST_SERIES]
        for name, (text, measure) in _MEASURES.items():
            family = CounterMetricFamily(
                f"jobtable_assist_{name}", f"{text}, since midnight UTC.", labels=["provider", "model"]
            )
            for each in sums:
                family.add_metric([str(each.provider), str(each.model)], measure(each))
            yield family

"""The page: every evaluation of a data set, the best first."""

from fastapi import Request, Response

from evals.entities import Evaluation
from jobtable.web import READ, TheStore, allow, page_router, render

router = page_router()


@router.get("/evals")
@allow(READ)
def show_evaluations(request: Request, store: TheStore, dataset: str = "capitals") -> Response:
    """One data set."""
    found = store.query(Evaluation.key(dataset=dataset)).page(size=100).items
    best_first = sorted(found, key=lambda each: each.score, reverse=True)
    return render(request, "evals/evals.html", title="Evaluations", dataset=dataset, evaluations=best_first)

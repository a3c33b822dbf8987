"""What workers run."""

from evals.entities import Evaluation
from jobtable.jobs import JobContext, task

EXPECTED = {"capitals": {"France": "Paris", "Peru": "Lima", "Kenya": "Nairobi"}}


@task
def evaluate(job: JobContext, dataset: str, prompt: str) -> float:
    """Score a prompt. A model would answer here; this one knows every answer if the prompt asks for a city."""
    cases = EXPECTED[dataset]
    answers = dict(cases) if "city" in prompt else dict.fromkeys(cases, "?")
    score = sum(answers[country] == expected for country, expected in cases.items()) / len(cases)
    job.metric("score", score)
    job.jobs.store.put(Evaluation(dataset=dataset, prompt=prompt, score=score, evaluated_at=job.jobs.clock.now()))
    return score

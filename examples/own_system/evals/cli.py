"""The command `jobtable evals`."""

from typing import Annotated

import typer

from evals.tasks import evaluate
from jobtable.cli import StoreUrl, new_group, open_services, print_text
from jobtable.jobs import NewJob

app = new_group()


@app.command()
def run(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The prompt to score.")],
    dataset: Annotated[str, typer.Option(metavar="NAME", help="The data set.")] = "capitals",
    store: StoreUrl = None,
) -> None:
    """Submit the evaluation of a prompt, and print the id of its job.

    \b
    Example:
        jobtable evals run 'Name the city'
    """
    with open_services(store, creates=True) as services:
        params = {"dataset": dataset, "prompt": prompt}
        new = NewJob(name=f"evaluate {prompt}", task=evaluate, params=params, queue="evals")
        print_text(services.jobs.submit(new).job_id)


@app.callback()
def main() -> None:
    """Evaluations: score prompts, and compare them."""

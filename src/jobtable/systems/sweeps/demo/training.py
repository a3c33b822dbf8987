"""The sweep of the demonstration: a classifier of handwritten digits, trained in epochs."""

from __future__ import annotations

import pickle

from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task


@task
def train(
    job: JobContext, *, learning_rate: float, hidden: int, alpha: float, activation: str, epochs: int = 27
) -> dict[str, float]:
    """Train by epochs, report the quality of the model, and save it to resume from."""
    inputs, labels = load_digits(return_X_y=True)
    train_inputs, test_inputs, train_labels, test_labels = train_test_split(inputs / 16, labels, random_state=0)
    saved = job.resume()
    if saved is None:
        first = 1
        model = MLPClassifier(
            (hidden,), activation=activation, alpha=alpha, learning_rate_init=learning_rate, random_state=0
        )
    else:
        first = saved.record.epoch + 1
        model = pickle.loads(saved.read())  # noqa: S301 - this function saved it
        job.info(f"continuing with epoch {first}")
    loss = accuracy = 0.0
    for epoch in range(first, epochs + 1):
        model.partial_fit(train_inputs, train_labels, classes=range(10))
        loss = float(log_loss(test_labels, model.predict_proba(test_inputs)))
        accuracy = float(model.score(test_inputs, test_labels))
        job.metric("accuracy", accuracy, epoch=epoch)
        job.metric("val_loss", loss, epoch=epoch)
        if epoch % 3 == 0:
            job.info(f"epoch {epoch:2}: {accuracy:.1%} recognised, loss {loss:.4f}; saved the model")
            job.checkpoint(pickle.dumps(model), epoch=epoch, metrics={"val_loss": loss}, keep_last=1)
        job.progress(100 * epoch / epochs, f"epoch {epoch} of {epochs}: loss {loss:.4f}")
    job.info(f"{accuracy:.1%} of the digits are recognised")
    return {"val_loss": loss, "accuracy": accuracy}

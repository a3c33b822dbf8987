"""Trains gradient boosting on a small medical data set, with checkpoints. `gradient_boosting.yaml` sweeps over it."""

from __future__ import annotations

import pickle

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from jobtable.jobs import JobContext, task

TREES_AN_EPOCH = 8


@task
def train(
    job: JobContext,
    *,
    learning_rate: float,
    max_depth: int,
    min_samples_leaf: int,
    subsample: float,
    features: str,
    feature_share: float = 1.0,
    epochs: int = 27,
) -> dict[str, float]:
    """Fit some trees in each epoch, report how good they are, and keep them."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    train_inputs, test_inputs, train_labels, test_labels = train_test_split(inputs, labels, random_state=0)
    saved = job.resume()
    if saved is None:
        first = 1
        model = GradientBoostingClassifier(
            learning_rate=learning_rate,
            max_depth=max_depth,
            min_samples_leaf=min_samples_leaf,
            subsample=subsample,
            max_features=feature_share if features == "share" else None,
            warm_start=True,
            random_state=0,
        )
    else:
        first = saved.record.epoch + 1
        model = pickle.loads(saved.read())  # noqa: S301 - what this function itself has saved
        job.log(f"continuing with epoch {first}")
    for epoch in range(first, epochs + 1):
        model.set_params(n_estimators=epoch * TREES_AN_EPOCH)
        model.fit(train_inputs, train_labels)
        # First the report, then the checkpoint: an epoch that was cut off in between is done again, and told again.
        job.metric("val_loss", log_loss(test_labels, model.predict_proba(test_inputs)), epoch=epoch)
        job.checkpoint(pickle.dumps(model), epoch=epoch, keep_last=2)
        job.progress(100 * epoch / epochs)
    return {
        "val_loss": log_loss(test_labels, model.predict_proba(test_inputs)),
        "val_accuracy": accuracy_score(test_labels, model.predict(test_inputs)),
    }

"""`jobtable workflows`: state machines at work."""

from __future__ import annotations

from jobtable.cli import workflow_deployment
from jobtable.cli.framework import group_of_one

app = group_of_one()
app.take_over(workflow_deployment.app)

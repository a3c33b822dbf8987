"""The errors of the verbs of machines as AWS's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jobtable.errors import NotFoundError
from jobtable.workflows.asl.aws_api.refusals import (
    invalid_definition,
    machine_deleting,
    machine_missing,
    refused,
)
from jobtable.workflows.asl.catalogue.machine_verbs import MachineDeletingError, QuotaExceededError
from jobtable.workflows.asl.machine import InvalidDefinitionError


@contextmanager
def machine_faults(arn: str) -> Iterator[None]:
    """Raise OperationRefused for an error of a verb about the machine with this ARN."""
    try:
        yield
    except NotFoundError as error:
        raise machine_missing(arn) from error
    except MachineDeletingError as error:
        raise machine_deleting(arn) from error
    except InvalidDefinitionError as error:
        raise invalid_definition(error) from error
    except QuotaExceededError as error:
        raise refused("ServiceQuotaExceededException", str(error)) from error

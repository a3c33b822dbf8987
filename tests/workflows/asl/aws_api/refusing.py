"""What a client of AWS learns of a refusal."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

ROLE = "arn:aws:iam::000000000000:role/any"
ARN = "arn:aws:states:eu-central-1:000000000000"


def refused(call: Any, **request: Any) -> tuple[str, str]:
    """Return the code and the message with which a call is refused."""
    with pytest.raises(ClientError) as error:
        call(**request)
    found = error.value.response["Error"]
    return found["Code"], found["Message"]

"""The settings of a machine that are kept for AWS: logging, tracing and encryption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobtable.workflows.asl.aws_api.aws_calls import Request
from jobtable.workflows.asl.aws_api.refusals import refused

_NO_ENCRYPTION = {"type": "AWS_OWNED_KEY"}
_DEFAULTS: dict[str, Any] = {
    "loggingConfiguration": {"level": "OFF", "includeExecutionData": False},
    "tracingConfiguration": {"enabled": False},
    "encryptionConfiguration": _NO_ENCRYPTION,
}


def settings_of(request: Request) -> dict[str, Any]:
    """Return the settings of a request, complete as answers have them, or raise OperationRefused."""
    found = {name: {**default, **request[name]} for name, default in _DEFAULTS.items() if request.get(name) is not None}
    _check_logging(found.get("loggingConfiguration", {}))
    check_encryption(found.get("encryptionConfiguration", {}))
    return found


def shown_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as answers have them."""
    return {**_DEFAULTS, **settings}


def check_encryption(encryption: Mapping[str, Any]) -> None:
    """Raise OperationRefused for an encryption with a key of one's own but without its name."""
    if encryption.get("type") == "CUSTOMER_MANAGED_KMS_KEY" and encryption.get("kmsKeyId") is None:
        raise refused(
            "InvalidEncryptionConfiguration",
            "Invalid Encryption Configuration: 'kmsKeyId is required for the type CUSTOMER_MANAGED_KMS_KEY'",
        )


def _check_logging(logging: Mapping[str, Any]) -> None:
    destinations = logging.get("destinations") or []
    if len(destinations) > 1 or (not destinations and logging.get("level", "OFF") != "OFF"):
        raise refused(
            "InvalidLoggingConfiguration",
            "Invalid Logging Configuration: Must specify exactly one Log Destination.",
        )

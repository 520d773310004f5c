"""This module reads secrets that are kept elsewhere; what it needs for that may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from omnigraph.errors import InvalidInput

_ARN_PARTS = 7


def read_aws_secret(name: str, environment: Mapping[str, str]) -> str:
    """Return the text of a secret of AWS, by its name or ARN, with the credentials of the machine.

    Raises:
        InvalidInput: boto3 is not there, or AWS does not give the secret; the text shows no key.
    """
    try:
        boto3, exceptions = import_module("boto3"), import_module("botocore.exceptions")
    except ImportError as error:
        message = f"cannot read the AWS secret '{name}': this needs boto3 (pip install boto3)"
        raise _refused(message) from error
    try:
        client = boto3.client("secretsmanager", region_name=_region(name, environment))
        found: dict[str, Any] = client.get_secret_value(SecretId=name)
    except exceptions.ClientError as error:
        reason = error.response["Error"]["Code"]
        raise _refused(f"AWS does not give the secret '{name}': {reason}") from error
    except exceptions.BotoCoreError as error:
        reason = type(error).__name__
        raise _refused(f"cannot ask AWS for the secret '{name}': {reason}") from error
    text = found.get("SecretString")
    if text is None:
        raise _refused(f"the AWS secret '{name}' holds bytes; it must hold a JSON object")
    return str(text)


def _region(name: str, environment: Mapping[str, str]) -> str | None:
    parts = name.split(":")
    if parts[0] == "arn" and len(parts) >= _ARN_PARTS:
        return parts[3]
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, code="tokens_invalid")

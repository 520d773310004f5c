"""Exit codes of pipeline runs: by cause, and only where a command documents them."""

import pytest

import omnigraph as og
from omnigraph.cli.exit_codes import (
    ExitCode,
    cause_of,
    exit_code_of,
    exit_codes_by_cause,
)
from omnigraph.errors import Category, Contention, InvalidInput, OmniError, StorageUnavailable
from omnigraph.lang import SchemaError
from omnigraph.pipeline.errors import SparkUnavailable, TooManyRejects


def schema_error():
    try:
        og.check("node a {}")
    except SchemaError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (schema_error(), ExitCode.PIPELINE_INVALID),
        (InvalidInput("x", code="selection_invalid"), ExitCode.PIPELINE_INVALID),
        (InvalidInput("x", code="pipeline_target_unknown"), ExitCode.PIPELINE_INVALID),
        (TooManyRejects({}, 2, 3, None), ExitCode.DATA_INVALID),
        (InvalidInput("x", code="input_unreadable"), ExitCode.DATA_INVALID),
        (Contention("x"), ExitCode.TRY_AGAIN),
        (StorageUnavailable("x"), ExitCode.TRY_AGAIN),
        (SparkUnavailable("x", code="spark_not_installed"), ExitCode.TRY_AGAIN),
        (OmniError("x", code="denied", category=Category.DENIED), ExitCode.DENIED),
        (OmniError("x", code="x", category=Category.OUTCOME_UNKNOWN), ExitCode.OUTCOME_UNKNOWN),
        (InvalidInput("x", code="mode_invalid"), ExitCode.FAILED),
    ],
)
def test_errors_have_the_exit_code_of_their_cause(error, code):
    assert cause_of(error) is code
    assert exit_code_of(error) == 1
    with pytest.raises(OmniError), exit_codes_by_cause():
        raise error
    assert exit_code_of(error) == code

"""What a caller is reported of every kind of error."""

import msgspec
import pytest

from omnigraph.changes.errors import ChangeFeedGap, ChangeSchemaBoundary, CursorRejected
from omnigraph.errors import (
    AlreadyExists,
    Category,
    Contention,
    ExpectedVersionMismatch,
    FormatUnsupported,
    GraphCorrupt,
    InvalidInput,
    NotFound,
    OmniError,
    OutcomeUnknown,
    PreconditionFailed,
    SchemaMoved,
    StorageUnavailable,
    VersionReclaimed,
)
from omnigraph.policy import PolicyDenied
from omnigraph.service.errors import describe_error
from tests.support.wire_contract import validator

PATH = "/secret/place"


@pytest.mark.parametrize(
    ("error", "status", "code", "facts"),
    [
        (InvalidInput("m"), 400, "bad_request", {}),
        (NotFound("m"), 404, "not_found", {}),
        (VersionReclaimed("m"), 404, "not_found", {}),
        (AlreadyExists("m"), 409, "conflict", {}),
        (PolicyDenied("m"), 403, "forbidden", {}),
        (CursorRejected("m"), 400, "bad_request", {}),
        (
            ExpectedVersionMismatch("node:Ship", 1, 2),
            409,
            "conflict",
            {
                "published_dataset_version_conflict": {
                    "entity_kind": "node",
                    "type_name": "Ship",
                    "expected_published_dataset_version": 1,
                    "actual_published_dataset_version": 2,
                },
                "read_set_conflict": {"member": "node:Ship", "expected": "1", "actual": "2"},
            },
        ),
        (
            SchemaMoved("a", "b"),
            409,
            "conflict",
            {"read_set_conflict": {"member": "schema", "expected": "a", "actual": "b"}},
        ),
        (
            Contention("m"),
            409,
            "conflict",
            {"read_set_conflict": {"member": "graph_head", "expected": None, "actual": None}},
        ),
        (
            PreconditionFailed("a", "b"),
            412,
            None,
            {"precondition_failure": {"expected": "a", "actual": "b"}},
        ),
        (PreconditionFailed("a", None), 412, None, {"precondition_failure": {"expected": "a"}}),
        (
            OutcomeUnknown("c1"),
            503,
            None,
            {"recovery_required": {"operation_id": "c1"}},
        ),
        (
            ChangeFeedGap("c1", "cur"),
            410,
            None,
            {"change_feed_gap": {"cursor": "cur", "first_unreadable_commit_id": "c1"}},
        ),
        (
            ChangeSchemaBoundary("c1", "T"),
            409,
            "conflict",
            {
                "change_diff_refusal": {
                    "reason": "schema_boundary",
                    "graph_commit_id": "c1",
                    "type_name": "T",
                }
            },
        ),
        (
            StorageUnavailable("m", code="external_blob_source", uri="s3://x", reason="gone"),
            424,
            None,
            {"external_blob_source": {"uri": "s3://x", "reason": "gone"}},
        ),
        (
            OmniError("m", code="embedding_unavailable", category=Category.UNAVAILABLE),
            503,
            None,
            {},
        ),
        (
            OmniError("m", code="embedding_refused", category=Category.DENIED),
            503,
            None,
            {},
        ),
    ],
)
def test_an_error_is_reported_with_its_facts(error, status, code, facts):
    failure = describe_error(error)
    body = msgspec.to_builtins(failure.body)
    assert failure.status == status
    assert body.get("code") == code
    assert body["error"] == error.message
    assert body["problem"]["code"] == error.code
    reported = {k: v for k, v in body.items() if k not in ("error", "code", "problem")}
    assert reported == facts
    validator("ErrorOutput").validate(body)
    validator("ChangeErrorOutput").validate(msgspec.to_builtins(failure.change_body))


@pytest.mark.parametrize(
    "error",
    [
        StorageUnavailable(PATH, cause=PATH),
        NotFound(PATH, code="storage_not_found", cause=PATH),
        GraphCorrupt(PATH, file=PATH),
        FormatUnsupported(PATH, found=PATH),
        ValueError(PATH),
        AssertionError(PATH),
    ],
)
def test_what_is_our_fault_is_reported_by_a_fixed_text(error):
    failure = describe_error(error)
    assert failure.status == 500
    assert failure.body.code == "internal"
    assert PATH not in msgspec.json.encode(failure.body).decode()


def test_what_is_reported_can_be_written_whatever_is_in_it():
    error = InvalidInput("m", code="x", kind=Category.LIMIT, values={1: {2, 3}}, at=object)
    assert msgspec.json.encode(describe_error(error).body)

"""This module lists the routes that go beyond the common contract."""

from __future__ import annotations

from omnigraph.server.endpoint import Endpoint, Query
from omnigraph.server.handlers import own
from omnigraph.service import wire

_G = "/graphs/{graph_id}"
_JSON = (400, 404, 408, 413, 415, 422)
_WRITE = (*_JSON, 409, 424, 429, 503)
_STATE = (Query("branch", str | None), Query("snapshot", str | None))

OWN_ENDPOINTS = (
    Endpoint(
        method="GET",
        path=f"{_G}/healthz",
        operation_id="graphHealth",
        tag="health",
        handle=own.health,
        summary="Say that the server is ready, and has the graph",
        answer=wire.HealthOutput,
        errors=(400, 404),
    ),
    Endpoint(
        method="POST",
        path=f"{_G}/explain",
        operation_id="explain",
        tag="queries",
        handle=own.explain,
        summary="Show how a query is answered",
        body=wire.ExplainRequest,
        answer=wire.ExplainOutput,
        errors=(*_JSON, 429, 503),
    ),
    Endpoint(
        method="POST",
        path=f"{_G}/diff",
        operation_id="diff",
        tag="changes",
        handle=own.diff,
        summary="Tell what became of each entity between two states, a line of JSON each",
        body=wire.DiffRequest,
        answer="application/x-ndjson",
        errors=(*_JSON, 409, 503),
    ),
    Endpoint(
        method="GET",
        path=f"{_G}/entity",
        operation_id="getEntity",
        tag="queries",
        handle=own.entity,
        summary="Show one entity",
        answer=wire.EntityOutput,
        errors=(400, 404),
        parameters=(Query("type", required=True), Query("id", required=True), *_STATE),
    ),
    Endpoint(
        method="GET",
        path=f"{_G}/branches/{{branch}}",
        operation_id="getBranch",
        tag="branches",
        handle=own.branch,
        summary="Show a branch",
        answer=wire.BranchOutput,
        errors=(400, 404),
    ),
    Endpoint(
        method="GET",
        path=f"{_G}/merge-base",
        operation_id="getMergeBase",
        tag="branches",
        handle=own.merge_base,
        summary="Find the best common ancestors of two states",
        answer=wire.MergeBaseOutput,
        errors=(400, 404),
        parameters=(Query("one", required=True), Query("other", required=True)),
    ),
    Endpoint(
        method="GET",
        path=f"{_G}/tags",
        operation_id="listTags",
        tag="tags",
        handle=own.tags,
        summary="List the tags",
        answer=wire.TagListOutput,
        errors=(400, 404),
    ),
    Endpoint(
        method="POST",
        path=f"{_G}/tags",
        operation_id="createTag",
        tag="tags",
        handle=own.create_tag,
        summary="Give a state a name that never moves",
        body=wire.TagCreateRequest,
        answer=wire.TagOutput,
        errors=_WRITE,
    ),
    Endpoint(
        method="DELETE",
        path=f"{_G}/tags/{{tag}}",
        operation_id="deleteTag",
        tag="tags",
        handle=own.delete_tag,
        summary="Forget a tag",
        answer=wire.TagOutput,
        errors=(400, 404, 409, 429, 503),
    ),
    Endpoint(
        method="POST",
        path=f"{_G}/revert",
        operation_id="revert",
        tag="mutations",
        handle=own.revert,
        summary="Undo what a commit did, as a commit",
        body=wire.PickRequest,
        answer=wire.BranchMergeOutput,
        errors=_WRITE,
    ),
    Endpoint(
        method="POST",
        path=f"{_G}/cherry-pick",
        operation_id="cherryPick",
        tag="mutations",
        handle=own.cherry_pick,
        summary="Do on a branch what a commit did elsewhere, as a commit",
        body=wire.PickRequest,
        answer=wire.BranchMergeOutput,
        errors=_WRITE,
    ),
    Endpoint(
        method="POST",
        path=f"{_G}/schema/plan",
        operation_id="planSchema",
        tag="schema",
        handle=own.plan_schema,
        summary="List the steps from the accepted schema to another",
        body=wire.SchemaPlanRequest,
        answer=wire.SchemaPlanOutput,
        errors=(*_JSON, 503),
    ),
)
"""Each of them does what the embedded graph does under the same name."""

"""The registry of error codes: one row per code, with its meaning, category and HTTP status.

`OmniError.code` is one of these, or a diagnostic code of `lang/codes.py`. A code never changes its
meaning and is never reused; `docs/reference/errors.md` is generated from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from omnigraph.errors import Category

STATUS_BY_CATEGORY: Mapping[Category, int] = MappingProxyType(
    {
        Category.INVALID: 400,
        Category.NOT_FOUND: 404,
        Category.DENIED: 403,
        Category.CONFLICT: 409,
        Category.CONTENTION: 409,
        Category.LIMIT: 413,
        Category.UNAVAILABLE: 500,
        Category.OUTCOME_UNKNOWN: 503,
        Category.INTERNAL: 500,
    }
)


@dataclass(frozen=True, slots=True)
class ErrorCodeRow:
    """One error code.

    The first category is the usual one, and `fixed_status` replaces its HTTP status. An error of
    another of the categories has the status of that category.
    """

    code: str
    about: str
    group: str
    categories: tuple[Category, ...]
    fixed_status: int | None = None

    def status(self, category: Category) -> int:
        """Return the HTTP status of an error with this code."""
        if self.fixed_status is None or category in self.categories[1:]:
            return STATUS_BY_CATEGORY[category]
        return self.fixed_status


def http_status(code: str, category: Category) -> int:
    """Return the HTTP status of an error; a code without a row has that of its category."""
    row = ERROR_CODES.get(code)
    return STATUS_BY_CATEGORY[category] if row is None else row.status(category)


def _parse_table(table: str) -> dict[str, ErrorCodeRow]:
    """Read `code | categories [status] | meaning` lines; `# ` starts a group of the docs page."""
    rows: dict[str, ErrorCodeRow] = {}
    group = ""
    for line in table.splitlines():
        if line.startswith("# "):
            group = line.removeprefix("# ")
        elif line:
            code, facts, about = line.split(" | ", 2)
            words = facts.split()
            status = int(words.pop()) if words[-1].isdigit() else None
            categories = tuple(Category(word) for word in words)
            if code in rows:
                raise ValueError(f"error code {code} has two rows")
            rows[code] = ErrorCodeRow(code, about, group, categories, status)
    return rows


_TABLE = """\
# General
invalid | invalid | A name, address or option is invalid.
not_found | not_found | The named object, or the route, does not exist.
already_exists | conflict | The object to create exists already.
internal | internal | The server failed; its log has the details under the request ID.
timeout_invalid | invalid | A timeout is not a number of seconds from 0 on.
text_invalid | invalid | A text has an unpaired surrogate and cannot be encoded as UTF-8.
position_invalid | invalid | A position is outside of its text.
result_unbound | invalid | A result without a graph, such as an unpickled one, cannot be drawn.
not_a_read_query | invalid | The text is a mutation where a read query is required.
not_a_node_type | invalid | A node type is needed, and the name is that of an edge type.
limit_invalid | invalid | A limit or page size is out of range.
limit_negative | invalid | `limit` or `offset` of a query is negative.
resource_limit | limit | A request exceeds a documented limit.
option_invalid | invalid | An option has a value that is not allowed.
option_missing | invalid | A required option of the Spark data source is missing.
duration_invalid | invalid | A duration on the command line cannot be parsed.
mode_invalid | invalid | The mode to open a graph in is neither `rw` nor `ro`.
durability_invalid | invalid | The durability is neither `full` nor `relaxed`.
file_not_found | not_found | A local file does not exist.
file_unreadable | invalid | A local file cannot be read.
file_unwritable | invalid unavailable | A local file cannot be written.
file_in_use | invalid | Another process is writing the same local file.
confirmation_required | invalid | The command needs a confirmation; pass `--yes`.
read_only | invalid | The graph is open in read-only mode.

# Graphs, branches and commits
graph_not_found | not_found | There is no graph at the address, or under the name.
already_initialized | conflict | A graph exists at the address already.
uri_invalid | invalid | The address of a graph, file or proxy is not a supported URI.
graph_corrupt | internal | Stored data is damaged: run `omnigraph verify`, `repair --to-last-good`.
format_unsupported | unavailable | Another version of the storage format wrote the graph.
version_reclaimed | not_found | Cleanup removed the requested version.
branch_not_found | not_found | The branch does not exist.
branch_exists | conflict | A branch of that name exists already.
branch_name_invalid | invalid | The name is not valid for a branch, or the branch cannot be deleted.
branch_has_descendants | invalid | Other branches descend from it; delete them, or force it.
tag_not_found | not_found | The tag does not exist.
tag_exists | conflict | A tag of that name exists already.
tag_name_invalid | invalid | The name cannot be used for a tag.
commit_not_found | not_found | The commit does not exist.
commit_not_on_branch | invalid | The commit is not part of the history of the branch.
target_not_found | not_found | The text does not match any branch, tag, commit ID or timestamp.
target_ambiguous | invalid | Both `branch` and `snapshot` are given.
target_invalid | invalid | A remote state is not a branch, tag, commit ID, timestamp or snapshot.
precondition_failed | conflict 412 | The branch is not at the expected commit.
expected_version_mismatch | conflict | A dataset changed since it was read.
contention | contention | Another writer published first; nothing was changed, retry.
commit_fenced | contention | Recovery gave the staged commit up; stage it again.
commit_timeout | contention | The change waited for other writers until its timeout; run it again.
stage_expired | contention | The operation took longer than the lease of its intent; run it again.
outcome_unknown | outcome_unknown | It is unknown whether the commit was published; look its ID up.
cleanup_running | contention | A cleanup that may remove shared files is running; retry after it.
cleanup_expired | contention | The lease of a cleanup expired; run it again.
cleanup_policy_missing | invalid | Cleanup needs a number of commits or an age to retain.
cleanup_policy_negative | invalid | A number of commits or an age to retain is negative.
retention_invalid | invalid | A retention has no limit or an invalid one.
maintenance_invalid | invalid | The interval or the CPU share of maintenance is out of range.

# Storage
storage_unavailable | unavailable | Storage does not answer or failed.
storage_denied | unavailable | Storage denied access, or there are no credentials.
storage_full | unavailable | There is no space left.
storage_read_only | unavailable | The file system is read-only.
sync_failed | unavailable | The disk failed to store a file of a commit; check the disk.
storage_no_bucket | unavailable | The bucket does not exist.
storage_not_found | not_found 500 | A stored object does not exist.
storage_not_a_folder | unavailable | A file exists where a folder is expected.
storage_option_invalid | invalid 500 | An option of the object store is invalid.
storage_profile_invalid | invalid 500 | The AWS profile does not exist or cannot be used.
storage_unsafe | unavailable | The object store lacks the conditional writes that writers need.
storage_clock_changed | unavailable | The clock of the storage went back; run the cleanup again.
spill_failed | unavailable | Rows cannot be written to the temporary folder.

# Schemas
schema_corrupt | internal | The stored schema cannot be read.
schema_identity | internal | Two schemas break the rules of stable identities.
identity_exhausted | internal | There are no identities left to allocate.
schema_change_unsupported | invalid | The schema change is refused; refusals have diagnostic codes.
key_change_blocked | conflict | The edges of the type changed on other branches, `branches`.
schema_moved | conflict | The accepted schema of the branch changed since it was read.
schema_declared | conflict | A cluster declares the schema; change it there.
schema_file_unreadable | invalid | The schema file cannot be read.
schema_only | invalid | A merge of schemas alone found data changes.
hard_drop_unsupported | invalid | A type with blobs cannot be dropped together with its data.
unknown_type | not_found invalid | The schema has no type of that name.
unknown_property | invalid | The type has no property of that name.
unknown_column | not_found | The type has no column of that name.
unknown_kind | invalid | The kind is neither `node` nor `edge`.
unknown_op | invalid | The operation is none of those a change can have.
ambiguous_type | invalid | The name is a node type and an edge type; prefix `node:` or `edge:`.
type_ambiguous | invalid | An input is a node type and an edge type; prefix `node:` or `edge:`.
type_mismatch | invalid | Values of a merge do not fit the type of the property on the target.

# Queries
query_not_a_read | invalid | The query changes data; run it as a mutation.
query_not_a_mutation | invalid | The query only reads; run it as a query.
retriever_invalid | invalid | A retriever for LangChain does not match its query or its graph.
query_cancelled | unavailable 503 | The query was cancelled.
running_query_not_found | not_found | No query with that ID runs, or the actor may not see it.
worker_unreachable | unavailable | A process of the server did not report its running queries.
query_timeout | limit | The query took longer than its time limit.
query_memory | limit | The query needs more memory than its limit.
query_disk | limit | The temporary files of queries would take more disk space than they may.
query_memory_busy | limit 429 | Concurrent queries use the memory; retry later.
query_count_overflow | limit | A count is greater than the largest I64.
query_number_overflow | invalid | A computed number is outside the range of its type.
query_limit_invalid | invalid | A time or memory limit of queries is not a number from 0 up.
engine_unknown | invalid | The engine is neither `local` nor `spark`.
engine_unsupported | invalid | The engine cannot run this query; the message names the functions.
params_invalid | invalid | Parameters on the command line are not a JSON object.
entity_not_found | not_found | The node or edge does not exist.
not_a_blob | invalid | The property is not a Blob.
blob_not_found | not_found | The entity has no blob in the property.
blob_external | invalid | The blob is stored at an external URI.
blob_changed | invalid 412 | The blob is not the expected one.
blob_range_not_satisfiable | invalid 416 | The range is not within the blob.

# Writes
validation_failed | invalid | The change breaks rules of the schema, listed in `details.violations`.
key_conflict | conflict | An entity to insert exists already.
load_mode_invalid | invalid | The load mode is unknown or does not fit the input.
input_unknown | invalid | The input of a load is not a table, rows or a path of a known format.
input_unreadable | invalid unavailable | The input of a load cannot be read.
inference_undecided | invalid | No type can be inferred from the inputs; the message says why.
encoding_unknown | invalid | The text encoding is unknown.
external_blob_source | unavailable 424 | An external blob cannot be read.
external_blobs_invalid | invalid | A base URI of external blobs is invalid.
too_many_rejects | invalid | More rows were rejected than `max_rejects`; nothing was published.
max_rejects_invalid | invalid | `max_rejects` is neither a number of rows nor a share below 1.
proposal_empty | invalid | Nothing to propose: the mutation or the branch changes nothing.

# Merges
merge_conflict | conflict | Both sides changed the same data; `merge_conflicts` lists the conflicts.
merge_into_itself | invalid | Source and target of a merge are the same branch.
no_merge_base | invalid | The branches have no common history.
decision_invalid | invalid | A decision about a conflict has values that do not fit.
decision_unused | invalid | A decision is about a conflict that does not exist.
decisions_invalid | invalid | The decisions of a merge cannot be read.

# Changes
change_feed_gap | not_found 410 | Cleanup removed changes after the cursor; take a new baseline.
change_cursor_rejected | invalid | The cursor is damaged or of another graph, branch or filter.
feed_position_ambiguous | invalid | More than one start position of a feed is given.
feed_start_invalid | invalid | The start position of a feed is invalid.
parentless_commit | conflict invalid | The first commit of a graph has nothing to compare with.
schema_boundary | conflict | The commit changed the schema, so changes cannot be compared across it.
baseline_invalid | invalid | The request body of a baseline is invalid.

# Proposals and protection
proposal_not_found | not_found | The proposal does not exist, or its branches may not be read.
proposal_not_open | conflict | The proposal is merged or closed; a closed one can be opened again.
proposal_not_closed | conflict | Only a closed proposal can be opened again.
proposal_exists | conflict | There is an open proposal for this source and target.
proposal_same_branch | invalid | The source and the target of a proposal are the same branch.
proposal_invalid | invalid | The text of a proposal, comment or review is invalid.
actor_invalid | invalid | The name of the actor is too long, blank or has control characters.
proposal_limit | limit | There are too many open proposals; merge or close some.
proposal_moved | conflict | The source has newer commits than the given one; review the new state.
proposal_source_gone | conflict | The source branch was deleted; create it again, or close.
comment_not_found | not_found | The proposal has no such comment.
cursor_invalid | invalid | The cursor of an event feed is not one that a page returned.
page_token_invalid | invalid | The page token is not one that a page returned.
review_required | conflict | The proposal does not satisfy the protection of its target yet.
check_unknown | conflict | The protection requires a check that is not loaded.
check_contention | contention | The branch changed while slow checks ran; merge again.
branch_protected | denied | The branch or tag is protected: merge a proposal instead.
protection_invalid | invalid | The rules of a protection are invalid; it lists all problems.

# Export and archives
export_folder_not_empty | invalid | The folder to export to is not empty.
export_format_invalid | invalid | The export format is unknown.
export_invalid | invalid | The request body of an export is invalid.
archive_exists | conflict | The archive file exists already.
archive_unreadable | invalid | The file is not a complete archive.

# Embeddings
nothing_to_embed | invalid | The type has no property with `@embed`.
embedding_unavailable | unavailable 503 | The embedding service cannot be reached or failed.
embedding_deadline | limit 503 | The embedding service did not answer before the deadline.
embedding_refused | denied invalid 503 | The embedding service refused the request.
embedding_answer_invalid | unavailable 503 | The service did not return vectors of equal length.
embedding_library_missing | unavailable 503 | A Python library of the provider is not installed.
embedding_model_missing | unavailable 503 | The local embedding model cannot be loaded.
embedding_model_unknown | conflict | The property holds vectors of an unknown model, or of several.
embedding_model_mismatch | conflict | The vectors are of another model than those of the property.
embedding_model_invalid | invalid | The name of the model that made the vectors is invalid.
embedding_text_empty | invalid | A blank text cannot be embedded.
embedding_config_invalid | invalid | The embedding configuration is invalid.
embedding_api_key_missing | invalid | The environment variable with the API key is not set.
embedding_api_key_inline | invalid | The configuration has an API key; refer to it as `${NAME}`.
embedding_api_key_required | invalid | The embedding profile needs an API key.
embed_input_invalid | invalid | A line of the file to embed is invalid.
embed_manifest_invalid | invalid | The manifest of an embedding run is invalid.
embed_selector_invalid | invalid | The selection of rows to embed is invalid.
embed_spec_invalid | invalid | The embedding specification is invalid.
embed_type_unknown | invalid | The embedding specification has no such type.

# Policies
forbidden | denied | The policy does not allow the action.
policy_invalid | invalid | The policy or its test file is invalid; the message lists every problem.
policy_too_long | invalid | The policy file is too long.
policy_file_unreadable | invalid | The policy file cannot be read.
policy_action_unknown | invalid | The policy action does not exist.
policy_library_missing | unavailable | Cedar is not installed: `pip install 'omnigraph[policy]'`.
policy_evaluation_failed | internal | The policy could not be evaluated; nothing is allowed.

# HTTP requests
unauthorized | denied 401 | The bearer token is missing or invalid, or the session is over.
cross_site | denied | A page of another site sent a request that may change something.
host_unknown | denied | The `Host` of the request is not the address of the local server.
method_not_allowed | invalid 405 | The path does not support the method.
content_type_unsupported | invalid 415 | The content type of the body is not supported.
body_malformed | invalid | The body is not valid UTF-8 or JSON.
body_invalid | invalid 422 | The body does not have the expected members.
body_too_large | limit | The body is larger than the limit.
body_slow | invalid 408 | The body did not arrive in time.
condition_invalid | invalid | A conditional header is invalid.
parameter_invalid | invalid | A query parameter of the URL is invalid.
parameter_missing | invalid | A required query parameter of the URL is missing.
parameter_repeated | invalid | A query parameter of the URL is given more than once.
parameter_unknown | invalid | The URL has an unknown query parameter.
too_many_requests | limit 429 | The actor has too many requests under way.
stream_busy | limit | Too many exports are under way.
deadline | unavailable 503 | The server did not answer in time; a change may still happen.
not_ready | unavailable 503 | The server is not ready.
stored_query_not_found | not_found | The stored query does not exist.
stored_query_unexpected | invalid | The stored query is a mutation, not a read, or the reverse.

# Serving
stored_queries_missing | invalid | The folder of stored queries does not exist.
stored_queries_unreadable | invalid | The stored queries cannot be read.
stored_queries_invalid | invalid | Stored queries do not compile; the message lists every problem.
no_graphs | invalid | The server has no graphs to serve.
graphs_not_served | invalid | Graphs cannot be opened, so the server does not start.
graph_id_invalid | invalid | The graph ID cannot be used.
graph_id_duplicate | invalid | Two graphs have the same ID.
server_unprotected | invalid | The server would listen on a network address without tokens.
server_missing | invalid | Libraries are not installed: `omnigraph[server]` or `[mcp]`.
telemetry_missing | invalid | Libraries are not installed: `pip install 'omnigraph[telemetry]'`.
library_missing | invalid | A library of data frames is not installed, such as pandas.
notebook_missing | invalid | Libraries are not installed: `pip install 'omnigraph[notebook]'`.
tokens_missing | invalid | A policy is set without tokens, so callers cannot be identified.
session_key_invalid | invalid | The key that signs sessions is too short.
tokens_invalid | invalid | The token file or secret cannot be read.
tls_incomplete | invalid | TLS needs a certificate and its key.
tls_invalid | invalid | The TLS certificate and its key cannot be used.
trusted_proxy_invalid | invalid | A trusted proxy is not an IP address or network.
bind_failed | invalid | The server cannot listen on the address.
workers_failed | unavailable | Worker processes of the server keep failing.
reload_changes_state | invalid | A reload would change how the server protects graphs; restart it.

# Clients and configuration
server_invalid | invalid | The address or answer of the server is invalid.
server_unknown | unavailable | The server does not support the request.
server_unreachable | unavailable | The server cannot be reached.
remote_unsupported | invalid | The operation needs the graph itself; a remote graph lacks it.
event_loop_blocked | invalid | A call would block the event loop; run it with `await graph.run(f)`.
graph_ambiguous | invalid not_found | The server or configuration has several graphs; name one.
config_invalid | invalid | The configuration file is invalid.
credentials_exposed | invalid | Other users can read the credentials file.
token_blank | invalid | The token is blank or has several lines.

# MCP
actor_missing | invalid | A policy is set, so the actor must be named with `--as`.
arguments_invalid | invalid | The arguments of a tool are invalid.
answer_too_large | limit | The answer of a tool is too large for an agent.
origin_denied | denied | The origin of the request is not allowed.

# Spark and pipelines
spark_not_installed | unavailable | Spark is not installed: `pip install 'omnigraph[spark]'`.
spark_unavailable | unavailable | Spark cannot be started.
spark_session_exists | invalid | A Spark session with other settings is running.
spark_failed | unavailable | A Spark job failed.
spark_disk_full | unavailable | The scratch space of Spark is full.
spark_memory | unavailable | Spark ran out of memory.
spark_worker_lost | unavailable | A Spark worker died.
spark_session_lost | unavailable | The Spark session ended.
cluster_unreachable | unavailable | The Spark cluster does not answer.
java_missing | unavailable | There is no suitable Java for Spark.
java_failed | unavailable | The Java process of Spark failed.
warmup_failed | unavailable | The Java archive that speeds up session starts was not written.
too_many_keys | invalid | `df.write` has too many keys for one process; use `pipeline.write`.
scratch_removed | contention | Rows of a job were removed before their commit; run the job again.
columns_invalid | invalid | The columns to read or write are invalid.
filter_invalid | invalid | A filter of the Spark data source is invalid.
stream_columns_missing | invalid | A stream of changes lacks required columns.
stream_not_started | unavailable | Spark did not start a process for the stream.
analysis_unknown | invalid | The graph analysis does not exist.
analysis_option_invalid | invalid | An option of a graph analysis is invalid.
analysis_target_invalid | invalid | The types or direction of a graph analysis are invalid.
analysis_without_edges | invalid | A graph analysis needs at least one edge type.
pipeline_file_unreadable | not_found | The pipeline file cannot be read.
checks_failed | invalid | Checks of the staged state found what must not become visible.
pipeline_changed | invalid | The pipeline file or its variables changed since the run began.
missing_unknown | invalid | Rows have no readable key, so `delete_missing` finds nothing.
watermark_mismatch | invalid | An incremental source was read for other types or cursors before.
pipeline_target_unknown | invalid | The pipeline file has no target of that name.
pipeline_not_applied | not_found | The cluster has no pipeline of that name.
report_not_found | not_found | The pipeline run has no report yet.
rejects_not_found | not_found | The rejected rows of the pipeline run are not stored in the graph.
run_not_found | not_found | The pipeline run does not exist.
selection_invalid | invalid | The selection names what the pipeline does not have, or leaves none.
run_not_resumable | invalid | The pipeline run cannot be resumed from here; name its file.
run_finished | invalid | The pipeline run was published already.
run_aborted | conflict | The pipeline run was aborted.
run_alive | conflict | Another process is executing the pipeline run.
run_taken | conflict | Another process took the pipeline run over.
interrupted | unavailable | A pipeline run was interrupted; recorded in the run, never raised.

# Clusters
cluster_not_servable | unavailable | The cluster cannot be served; the message lists the reasons.
graph_not_applied | invalid | The cluster has not applied a graph of that name.
graph_managed | invalid | A cluster manages the graph; change its schema there.
cluster_config_read_error | invalid | `cluster.yaml` cannot be read.
config_dir_not_found | invalid | The folder of the cluster configuration does not exist.
invalid_cluster_yaml | invalid | `cluster.yaml` is not valid YAML, or a field is invalid.
duplicate_yaml_key | invalid | A YAML file has the same key twice.
invalid_embedding_provider | invalid | The settings of an embedding provider are invalid.
apply_dependency_blocked | invalid | The change waits for another change that is blocked.
apply_unsupported_change | invalid | The change cannot be applied.
unsupported_cluster_config_version | invalid | The version of `cluster.yaml` is not supported.
future_phase_field | invalid | The field is reserved and has no meaning yet.
removed_streaming_declaration | invalid | `streaming` was removed from `cluster.yaml`.
empty_metadata_name | invalid | The name of the cluster is blank.
invalid_resource_id | invalid | The name of a resource is invalid.
invalid_storage_root | invalid | The storage address of the cluster is invalid.
unsupported_state_backend | invalid | The state backend is not supported.
graph_id_not_servable | invalid | A server cannot serve a graph of this name.
dangling_check_reference | invalid | The check that is listed is not a stored query of its graph.
dangling_graph_reference | invalid | The graph that is referred to is not declared.
dangling_embedding_provider_reference | invalid | An embedding provider is not declared.
wrong_kind_reference | invalid | The reference names a resource of another kind.
invalid_external_blob_base | invalid | A base URI of external blobs is invalid.
invalid_external_blob_policy | invalid | The external blob settings of a graph are invalid.
external_blob_ingress_default_deny | invalid | No base URI of external blobs is allowed.
external_blob_policy_digest_mismatch | invalid | The external blob settings changed.
policy_missing_applies_to | invalid | The policy does not state which graphs it applies to.
policy_mixed_binding_kinds | invalid | The policy applies to the cluster and to single graphs.
duplicate_policy_binding | invalid | The policy lists a graph twice.
schema_file_missing | invalid | The schema file of a graph cannot be read.
schema_parse_error | invalid | The schema file has syntax errors.
schema_catalog_error | invalid | The schema file has invalid declarations.
schema_preview_unavailable | invalid | The migration of a graph cannot be planned now.
schema_apply_failed | invalid | The schema change of a graph failed.
query_dir_empty | invalid | The folder of stored queries has no query files.
query_dir_unreadable | invalid | The folder of stored queries cannot be read.
query_file_missing | invalid | A query file cannot be read.
query_parse_error | invalid | A query file has syntax errors.
query_key_mismatch | invalid | A query file does not contain the query it is declared for.
query_typecheck_skipped | invalid | Stored queries were not checked because the schema is invalid.
check_invalid | invalid | The query cannot be a check: it changes data, or needs parameters.
query_typecheck_error | invalid | A stored query does not fit the schema of its graph.
duplicate_query_name | invalid | Two query files contain a query of the same name.
policy_file_missing | invalid | The policy file cannot be read.
pipeline_file_missing | invalid | A pipeline file cannot be read.
pipeline_invalid | invalid | A pipeline file is invalid.
state_missing | invalid | The cluster has no state yet.
state_already_exists | invalid | The cluster has state already.
state_read_error | invalid | The state of the cluster cannot be read.
state_write_error | invalid | The state of the cluster cannot be written.
state_cas_mismatch | invalid | Another process changed the state of the cluster meanwhile.
invalid_state_json | invalid | The state file of the cluster is damaged.
unsupported_state_version | invalid | The version of the state file is not supported.
state_lock_held | invalid | Another process holds the lock of the cluster.
state_lock_missing | invalid | No process holds the lock of the cluster.
state_lock_disabled | invalid | The command runs without the lock of the cluster.
state_lock_id_mismatch | invalid | The lock has another ID than the one to release.
invalid_state_lock | invalid | The lock file of the cluster is damaged.
unsupported_state_lock_version | invalid | The version of the lock file is not supported.
approval_not_required | invalid | The change needs no approval.
approval_stale | invalid | The approval is for an older change and has no effect.
graph_open_failed | invalid | A graph of the cluster cannot be opened.
graph_create_incomplete | invalid | The creation of a graph was interrupted.
graph_delete_incomplete | invalid | The deletion of a graph was interrupted.
cluster_recovery_pending | invalid | An interrupted change waits for recovery.
cluster_recovery_rolled_forward | invalid | An interrupted change was completed.
recovery_sidecar_read_error | invalid | The record of an interrupted change cannot be read.
catalog_payload_missing | invalid | The stored content of a resource is missing.
catalog_payload_read_error | invalid | The stored content of a resource cannot be read.
catalog_payload_digest_mismatch | invalid | The stored content and its digest differ.
cluster_empty | invalid | No graph has been applied yet.
cluster_state_missing | invalid | The cluster was never applied.
cluster_no_healthy_graphs | invalid | None of the graphs of the cluster can be served.
policy_bindings_missing | invalid | The state does not record which graphs a policy applies to.
embedding_provider_missing | invalid | The embedding provider of a graph was not applied.
embedding_provider_profile_missing | invalid | An embedding provider has no settings.
embedding_provider_digest_mismatch | invalid | Provider settings and their digest differ.
"""

_BY_CODE = _parse_table(_TABLE)
ERROR_CODES: Mapping[str, ErrorCodeRow] = MappingProxyType(_BY_CODE)

/** The bodies of the API that Studio reads, as /openapi.json describes them. */
export type Value = string | number | boolean | null | Value[] | { [name: string]: Value };
export type Properties = Record<string, Value>;
export type Op = 'insert' | 'update' | 'delete';
export interface Session { actor: string | null; sign_in: boolean; local: boolean; expires_at: number | null }
export interface Counts { inserted: number; updated: number; deleted: number }
export interface Commit {
  graph_commit_id: string; graph_branch: string | null; parent_commit_id: string | null; merged_parent_commit_id: string | null;
  actor_id: string | null; created_at: number; message: string | null; operation: string | null; counts?: Record<string, Counts>;
}
export interface Branch { name: string; parent: string | null; fork_commit_id: string | null; actor_id: string | null; created_at: number | null }
export interface Tag { name: string; graph_commit_id: string; actor_id: string | null; created_at: number }
export interface Divergence { commit_ids: string[]; ahead: number; behind: number }
export interface Snapshot {
  graph_branch: string; graph_commit_id: string; schema_source?: string;
  datasets: { entity_kind: 'node' | 'edge'; type_name: string; entity_count: number; published_dataset_version: number }[];
}
export interface SchemaProperty { name: string; type: string; nullable: boolean; key: boolean; unique: boolean; indexed: boolean; description: string | null }
export interface SchemaType {
  kind: 'interface' | 'node' | 'edge'; name: string; description: string | null; entity_count: number; key: string[]; interfaces: string[];
  properties: SchemaProperty[]; constraints: string[]; src: string | null; dst: string | null; cardinality: string | null; display: string | null; word: string | null;
}
export interface SchemaModel { graph_branch: string; graph_commit_id: string; types: SchemaType[] }
export interface Image { properties: Properties; endpoints?: { from: string; to: string } }
export interface Change { kind: 'node' | 'edge'; type: string; id: string; op: Op; before?: Image; after?: Image }
export interface CommitChanges { changes: CommitChange[]; next_page_token?: string | null }
export interface CommitChange { kind: 'node' | 'edge'; type: { id: string; name: string }; id: string; op: Op; before?: Image; after?: Image }
export interface QueryRequest { query: string; name?: string; params?: Properties; branch?: string; snapshot?: string }
export interface QueryResult { query_name: string; row_count: number; columns?: string[]; rows: Properties[]; graph_commit_id?: string }
export interface ChangeResult { affected_nodes?: number; affected_edges?: number; commit?: Commit | null; branch?: string }
export interface Explanation { query_name: string; steps: { depth: number; operator: string; estimated_rows?: number; rows?: number; seconds?: number; reads?: number; [fact: string]: unknown }[] }
export interface Param { name: string; kind: string; item_kind?: string | null; nullable: boolean; vector_dim?: number | null }
export interface Diagnostic { code: string; severity: 'error' | 'warning' | 'info'; message: string; hint: string | null; start: number; end: number; line: number; column: number }
export interface Lint {
  status: string; diagnostics: Diagnostic[];
  queries: { name: string; mutation: boolean; status: string; params: Param[]; operation: { result: { name: string; kind: string }[] } | null }[];
}
export interface Completion { start: number; items: { label: string; kind: string; detail: string | null; about: string | null }[] }
export interface StoredQuery { name: string; description?: string; mutation: boolean; params: Param[] }
export interface NeighbourGroup { edge: string; direction: 'in' | 'out'; type: string; count: number; neighbours: { id: string; label: string | null; edge_id: string }[] }
export interface Neighbours { graph_commit_id: string; groups: NeighbourGroup[] }
export interface HistoryEntry extends Change { commit: Commit }
export interface EntityHistory { changes: HistoryEntry[]; unknown_before: string[] }
export interface Origin { graph_commit_id: string | null; actor_id: string | null; created_at: number | null; message: string | null; unknown_before: string | null }
export interface Blame { values: Record<string, Origin> }
export interface Subgraph { nodes: { type: string; id: string; label: string | null }[]; edges: { kind: 'edge' | 'undirected' | 'path'; type: string; id: string | null; src: string; dst: string; src_type: string; dst_type: string }[]; truncated: boolean }
export type ProposalState = 'open' | 'merged' | 'closed';
export interface ProposalSummary {
  number: number; title: string; state: ProposalState; author_id: string | null; author_verified: boolean; source: string; target: string;
  head_commit_id: string | null; base_commit_id: string | null; source_state: 'present' | 'deleted' | 'recreated'; reviewers: string[];
  approvals: number; changes_requested: number; comment_count: number; unresolved_count: number; checks_state: string;
  created_at: number; updated_at: number; closed_at: number | null; closed_by: string | null; merge_commit_id: string | null;
}
export interface ProposalList { proposals: ProposalSummary[]; counts: Record<ProposalState, number>; next_page_token?: string | null }
export type Verdict = 'approve' | 'request_changes' | 'comment';
export interface Review { id: number; actor_id: string | null; verdict: Verdict; body: string; commit_id: string; stale: boolean; stale_reason: string | null; counts: boolean; after_merge: boolean; created_at: number }
export interface Anchor { kind?: string | null; type: string; id: string | null; property: string | null; outdated?: boolean }
export interface Comment { id: number; actor_id: string | null; body: string; on: Anchor | null; thread: number; resolved: boolean; after_merge: boolean; created_at: number }
export interface Finding { row: Properties; entities: { kind: 'node' | 'edge'; type: string; id: string }[] }
export interface CheckRun { name: string; status: 'passed' | 'warned' | 'failed' | 'error'; severity: string; message: string; count: number; findings: Finding[]; commit_id: string; types: string[]; current: boolean; created_at: number | null }
export interface Requirement { rule: string; satisfied: boolean; message: string }
export interface Proposal extends ProposalSummary {
  description: string; reviews: Review[]; comments: Comment[]; checks: CheckRun[]; summary: Record<string, Counts> | null; requirements: Requirement[]; mergeable: boolean;
}
export interface Conflict {
  entity_kind: 'node' | 'edge' | null; type_name: string | null; entity_id: string | null; kind: string; message: string;
  base?: Image; source?: Image; target?: Image; properties?: string[];
}
export interface SchemaStep { kind: string; [fact: string]: unknown }
export interface MergeResult { source: string; target: string; outcome: string; commit: Commit | null; counts?: Record<string, Counts>; conflicts?: Conflict[]; branch_deleted?: boolean | null; branch_delete_error?: string | null }
export interface Preview { merge: MergeResult; summary: Record<string, Counts>; schema: { supported: boolean; steps: SchemaStep[] } | null }
export interface ProposalEvent { event: number; proposal: number; seq: number; kind: string; actor_id: string | null; verified: boolean; created_at: number; payload: Record<string, unknown> }
export interface ProposalEvents { events: ProposalEvent[]; cursor: string; caught_up: boolean }
export interface Decision { type: string; id: string; take?: 'source' | 'target' | Record<string, 'source' | 'target'>; set?: Properties }
export interface RunTotals { given: number; accepted: number; rejected: number; bytes: number }
export interface PipelineRun {
  id: string; pipeline: string | null; branch: string; merge_into: string | null; mode: string | null;
  state: 'running' | 'interrupted' | 'finished' | 'failed' | 'aborted'; started_at: number; heartbeat_at: number; graph_commit_id: string;
  stages: string[]; error: string | null; totals: RunTotals | null; seconds: number | null;
}
export interface RunType { given: number; accepted: number; rejected: Record<string, number>; inserted: number; updated: number; deleted: number; bytes: number }
export interface RunMerge { target: string; outcome: string; commit: Commit | null; conflicts?: Conflict[] | null }
export interface RunCheck { name: string; status: CheckRun['status']; severity?: string; message?: string; count?: number; [fact: string]: unknown }
export interface PipelineReport {
  run: string; pipeline: string; state: string; branch: string; mode: string; base: string | null; actor: string | null; started_at: number; seconds: number;
  repeated: boolean; totals: RunTotals; stages: { name: string; seconds: number }[]; sources: Record<string, Value>[]; types: Record<string, RunType>;
  commit: Commit | null; merge: RunMerge | null; checks: RunCheck[]; notes: string[]; rejects: string | null; examples: Reject[];
  previous: { run: string; started_at: string; given: number; rejected: number; seconds: number; stages: { name: string; seconds: number }[] } | null;
  error: { code: string; message: string; details?: { total?: number; violations?: Reject[] } } | null; next_steps: { text: string; command: string | null }[];
}
export interface Reject {
  rule: string; message: string; kind?: string; type?: string; id?: string; property?: string; value?: Value; row?: Value;
  source?: { file: string | null; line?: number; row?: number };
}
export interface TypeStatus {
  type_key: string; rows: number; deleted_rows: number; indexed_rows: number; fragments: number; small_fragments: number; versions: number; files: number; bytes: number;
  compaction_due: boolean; index_due: boolean;
}
export interface Maintainer {
  running: boolean; last_pass_at?: string | null; host?: string; pid?: number; passes?: number; failures?: number; bytes_removed?: number; last_actions?: string[];
  last_success_at?: string | null; last_error?: string | null; last_error_at?: string | null;
}
export interface GraphStatus {
  branch: string; graph_commit_id: string; branches: number; tags: number; files: number; bytes: number; types: TypeStatus[];
  retention: { keep: number | null; older_than: string | null } | null; maintainer: Maintainer;
}
export interface IndexStatus { type_key: string; property: string; kind: string; rows: number; covered: number; segments: number; complete: boolean }
export interface CleanupEstimate {
  bytes_removed: number; bytes_kept: number; recent_files: number; recent_bytes: number; recent_removable_at: string | null; lineages_removed: number;
  datasets: { type_key: string; bytes_removed: number; bytes_kept: number; recent_bytes: number; old_versions_removed: number; error: string | null }[];
}
export interface Verification {
  ok: boolean; branches: number; commits: number; versions: number; problems: { where: string; message: string; harmless: boolean }[];
  files?: number; files_without_checksum?: number; damaged_files?: { type_key: string; file: string; rows: number; next_step: string }[];
}

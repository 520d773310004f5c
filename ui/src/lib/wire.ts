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
export interface CommitChange { kind: 'node' | 'edge'; type?: string; type_name?: string; id?: string; entity_id?: string; op: Op; before?: Image; after?: Image }
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

/** The HTTP API. The session cookie is sent by the browser; this module never sees a token twice. */
import type * as wire from './wire';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
  }

  get headline(): string {
    return this.message.split('\n', 1)[0] ?? this.message;
  }
}

const HEADERS = { 'X-Omnigraph-Studio': '1' };
type Values = Record<string, string | number | boolean | string[] | null | undefined>;

let onUnauthorized: () => void = () => {};
export function whenUnauthorized(action: () => void): void {
  onUnauthorized = action;
}

export async function request(
  method: string,
  path: string,
  { query, body, signal, accept }: { query?: Values; body?: unknown; signal?: AbortSignal; accept?: string } = {},
): Promise<Response> {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined) search.append(name, String(one));
    }
  }
  const text = search.toString();
  const headers: Record<string, string> = { ...HEADERS };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (accept) headers['Accept'] = accept;
  let answer: Response;
  try {
    answer = await fetch(text ? `${path}?${text}` : path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      credentials: 'same-origin',
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'unreachable', 'The server does not answer. Check that it is running, then try again.');
  }
  if (!answer.ok) throw await problem(answer, path);
  return answer;
}

async function problem(answer: Response, path: string): Promise<ApiError> {
  let message = `The server answered ${answer.status}.`;
  let code = String(answer.status);
  let details: Record<string, unknown> = {};
  try {
    const body = await answer.json();
    message = body.error ?? body.detail ?? message;
    code = body.problem?.code ?? body.code ?? code;
    details = { ...(body.problem?.details ?? {}), ...(body.merge_conflicts ? { conflicts: body.merge_conflicts } : {}) };
  } catch {
    // A body that is not JSON, as of a proxy: the status says it.
  }
  if (answer.status === 401 && path !== '/session') onUnauthorized();
  return new ApiError(answer.status, code, message, details);
}

async function json<T>(method: string, path: string, options: Parameters<typeof request>[2] = {}): Promise<T> {
  return (await (await request(method, path, options)).json()) as T;
}

export const session = {
  get: () => json<wire.Session>('GET', '/session'),
  signIn: (token: string) => json<wire.Session>('POST', '/session', { body: { token } }),
  signOut: () => json<wire.Session>('DELETE', '/session'),
};

export const listGraphs = () => json<{ graphs: string[] }>('GET', '/session/graphs');

/** A state: the newest of a branch, or what a commit, tag or time names. */
export interface State {
  branch?: string;
  snapshot?: string;
}

export class GraphClient {
  private readonly root: string;

  constructor(readonly id: string) {
    this.root = `/graphs/${encodeURIComponent(id)}`;
  }

  get<T>(path: string, query: Values = {}, signal?: AbortSignal): Promise<T> {
    return json<T>('GET', this.root + path, { query, signal });
  }

  post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return json<T>('POST', this.root + path, { body, signal });
  }

  put<T>(path: string, body: unknown): Promise<T> {
    return json<T>('PUT', this.root + path, { body });
  }

  patch<T>(path: string, body: unknown): Promise<T> {
    return json<T>('PATCH', this.root + path, { body });
  }

  delete<T>(path: string): Promise<T> {
    return json<T>('DELETE', this.root + path);
  }

  model = (state: State) => this.get<wire.SchemaModel>('/schema/model', { ...state });
  snapshot = (state: State, schema = false) => this.get<wire.Snapshot>('/snapshot', { ...state, schema: schema || null });
  branches = () => this.get<{ branches: string[] }>('/branches');
  branch = (name: string) => this.get<wire.Branch>(`/branches/${encodeURIComponent(name)}`);
  tags = () => this.get<{ tags: wire.Tag[] }>('/tags');
  divergence = (one: string, other: string) => this.get<wire.Divergence>('/merge-base', { one, other });
  commits = (branch: string, limit: number, actor?: string | null) =>
    this.get<{ commits: wire.Commit[] }>('/commits', { branch, limit, actor });
  commit = (id: string) => this.get<wire.Commit>(`/commits/${encodeURIComponent(id)}`);
  commitChanges = (id: string, query: Values) => this.get<wire.CommitChanges>(`/commits/${encodeURIComponent(id)}/changes`, query);
  query = (body: wire.QueryRequest, signal?: AbortSignal) => this.post<wire.QueryResult>('/query', body, signal);
  explain = (body: wire.QueryRequest & { analyze?: boolean }) => this.post<wire.Explanation>('/explain', body);
  lint = (text: string, state: State, signal?: AbortSignal) => this.post<wire.Lint>('/lint', { query: text, ...state }, signal);
  complete = (text: string, position: number, state: State) =>
    this.post<wire.Completion>('/complete', { query: text, position, ...state });
  subgraph = (body: wire.QueryRequest & { limit?: number }) => this.post<wire.Subgraph>('/subgraph', body);
  storedQueries = () => this.get<{ queries: wire.StoredQuery[] }>('/queries');
  invoke = (name: string, body: unknown) => this.post<wire.QueryResult & wire.ChangeResult>(`/queries/${encodeURIComponent(name)}`, body);
  mutate = (body: unknown) => this.post<wire.ChangeResult>('/mutate', body);
  entity = (type: string, id: string, state: State) => this.get<{ entity: wire.Properties | null }>('/entity', { type, id, ...state });
  neighbours = (type: string, id: string, state: State, limit = 50) =>
    this.get<wire.Neighbours>('/neighbours', { type, id, limit, ...state });
  history = (type: string, id: string, state: State, limit = 50) =>
    this.get<wire.EntityHistory>('/history', { type, id, limit, ...state });
  blame = (type: string, id: string, state: State) => this.get<wire.Blame>('/blame', { type, id, ...state });
  blobUrl(kind: string, type: string, id: string, property: string, state: State): string {
    const query = new URLSearchParams({ entity: kind, type, id, property, ...(state as Record<string, string>) });
    return `${this.root}/blob?${query}`;
  }

  proposals = (query: Values) => this.get<wire.ProposalList>('/proposals', query);
  proposal = (number: string) => this.get<wire.Proposal>(proposalPath(number));
  createProposal = (body: unknown) => this.post<wire.Proposal>('/proposals', body);
  proposalPreview = (number: string) => this.get<wire.Preview>(`${proposalPath(number)}/preview`);
  /** Do something about a proposal: `edit`, `close`, `reopen`, `comments`, `reviews`, `checks`, `merge`. */
  act = <T>(number: string, action: string, body: unknown = {}) => this.post<T>(`${proposalPath(number)}/${action}`, body);
  proposalEvents = (query: Values) => this.get<wire.ProposalEvents>('/proposal-events', query);

  pipelineRuns = (limit: number) => this.get<{ runs: wire.PipelineRun[]; more: boolean }>('/pipeline-runs', { limit });
  pipelineReport = (run: string) => this.get<wire.PipelineReport>(`/pipeline-runs/${encodeURIComponent(run)}`);
  status = (state: State) => this.get<wire.GraphStatus>('/status', { ...state });
  indexes = (state: State) => this.get<{ indexes: wire.IndexStatus[] }>('/indexes', { ...state });
  cleanupEstimate = (query: Values) => this.get<wire.CleanupEstimate>('/cleanup-estimate', query);
  verify = (deep: boolean) => this.get<wire.Verification>('/verify', { deep });

  /** Return the first rejected rows of a run. */
  async rejects(run: string, limit: number): Promise<wire.Reject[]> {
    const answer = await request('GET', `${this.root}/pipeline-runs/${encodeURIComponent(run)}/rejects`, { query: { limit } });
    const rows: wire.Reject[] = [];
    for await (const line of lines(answer)) rows.push(JSON.parse(line) as wire.Reject);
    return rows;
  }
  rejectsUrl = (run: string): string => `${this.root}/pipeline-runs/${encodeURIComponent(run)}/rejects`;

  /** Yield the entities that differ between two states as the server finds them. */
  async *diff(from: string, to: string, filter: Record<string, unknown> = {}, signal?: AbortSignal): AsyncGenerator<wire.Change> {
    yield* changes(await request('POST', `${this.root}/diff`, { body: { from, to, ...filter }, signal }));
  }

  async *proposalDiff(number: string, filter: Values = {}, signal?: AbortSignal): AsyncGenerator<wire.Change> {
    yield* changes(await request('GET', `${this.root}${proposalPath(number)}/diff`, { query: filter, signal }));
  }
}

const proposalPath = (number: string): string => `/proposals/${encodeURIComponent(number)}`;

async function* changes(answer: Response): AsyncGenerator<wire.Change> {
  for await (const line of lines(answer)) {
    const change = JSON.parse(line) as wire.Change & { error?: string; problem?: { code: string } };
    if (change.error !== undefined && change.op === undefined) throw new ApiError(500, change.problem?.code ?? 'internal', change.error);
    yield change;
  }
}

async function* lines(answer: Response): AsyncGenerator<string> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      rest += value;
      const parts = rest.split('\n');
      rest = parts.pop() ?? '';
      for (const part of parts) if (part.trim()) yield part;
    }
    if (rest.trim()) yield rest;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

// One walk over every route with a client generated from the contract. The client checks each
// answer against its schema; what it holds is compared here. The last line printed is the proof.
import assert from 'node:assert/strict';
import { client } from './client/client.gen';
import * as api from './client/sdk.gen';
import { zErrorOutput } from './client/zod.gen';

const [baseUrl, token, graph, operator] = process.argv.slice(2);
const fails = { status: 0 };
client.setConfig({ baseUrl, auth: token });
const path = { graph_id: graph };

type Answer = { data?: unknown; error?: unknown; response: Response };

async function ok<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  assert.equal(response.status, 200, `${response.url}: ${JSON.stringify(error)}`);
  assert.ok(data !== undefined, response.url);
  return data;
}

async function refused(call: Promise<Answer>, status: number) {
  const { error, response } = await call;
  assert.equal(response.status, status, response.url);
  fails.status += 1;
  return zErrorOutput.parse(error);
}

const PEOPLE = 'query people() { match { $p: Person } return { $p.name as name, $p.age as age } order { name } }';
const ADD = 'query add($name: String, $age: I32?) { insert Person { name: $name, age: $age } }';
const ADULTS = [{ name: 'Ada', age: 36 }];
const line = (name: string, age: number | null) => JSON.stringify({ type: 'Person', data: { name, age } });

// What the server is.
const health = await ok(api.health());
assert.equal(health.status, 'ok');
const listed = await ok(api.listGraphs({ auth: operator }));
assert.ok(listed.graphs.some((found) => found.graph_id === graph));
assert.equal((await refused(api.listGraphs(), 403)).code, 'forbidden');

// Loads: the current route, the older one and the strict one.
const loaded = await ok(api.clusterLoad({ path, body: { data: line('Ada', 36) } }));
assert.deepEqual(loaded.nodes, [{ name: 'Person', entities_loaded: 1 }]);
const ingested = await ok(api.clusterIngest({ path, body: { data: line('Bob', null), mode: 'append' } }));
assert.equal(ingested.total_entities, 1);
const strict = await ok(
  api.clusterLoadNdjson({
    path,
    query: { mode: 'merge' },
    body: line('Cid', 7) as never,
    bodySerializer: (body: unknown) => body as string,
    headers: { 'Content-Type': 'application/x-ndjson' },
  }),
);
assert.equal(strict.mode, 'merge');
assert.ok((await refused(api.clusterLoad({ path, body: { data: line('Ada', 1), mode: 'append' } }), 409)).key_conflict);

// Reads.
const read = await ok(api.clusterQuery({ path, body: { query: PEOPLE } }));
assert.deepEqual(read.rows, [{ name: 'Ada', age: 36 }, { name: 'Bob', age: null }, { name: 'Cid', age: 7 }]);
assert.equal(read.graph_commit_id, strict.commit?.graph_commit_id);
const older = await ok(api.clusterRead({ path, body: { query_source: PEOPLE } }));
assert.deepEqual(older.rows, read.rows);
await refused(api.clusterQuery({ path, body: { query: 'query q() { match { $p: Nobody } return { $p } }' } }), 400);
const snapshot = await ok(api.clusterGetSnapshot({ path }));
assert.equal(snapshot.datasets.find((found) => found.type_name === 'Person')?.entity_count, 3);
const schema = await ok(api.clusterGetSchema({ path }));
assert.match(schema.schema_source, /node Person/);

// Writes, on condition and not.
const changed = await ok(api.clusterMutate({ path, body: { query: ADD, params: { name: 'Dan', age: 5 } } }));
assert.equal(changed.affected_nodes, 1);
const head = changed.commit!.graph_commit_id;
// The generator's check of requests looks for headers where they no longer are.
const condition = (commit: string) => ({ headers: { 'Omnigraph-If-Graph-Commit': commit }, requestValidator: undefined });
const next = await ok(
  api.clusterMutateIfGraphCommit({ path, ...condition(head), body: { query: ADD, params: { name: 'Eve', age: 6 } } }),
);
const late = await refused(
  api.clusterMutateIfGraphCommit({ path, ...condition(head), body: { query: ADD, params: { name: 'Fay' } } }),
  412,
);
assert.deepEqual(late.precondition_failure, { expected: head, actual: next.commit!.graph_commit_id });
const old = await ok(api.clusterChange({ path, body: { query: ADD, params: { name: 'Gus', age: 8 } } }));
assert.equal(old.affected_nodes, 1);

// Stored queries.
const stored = await ok(api.clusterListQueries({ path }));
assert.deepEqual(stored.queries.map((query) => [query.name, query.mutation]), [['add_person', true], ['adults', false]]);
const invoked = await ok(api.clusterInvokeQuery({ path: { ...path, name: 'adults' }, body: { params: { min: 30 } } }));
assert.deepEqual('rows' in invoked ? invoked.rows : null, ADULTS);
const before = old.commit!.graph_commit_id;
const conditional = await ok(
  api.clusterInvokeQueryIfGraphCommit({
    path: { ...path, name: 'add_person' },
    ...condition(before),
    body: { params: { name: 'Hal', age: 1 } },
  }),
);
assert.ok('commit' in conditional && conditional.commit);
await refused(api.clusterInvokeQuery({ path: { ...path, name: 'nothing' }, body: {} }), 404);

// Branches and merges.
await ok(api.clusterCreateBranch({ path, body: { name: 'review/x' } }));
await refused(api.clusterCreateBranch({ path, body: { name: 'review/x' } }), 409);
const onBranch = { query: ADD, params: { name: 'Ida', age: 2 }, branch: 'review/x' };
await ok(api.clusterMutate({ path, body: onBranch }));
assert.deepEqual((await ok(api.clusterListBranches({ path }))).branches, ['main', 'review/x']);
const merged = await ok(api.clusterMergeBranches({ path, body: { source: 'review/x' } }));
assert.equal(merged.outcome, 'fast_forward');
const gone = await ok(api.clusterDeleteBranch({ path: { ...path, branch: 'review/x' } }));
assert.equal(gone.name, 'review/x');
await refused(api.clusterDeleteBranch({ path: { ...path, branch: 'review/x' } }), 404);

// History and changes.
const commits = await ok(api.clusterListCommits({ path }));
const commit = await ok(api.clusterGetCommit({ path: { ...path, commit_id: before } }));
assert.ok(commits.commits.some((found) => found.graph_commit_id === commit.graph_commit_id));
await refused(api.clusterGetCommit({ path: { ...path, commit_id: '01ARZ3NDEKTSV4RRFFQ69G5FAV' } }), 404);
const changes = await ok(api.clusterGetCommitChanges({ path: { ...path, commit_id: before } }));
assert.deepEqual(changes.changes.map((change) => [change.op, change.id]), [['insert', 'Gus']]);
const polled = await ok(api.clusterPollChanges({ path, query: { start: `after:${before}` } }));
assert.deepEqual(polled.blocks.flatMap((block) => block.changes.map((change) => change.id)), ['Hal', 'Ida']);

// Streams of lines.
const text = async (call: Promise<{ data?: unknown; response: Response }>) => String(await ok(call));
const exported = await text(api.clusterExport({ path, body: {}, parseAs: 'text' }));
assert.equal(exported.trim().split('\n').length, 8);
const baseline = await text(api.clusterCaptureChangeBaseline({ path, body: {}, parseAs: 'text', responseValidator: undefined }));
assert.ok(JSON.parse(baseline.trim().split('\n').at(-1)!).baseline.resume_cursor);

// Blobs.
const doc = JSON.stringify({ type: 'Doc', data: { slug: 'a', body: 'base64:aGVsbG8=' } });
await ok(api.clusterLoad({ path, body: { data: doc } }));
const where = { entity: 'node' as const, type: 'Doc', id: 'a', property: 'body', branch: 'main' };
const blob = await api.clusterGetBlob({ path, query: where, parseAs: 'text', responseValidator: undefined });
assert.deepEqual([blob.response.status, String(blob.data)], [200, 'hello']);
const known = await api.clusterHeadBlob({ path, query: where });
assert.deepEqual([known.response.status, known.response.headers.get('content-length')], [200, '5']);

// Schemas, and somebody who is nobody.
const applied = await api.clusterApplySchema({ path, body: { schema_source: `${schema.schema_source}\nnode Ship { name: String @key }` } });
assert.ok([200, 409].includes(applied.response.status), String(applied.response.status));
await refused(api.clusterQuery({ path, body: { query: PEOPLE }, auth: 'nobody' }), 401);
await refused(api.clusterQuery({ path: { graph_id: 'nowhere' }, body: { query: PEOPLE } }), 404);
console.log(`done: ${commits.commits.length} commits, ${fails.status} refusals`);

"""`og.aconnect`: the methods of a remote graph as coroutines, on a real server."""

import asyncio
import inspect
import json
import threading
import time
from contextlib import aclosing

import pytest

import omnigraph as og
from omnigraph.graph.proposal_protocol import Proposal
from omnigraph.query.entities import Blob
from omnigraph.query.result import ResultStream
from omnigraph.service.client import async_graph, proposals, resources
from omnigraph.service.client.graph import RemoteGraph
from tests.support.awaiting import run_async
from tests.support.docs import ROOT, page_blocks
from tests.support.serving import INSERT, PATIENCE, make_graph, serving

PEOPLE = "match { $p: Person } return { $p.name as name, $p.age as age } order { name }"
LONG = """
match { $a: Person  $b: Person  $a.age >= 0 }
return { $a.name as a, path_length($a, <knows>, $b) as n }
order { n desc }
limit 1
"""
RING = 400
PAIRS = [
    (RemoteGraph, async_graph.AsyncGraph),
    (resources.RemoteBranches, async_graph.AsyncBranches),
    (resources.RemoteTags, async_graph.AsyncTags),
    (resources.RemoteCommits, async_graph.AsyncCommits),
    (resources.RemoteChanges, async_graph.AsyncChanges),
    (resources.RemoteSchema, async_graph.AsyncSchema),
    (proposals.RemoteProposals, async_graph.AsyncProposals),
    (proposals.RemoteProtection, async_graph.AsyncProtection),
    (Proposal, async_graph.AsyncProposal),
    (ResultStream, async_graph.AsyncResultStream),
    (Blob, async_graph.AsyncBlob),
]
NOT_AWAITED = {
    RemoteGraph: {"analyze", "cleanup", "embed", "export_archive", "export_parquet"}
    | {"export_parts", "indexes", "maintenance", "optimize", "pipeline", "recover", "repair"}
    | {"verify", "on", "mode", "actor"},
    Proposal: {"author", "base", "checks", "comments", "counts", "created_at", "description"}
    | {"head", "merge_commit", "requirements", "reviewers", "reviews", "source", "target"}
    | {"updated_at"},
    ResultStream: {"arrow_chunks", "json_chunks", "to_reader", "write"},
    Blob: {"entity_id", "kind", "property_name", "type_name"},
}
"""What a server does not offer, what `details` has, and what belongs to blocking programs."""


def public(type_):
    return {name for name in dir(type_) if not name.startswith("_")}


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS, ids=lambda one: one.__name__)
def test_every_method_is_there_with_the_same_signature(blocking, awaited):
    missing = public(blocking) - public(awaited)
    assert missing == NOT_AWAITED.get(blocking, set())
    assert public(awaited) - public(blocking) <= {"run"}
    for name in public(blocking) & public(awaited):
        method = inspect.getattr_static(blocking, name)
        if inspect.isfunction(method):
            assert parameters(getattr(awaited, name)) == parameters(method), name


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in found]


@pytest.fixture
def run(open_server):
    """Return a function that runs a coroutine of a graph on a new event loop."""

    def run(story, graph="awaited"):
        async def connected():
            async with await og.aconnect(open_server.url, graph=graph) as found:
                return await story(found)

        return run_async(connected())

    return run


def test_a_graph_is_read_and_written_like_a_blocking_one(run, open_server):
    async def story(graph):
        await graph.mutate(INSERT, {"name": "Ada", "age": 36}, message="first")
        async with await graph.branch("draft", create=True, merge_into="main") as draft:
            await draft.load({"Person": [{"name": "Bo", "age": 7}, {"name": "Cy", "age": None}]})
            assert (await graph.query(PEOPLE)).rows == [{"name": "Ada", "age": 36}]
        rows = (await graph.query(PEOPLE)).rows
        stored = await graph.invoke("adults", {"min": 30}, expect_mutation=False)
        entity = await graph.entity_at("Person", "Ada")
        return rows, stored.rows, entity["age"], await graph.branches.list(), graph.branch_name

    rows, stored, age, branches, bound = run(story)
    ada = {"name": "Ada", "age": 36}
    assert (rows, stored, age, branches, bound) == (
        [ada, {"name": "Bo", "age": 7}, {"name": "Cy", "age": None}],
        [ada],
        36,
        ["draft", "main"],
        "main",
    )
    with og.connect(open_server.url, graph="awaited") as blocking:
        assert blocking.query(PEOPLE).rows == rows


def test_iterators_are_asynchronous(run):
    lines = [{"type": "Person", "data": {"name": f"q{n:04}", "age": n}} for n in range(700)]
    text = "\n".join(map(json.dumps, lines)).encode()

    async def story(graph):
        loaded = await graph.branch("many", create=True)
        before = (await loaded.snapshot()).commit_id
        await loaded.load(text)
        stream = await loaded.stream(PEOPLE)
        ages = [row["age"] async for row in stream if row["name"].startswith("q")]
        exported = [json.loads(line) async for line in loaded.export(types=["Person"])]
        changes = [change async for change in loaded.diff(before, "many")]
        return stream.row_count, ages, exported, changes

    rows, ages, exported, changes = run(story)
    assert rows >= 700
    assert ages == list(range(700))
    assert {line["data"]["name"] for line in exported} >= {f"q{n:04}" for n in range(700)}
    assert [change.op for change in changes] == ["insert"] * 700


def test_a_blob_is_read_in_ranges(run):
    async def story(graph):
        await graph.insert("Doc", [{"slug": "d", "title": "T"}], mode="merge")
        await graph.put_blob("Doc", "d", "body", bytes(range(100)))
        blob = await graph.blob("Doc", "d", "body")
        pieces = [piece async for piece in blob.chunks(90)]
        return blob.size, await blob.read(3, 6), b"".join(pieces)

    assert run(story) == (100, bytes((3, 4, 5)), bytes(range(90, 100)))


def test_proposals_are_reviewed_and_merged(run):
    async def story(graph):
        work = await graph.branch("work", create=True)
        await work.mutate(INSERT, {"name": "Eve", "age": 50})
        proposal = await graph.proposals.create("work", title="Add Eve")
        changed = [change async for change in proposal.diff()]
        await proposal.comment("Looks right")
        closed = await proposal.close("wait")
        reopened = str((await proposal.reopen()).state)
        result = await proposal.merge(delete_branch=True)
        listed = await graph.proposals.list("merged")
        return len(changed), closed.number, reopened, str(result.outcome), listed[0].title

    assert run(story) == (1, 1, "open", "fast_forward", "Add Eve")


def test_calls_run_at_the_same_time_and_errors_are_those_of_the_graph(run):
    async def story(graph):
        answers = await asyncio.gather(
            *(graph.query(PEOPLE) for _ in range(20)),
            graph.query("match { $p: Nobody } return { $p.name }"),
            graph.query(PEOPLE, at="nowhere"),
            return_exceptions=True,
        )
        return answers, await graph.schema.source, sorted((await graph.schema.catalog).nodes)

    answers, source, nodes = run(story)
    assert [type(answer) for answer in answers] == [og.Result] * 20 + [og.QueryError, og.NotFound]
    assert "node Person" in source
    assert nodes == ["Doc", "Person"]


def test_a_request_on_the_event_loop_is_refused_and_names_the_way(run):
    async def story(graph):
        await graph.mutate(INSERT, {"name": "Flo", "age": 1})
        result = await graph.query(PEOPLE)
        with pytest.raises(og.InvalidInput, match=r"await graph\.run\(function\)") as refused:
            result.graph()
        view = await graph.run(result.graph)
        return refused.value.code, len(view.nodes)

    code, nodes = run(story)
    assert (code, nodes >= 1) == ("event_loop_blocked", True)


def test_an_address_that_cannot_be_reached_is_an_error(open_server):
    async def connect(url, graph):
        async with await og.aconnect(url, graph=graph, patience=None) as found:
            await found.snapshot()

    with pytest.raises(og.InvalidInput, match="name one with `graph`"):
        run_async(connect(open_server.url, None))
    with pytest.raises(og.NotFound):
        run_async(connect(open_server.url, "absent"))
    for thread in threading.enumerate():
        if thread.name.startswith("omnigraph-client"):
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """A server whose graph has a query that takes minutes."""
    uri = make_graph(tmp_path_factory.mktemp("crowded") / "g")
    lines = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(RING)]
    lines += [{"edge": "Knows", "from": f"p{n}", "to": f"p{(n + 1) % RING}"} for n in range(RING)]
    og.open(uri).load("\n".join(map(json.dumps, lines)).encode())
    with serving(f"--graph=g={uri}", "--unauthenticated", "--query-timeout=600") as server:
        yield server


def test_a_cancelled_task_stops_the_query_at_the_server(crowded):
    async def story():
        async with await og.aconnect(crowded.url) as graph:
            task = asyncio.create_task(graph.query(LONG))
            while not await graph.running_queries():
                assert not task.done(), task
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await no_query_runs(graph)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await graph.query(LONG)
            await no_query_runs(graph)
            return (await graph.query("match { $p: Person } return { count($p) as n }")).rows

    assert run_async(story()) == [{"n": RING}]


async def no_query_runs(graph):
    end = time.monotonic() + PATIENCE
    while await graph.running_queries():
        assert time.monotonic() < end, "the query goes on"
        await asyncio.sleep(0.02)


def test_a_stream_that_is_left_releases_its_connection(crowded):
    async def story():
        async with await og.aconnect(crowded.url, connections=1) as graph:
            for _ in range(3):
                async with aclosing(graph.export(types=["Person"])) as lines:
                    async for line in lines:
                        first = json.loads(line)
                        break
            return first["type"], (await graph.snapshot()).branch

    assert run_async(story()) == ("Person", "main")


def test_the_program_of_the_documentation_runs(tmp_path, capsys):
    uri = make_graph(tmp_path / "harbour", "node Port { code: String @key }")
    page = ROOT / "docs" / "guide" / "remote.md"
    [program] = [block.text for block in page_blocks(page) if "og.aconnect" in block.text]
    with serving(f"--graph=harbour={uri}", "--unauthenticated") as server:
        text = program.replace("https://lab.example", server.url).replace('token="…", ', "")
        exec(compile(text, str(page), "exec"), {})
    *codes, last = capsys.readouterr().out.splitlines()
    rows, entity, lines = eval(last)
    assert codes == [row["p.code"] for row in rows] == ["BEANR", "DEHAM"]
    assert (entity["code"], len(lines)) == ("DEHAM", 2)

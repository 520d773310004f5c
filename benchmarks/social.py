"""Benchmarks of the reads of a social network, after LDBC's, beside ladybug and DuckDB.

Each side answers in a process of its own, from files made once. The scale 1 is 3.2 million nodes
and 15 million edges. All sides must give the same answers, and give them as Arrow tables. DuckDB
has an index on every key and on both ends of every edge.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PEOPLE, MESSAGES, FORUMS, TAGS, CITIES = 300_000, 2_800_000, 90_000, 15_000, 1_300
FRIENDSHIPS, MEMBERSHIPS, LIKES = 1_500_000, 900_000, 1_000_000
SMALL = 0.02
STARTS = 12
PATIENCE = 2.0
"""Seconds to spend on one question, however slow."""
ROUNDS = 3
NEWEST = 1_700_000_000
MIDDLE = NEWEST - 50_000_000
SCHEMA = """
node Person {
    code: String @key
    first: String
    last: String
    joined: I64
}
node City {
    name: String @key
    country: String
}
node Message {
    code: String @key
    created: I64
    length: I32
}
node Forum {
    code: String @key
    title: String
}
node Tag {
    name: String @key
}
edge Knows: Person -> Person {
    since: I64
}
edge LivesIn: Person -> City
edge Wrote: Person -> Message
edge Replies: Message -> Message
edge About: Message -> Tag
edge PostedIn: Message -> Forum
edge Member: Forum -> Person {
    since: I64
}
edge Likes: Person -> Message {
    at: I64
}
"""
NODES = ("Person", "City", "Message", "Forum", "Tag")
EDGES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "Knows": ("Person", "Person"),
        "LivesIn": ("Person", "City"),
        "Wrote": ("Person", "Message"),
        "Replies": ("Message", "Message"),
        "About": ("Message", "Tag"),
        "PostedIn": ("Message", "Forum"),
        "Member": ("Forum", "Person"),
        "Likes": ("Person", "Message"),
    }
)
_FRIENDS = """
    WITH once AS (SELECT "to" AS id FROM Knows WHERE "from" = $start),
    friends AS (SELECT id FROM once UNION
        SELECT "to" FROM Knows JOIN once ON Knows."from" = once.id WHERE "to" <> $start)"""


@dataclass(frozen=True)
class Question:
    """One question in three languages, with parameters that are another each time.

    `$start` and `$other` are people, `$message` is a message, `$tag` a tag, `$first` a first name
    and `$city` a city.
    """

    ours: str
    cypher: str
    sql: str


QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        "short 1, a person and the city": Question(
            "match { $p: Person { code: $start }  $p livesIn $c }"
            " return { $p.first as first, $p.last as last, $c.name as city }",
            "MATCH (p:Person {code: $start})-[:LivesIn]->(c:City)"
            " RETURN p.first AS first, p.last AS last, c.name AS city",
            'SELECT first, last, "to" AS city FROM Person JOIN LivesIn ON "from" = code'
            " WHERE code = $start",
        ),
        "short 2, newest messages of a person": Question(
            "match { $p: Person { code: $start }  $p wrote $m }"
            " return { $m.code as code, $m.created as created }"
            " order { created desc, code } limit 10",
            "MATCH (p:Person {code: $start})-[:Wrote]->(m:Message)"
            " RETURN m.code AS code, m.created AS created ORDER BY created DESC, code LIMIT 10",
            'SELECT code, created FROM Wrote JOIN Message ON "to" = code WHERE "from" = $start'
            " ORDER BY created DESC, code LIMIT 10",
        ),
        "short 3, friends of a person": Question(
            "match { $p: Person { code: $start }  $p $k:knows $f }"
            " return { $f.code as code, $f.last as last, $k.since as since }"
            " order { since desc, code }",
            "MATCH (p:Person {code: $start})-[k:Knows]->(f:Person)"
            " RETURN f.code AS code, f.last AS last, k.since AS since ORDER BY since DESC, code",
            'SELECT code, last, since FROM Knows JOIN Person ON "to" = code'
            ' WHERE "from" = $start ORDER BY since DESC, code',
        ),
        "short 4, content of a message": Question(
            "match { $m: Message { code: $message } }"
            " return { $m.created as created, $m.length as length }",
            "MATCH (m:Message {code: $message}) RETURN m.created AS created, m.length AS length",
            "SELECT created, length FROM Message WHERE code = $message",
        ),
        "short 5, author of a message": Question(
            "match { $m: Message { code: $message }  $p wrote $m }"
            " return { $p.code as code, $p.first as first, $p.last as last }",
            "MATCH (p:Person)-[:Wrote]->(m:Message {code: $message})"
            " RETURN p.code AS code, p.first AS first, p.last AS last",
            'SELECT code, first, last FROM Wrote JOIN Person ON "from" = code'
            ' WHERE "to" = $message',
        ),
        "short 6, forum of the messages of a person": Question(
            "match { $p: Person { code: $start }  $p wrote $m  $m postedIn $f }"
            " return { $f.code as code, $f.title as title, count($m) as messages }"
            " order { messages desc, code } limit 10",
            "MATCH (p:Person {code: $start})-[:Wrote]->(m:Message)-[:PostedIn]->(f:Forum)"
            " RETURN f.code AS code, f.title AS title, count(*) AS messages"
            " ORDER BY messages DESC, code LIMIT 10",
            "SELECT code, title, count(*) AS messages FROM Wrote"
            ' JOIN PostedIn ON PostedIn."from" = Wrote."to" JOIN Forum ON PostedIn."to" = code'
            ' WHERE Wrote."from" = $start GROUP BY code, title'
            " ORDER BY messages DESC, code LIMIT 10",
        ),
        "short 7, replies to a message": Question(
            "match { $m: Message { code: $message }  $r replies $m  $p wrote $r }"
            " return { $r.code as reply, $p.code as person, $r.created as created }"
            " order { created desc, reply }",
            "MATCH (p:Person)-[:Wrote]->(r:Message)-[:Replies]->(m:Message {code: $message})"
            " RETURN r.code AS reply, p.code AS person, r.created AS created"
            " ORDER BY created DESC, reply",
            'SELECT r.code AS reply, w."from" AS person, r.created AS created FROM Replies x'
            ' JOIN Message r ON x."from" = r.code JOIN Wrote w ON w."to" = r.code'
            ' WHERE x."to" = $message ORDER BY created DESC, reply',
        ),
        "complex 1, people of a name within 3 steps": Question(
            "match { $p: Person { code: $start }  $p knows{1,3} $f  $f.first = $first }"
            " return { $f.last as last, $f.code as code } order { last, code } limit 20",
            "MATCH (p:Person {code: $start})-[:Knows* SHORTEST 1..3]->(f:Person)"
            " WHERE f.first = $first AND f.code <> $start"
            " RETURN f.last AS last, f.code AS code ORDER BY last, code LIMIT 20",
            _FRIENDS + ', wider AS (SELECT id FROM friends UNION SELECT "to" FROM Knows'
            ' JOIN friends ON "from" = id WHERE "to" <> $start)'
            " SELECT last, code FROM wider JOIN Person ON id = code WHERE first = $first"
            " ORDER BY last, code LIMIT 20",
        ),
        "complex 2, newest messages of friends": Question(
            f"match {{ $p: Person {{ code: $start }}  $p knows $f  $f wrote $m"
            f"  $m.created <= {MIDDLE} }}"
            " return { $f.code as friend, $m.code as code, $m.created as created }"
            " order { created desc, code } limit 20",
            "MATCH (p:Person {code: $start})-[:Knows]->(f:Person)-[:Wrote]->(m:Message)"
            f" WHERE m.created <= {MIDDLE}"
            " RETURN f.code AS friend, m.code AS code, m.created AS created"
            " ORDER BY created DESC, code LIMIT 20",
            'SELECT w."from" AS friend, code, created FROM Knows k'
            ' JOIN Wrote w ON w."from" = k."to" JOIN Message ON w."to" = code'
            f' WHERE k."from" = $start AND created <= {MIDDLE}'
            " ORDER BY created DESC, code LIMIT 20",
        ),
        "complex 4, tags of the messages of friends": Question(
            f"match {{ $p: Person {{ code: $start }}  $p knows $f  $f wrote $m"
            f"  $m.created >= {MIDDLE}  $m about $t }}"
            " return { $t.name as tag, count($m) as messages }"
            " order { messages desc, tag } limit 10",
            "MATCH (p:Person {code: $start})-[:Knows]->(:Person)-[:Wrote]->(m:Message)"
            f"-[:About]->(t:Tag) WHERE m.created >= {MIDDLE}"
            " RETURN t.name AS tag, count(*) AS messages ORDER BY messages DESC, tag LIMIT 10",
            'SELECT a."to" AS tag, count(*) AS messages FROM Knows k'
            ' JOIN Wrote w ON w."from" = k."to" JOIN Message m ON w."to" = m.code'
            ' JOIN About a ON a."from" = m.code'
            f' WHERE k."from" = $start AND m.created >= {MIDDLE}'
            ' GROUP BY a."to" ORDER BY messages DESC, tag LIMIT 10',
        ),
        "complex 5, forums that friends joined": Question(
            f"match {{ $p: Person {{ code: $start }}  $p knows{{1,2}} $f  $g $j:member $f"
            f"  $j.since >= {MIDDLE} }}"
            " return { $g.code as forum, count($f) as friends }"
            " order { friends desc, forum } limit 20",
            "MATCH (p:Person {code: $start})-[:Knows* SHORTEST 1..2]->(f:Person)"
            "<-[j:Member]-(g:Forum)"
            f" WHERE j.since >= {MIDDLE} AND f.code <> $start"
            " RETURN g.code AS forum, count(*) AS friends ORDER BY friends DESC, forum LIMIT 20",
            _FRIENDS + ' SELECT "from" AS forum, count(*) AS friends FROM friends'
            f' JOIN Member ON "to" = id WHERE since >= {MIDDLE}'
            ' GROUP BY "from" ORDER BY friends DESC, forum LIMIT 20',
        ),
        "complex 6, tags beside a tag": Question(
            "match { $p: Person { code: $start }  $p knows{1,2} $f  $f wrote $m"
            "  $m about $t  $t.name = $tag  $m about $u  $u.name != $tag }"
            " return { $u.name as tag, count($m) as messages }"
            " order { messages desc, tag } limit 10",
            "MATCH (p:Person {code: $start})-[:Knows* SHORTEST 1..2]->(f:Person)"
            "-[:Wrote]->(m:Message)-[:About]->(:Tag {name: $tag}), (m)-[:About]->(u:Tag)"
            " WHERE u.name <> $tag AND f.code <> $start"
            " RETURN u.name AS tag, count(*) AS messages ORDER BY messages DESC, tag LIMIT 10",
            _FRIENDS + ' SELECT b."to" AS tag, count(*) AS messages FROM friends'
            ' JOIN Wrote w ON w."from" = id JOIN About a ON a."from" = w."to"'
            ' JOIN About b ON b."from" = w."to" WHERE a."to" = $tag AND b."to" <> $tag'
            ' GROUP BY b."to" ORDER BY messages DESC, tag LIMIT 10',
        ),
        "complex 8, newest replies to a person": Question(
            "match { $p: Person { code: $start }  $p wrote $m  $r replies $m  $a wrote $r }"
            " return { $a.code as person, $r.code as reply, $r.created as created }"
            " order { created desc, reply } limit 20",
            "MATCH (p:Person {code: $start})-[:Wrote]->(:Message)<-[:Replies]-(r:Message)"
            "<-[:Wrote]-(a:Person)"
            " RETURN a.code AS person, r.code AS reply, r.created AS created"
            " ORDER BY created DESC, reply LIMIT 20",
            'SELECT b."from" AS person, m.code AS reply, m.created AS created FROM Wrote w'
            ' JOIN Replies r ON r."to" = w."to" JOIN Message m ON r."from" = m.code'
            ' JOIN Wrote b ON b."to" = m.code WHERE w."from" = $start'
            " ORDER BY created DESC, reply LIMIT 20",
        ),
        "complex 9, newest messages within 2 steps": Question(
            f"match {{ $p: Person {{ code: $start }}  $p knows{{1,2}} $f  $f wrote $m"
            f"  $m.created < {MIDDLE} }}"
            " return { $f.code as friend, $m.code as code, $m.created as created }"
            " order { created desc, code } limit 20",
            "MATCH (p:Person {code: $start})-[:Knows* SHORTEST 1..2]->(f:Person)"
            f"-[:Wrote]->(m:Message) WHERE m.created < {MIDDLE} AND f.code <> $start"
            " RETURN f.code AS friend, m.code AS code, m.created AS created"
            " ORDER BY created DESC, code LIMIT 20",
            _FRIENDS + " SELECT id AS friend, code, created FROM friends"
            f' JOIN Wrote ON "from" = id JOIN Message ON "to" = code WHERE created < {MIDDLE}'
            " ORDER BY created DESC, code LIMIT 20",
        ),
        "complex 11, friends in a city": Question(
            "match { $p: Person { code: $start }  $p knows{1,2} $f  $f livesIn $c"
            "  $c.name = $city }"
            " return { $f.code as code, $f.joined as joined } order { joined, code } limit 10",
            "MATCH (p:Person {code: $start})-[:Knows* SHORTEST 1..2]->(f:Person)"
            "-[:LivesIn]->(c:City {name: $city}) WHERE f.code <> $start"
            " RETURN f.code AS code, f.joined AS joined ORDER BY joined, code LIMIT 10",
            _FRIENDS + ' SELECT code, joined FROM friends JOIN LivesIn ON "from" = id'
            ' JOIN Person ON code = id WHERE "to" = $city ORDER BY joined, code LIMIT 10',
        ),
        "complex 12, friends who reply about a tag": Question(
            "match { $p: Person { code: $start }  $p knows $f  $f wrote $r  $r replies $m"
            "  $m about $t  $t.name = $tag }"
            " return { $f.code as friend, count($r) as replies }"
            " order { replies desc, friend } limit 20",
            "MATCH (p:Person {code: $start})-[:Knows]->(f:Person)-[:Wrote]->(r:Message)"
            "-[:Replies]->(:Message)-[:About]->(:Tag {name: $tag})"
            " RETURN f.code AS friend, count(*) AS replies ORDER BY replies DESC, friend LIMIT 20",
            'SELECT w."from" AS friend, count(*) AS replies FROM Knows k'
            ' JOIN Wrote w ON w."from" = k."to" JOIN Replies r ON r."from" = w."to"'
            ' JOIN About a ON a."from" = r."to" WHERE k."from" = $start AND a."to" = $tag'
            ' GROUP BY w."from" ORDER BY replies DESC, friend LIMIT 20',
        ),
    }
)


def social_reads(scale: float = SMALL, folder: Path | None = None) -> list[dict[str, object]]:
    """Return per question our time beside those of the others, and the geometric means.

    A time is a median; a ratio is taken per round, so that a busy machine slows all sides of it. A
    folder that is given is kept and used again.
    """
    with _workplace(folder) as place:
        make_files(place, scale)
        rounds = [{side: _run(place, side) for side in SIDES} for _ in range(ROUNDS)]
    rows: list[dict[str, object]] = []
    means: dict[str, list[float]] = {side: [] for side in SIDES if side != "omnigraph"}
    for name in QUESTIONS:
        answers = {side: [run[side][name]["answer"] for run in rounds] for side in SIDES}
        if any(found != answers["omnigraph"] for found in answers.values()):
            raise SystemExit(f"{name}: the answers differ: {answers}")
        times = {side: [run[side][name]["median"] for run in rounds] for side in SIDES}
        rows.append(_row(f"{name}, ours", [t * 1000 for t in times["omnigraph"]], "ms", None))
        for side, logs in means.items():
            ratios = [a / b for a, b in zip(times["omnigraph"], times[side], strict=True)]
            rows.append(_row(f"{name} / the same in {side}", ratios, "times", 1.2))
            logs.append(math.log(statistics.median(ratios)))
    for side, logs in means.items():
        mean = math.exp(statistics.mean(logs))
        rows.append(_row(f"geometric mean / {side}", [mean], "times", 0.7))
    return [{**row, "name": f"social, {row['name']}, scale {scale:g}"} for row in rows]


def _row(name: str, numbers: Sequence[float], unit: str, budget: float | None) -> dict[str, object]:
    best, median = round(min(numbers), 3), round(statistics.median(numbers), 3)
    return {"name": name, "best": best, "median": median, "unit": unit, "budget": budget}


@contextmanager
def _workplace(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


# --- the graph ---------------------------------------------------------------------------------


def make_files(folder: Path, scale: float) -> None:
    """Write the Parquet files of the graph, unless they are there."""
    if (folder / "Likes.parquet").exists():
        return
    random = np.random.default_rng(23)
    people, messages = max(200, int(PEOPLE * scale)), int(MESSAGES * scale)
    forums, tags, cities = (max(20, int(n * scale)) for n in (FORUMS, TAGS, CITIES))
    nodes = {
        "Person": {
            "code": _names("p", np.arange(people)),
            "first": _names("First", random.integers(0, 400, people)),
            "last": _names("Last", random.integers(0, 3_000, people)),
            "joined": NEWEST - random.integers(0, 100_000_000, people),
        },
        "City": {
            "name": _names("c", np.arange(cities)),
            "country": _names("Country", np.arange(cities) % 60),
        },
        "Message": {
            "code": _names("m", np.arange(messages)),
            "created": NEWEST - random.integers(0, 100_000_000, messages),
            "length": pa.array(random.integers(1, 2_000, messages), pa.int32()),
        },
        "Forum": {
            "code": _names("f", np.arange(forums)),
            "title": _names("Forum ", np.arange(forums)),
        },
        "Tag": {"name": _names("t", np.arange(tags))},
    }
    replies = random.permutation(np.arange(messages // 3, messages))[: int(messages * 0.6)]
    answered = (replies * random.random(len(replies))).astype(np.int64)
    about = _pairs(messages, tags, messages, random, skew=2.0)
    member = _pairs(forums, people, int(MEMBERSHIPS * scale), random)
    likes = _pairs(people, messages, int(LIKES * scale), random)
    knows = _friendships(people, int(FRIENDSHIPS * scale), random)
    edges = {
        "Knows": (*knows, {"since": NEWEST - knows[0] * knows[1] % 99_999_989}),
        "LivesIn": (np.arange(people), random.integers(0, cities, people), {}),
        "Wrote": (_skewed(people, messages, random, 1.5), np.arange(messages), {}),
        "Replies": (replies, answered, {}),
        "About": (*about, {}),
        "PostedIn": (np.arange(messages), _skewed(forums, messages, random, 2.0), {}),
        "Member": (*member, {"since": NEWEST - member[0] * member[1] % 99_999_989}),
        "Likes": (*likes, {"at": NEWEST - likes[0] * likes[1] % 99_999_989}),
    }
    tables: dict[str, Mapping[str, object]] = dict(nodes)
    for name, (src, dst, more) in edges.items():
        ends = (_names(EDGES[name][i][0].lower(), side) for i, side in enumerate((src, dst)))
        tables[name] = {**dict(zip(("from", "to"), ends, strict=True)), **more}
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def _friendships(
    people: int, count: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return both directions of pairs: half of them far, by popularity, half in the vicinity."""
    src = random.permutation(people)[_skewed(people, count, random, 1.5)]
    near = (src + random.integers(1, 30, count)) % people
    far = random.permutation(people)[_skewed(people, count, random, 2.0)]
    dst = np.where(random.random(count) < 0.5, far, near)
    low, high = np.minimum(src, dst), np.maximum(src, dst)
    keys = random.permutation(np.unique((low * people + high)[low != high]))
    low, high = keys // people, keys % people
    return np.concatenate([low, high]), np.concatenate([high, low])


def _pairs(
    sources: int, ends: int, count: int, random: np.random.Generator, skew: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs, each once."""
    src = random.integers(0, sources, count)
    keys = np.unique(src * ends + _skewed(ends, count, random, skew))
    return keys // ends, keys % ends


def _skewed(most: int, count: int, random: np.random.Generator, power: float) -> np.ndarray:
    """Return numbers of which small ones are far more frequent: a power law with a long tail."""
    return (most * random.random(count) ** power).astype(np.int64)


def _names(prefix: str, numbers: np.ndarray) -> pa.Array:
    text = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 8, "0")
    return pc.binary_join_element_wise(prefix, text, "")


def _parameters(folder: Path) -> list[dict[str, str]]:
    """Return parameters of each time, some of which find nothing."""
    random = np.random.default_rng(11)

    def some(prefix: str, most: int) -> list[str]:
        found: list[str] = _names(prefix, random.integers(0, most, STARTS)).to_pylist()
        return found

    def size(name: str) -> int:
        rows: int = pq.read_metadata(folder / f"{name}.parquet").num_rows
        return rows

    columns = {
        "start": some("p", size("Person")),
        "message": some("m", size("Message") // 3),
        "first": some("First", 400),
        "tag": some("t", max(1, size("Tag") // 20)),
        "city": some("c", size("City")),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# --- the three sides ---------------------------------------------------------------------------

Ask = Callable[[str, Mapping[str, str]], pa.Table]


def _omnigraph(folder: Path) -> dict[str, object]:
    import omnigraph.graph as og  # noqa: PLC0415 - the other sides are measured without

    if not (folder / "graph").exists():
        graph = og.init(folder / "graph", SCHEMA)
        graph.load({t: folder / f"{t}.parquet" for t in (*NODES, *EDGES)}, mode="append")
        graph.optimize()
    graph = og.open(folder / "graph")

    def ask(question: str, parameters: Mapping[str, str]) -> pa.Table:
        declared = ", ".join(f"${name}: String" for name in parameters)
        return graph.query(f"query q({declared}) {{ {question} }}", parameters).to_arrow()

    return _answers(folder, ask, {name: q.ours for name, q in QUESTIONS.items()})


def _ladybug(folder: Path) -> dict[str, object]:
    import ladybug  # noqa: PLC0415 - only this side needs it

    is_new = not (folder / "bug").exists()
    connection = ladybug.Connection(ladybug.Database(str(folder / "bug")))
    if is_new:
        for name, columns in _columns(folder).items():
            ends = f"FROM {EDGES[name][0]} TO {EDGES[name][1]}" if name in EDGES else ""
            declared = [f"{c} {t}" for c, t in columns.items() if c not in ("from", "to")]
            key = [] if ends else [f"PRIMARY KEY({next(iter(columns))})"]
            kind = "REL" if ends else "NODE"
            members = ", ".join([*([ends] if ends else []), *declared, *key])
            connection.execute(f"CREATE {kind} TABLE {name}({members})")
            connection.execute(f"COPY {name} FROM '{folder / name}.parquet'")

    def ask(question: str, parameters: Mapping[str, str]) -> pa.Table:
        return connection.execute(question, dict(parameters)).get_as_arrow()

    return _answers(folder, ask, {name: q.cypher for name, q in QUESTIONS.items()})


def _duckdb(folder: Path) -> dict[str, object]:
    import duckdb  # noqa: PLC0415 - only this side needs it

    is_new = not (folder / "duck").exists()
    connection = duckdb.connect(str(folder / "duck"))
    if is_new:
        for name, columns in _columns(folder).items():
            connection.execute(f"CREATE TABLE {name} AS FROM '{folder / name}.parquet'")
            for column in ("from", "to") if name in EDGES else (next(iter(columns)),):
                connection.execute(f'CREATE INDEX {name}_{column} ON {name} ("{column}")')

    def ask(question: str, parameters: Mapping[str, str]) -> pa.Table:
        return connection.execute(question, dict(parameters)).to_arrow_table()

    return _answers(folder, ask, {name: q.sql for name, q in QUESTIONS.items()})


def _columns(folder: Path) -> dict[str, dict[str, str]]:
    """Return the columns of each type, nodes first, with the type they have in ladybug."""
    types = {pa.string(): "STRING", pa.int64(): "INT64", pa.int32(): "INT32"}
    schemas = {name: pq.read_schema(folder / f"{name}.parquet") for name in (*NODES, *EDGES)}
    return {name: {f.name: types[f.type] for f in schema} for name, schema in schemas.items()}


def _answers(folder: Path, ask: Ask, texts: Mapping[str, str]) -> dict[str, object]:
    """Ask everything once to compare, then each for a while to warm up, then again for time."""
    given = _parameters(folder)
    chosen = {
        name: [{k: v for k, v in p.items() if f"${k}" in text} for p in given]
        for name, text in texts.items()
    }
    answers = {name: [_digest(ask(texts[name], p)) for p in chosen[name]] for name in texts}
    found: dict[str, object] = {}
    for name, text in texts.items():
        _times(ask, text, chosen[name])
        median = statistics.median(_times(ask, text, chosen[name]))
        found[name] = {"median": median, "answer": answers[name]}
        print(f"{name}: {median * 1000:.2f} ms", file=sys.stderr)
    return found


def _times(ask: Ask, text: str, given: Sequence[Mapping[str, str]]) -> list[float]:
    begun, times = time.perf_counter(), []
    while len(times) < 3 * STARTS and time.perf_counter() - begun < PATIENCE:
        before = time.perf_counter()
        ask(text, given[len(times) % len(given)])
        times.append(time.perf_counter() - before)
    return times


def _digest(table: pa.Table) -> list[object]:
    """Return the size of an answer and its first and last rows, sorted."""
    rows = sorted(list(row.values()) for row in table.to_pylist())
    return [len(rows), *rows[:3], *rows[-3:]]


SIDES: Mapping[str, Callable[[Path], object]] = MappingProxyType(
    {"omnigraph": _omnigraph, "ladybug": _ladybug, "DuckDB": _duckdb}
)


def _run(folder: Path, side: str) -> dict[str, dict[str, float]]:
    """Let one side answer in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--side", side, "--folder", str(folder)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Let one side answer, and print what it found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", required=True, choices=SIDES)
    parser.add_argument("--folder", required=True, type=Path)
    given = parser.parse_args()
    print(json.dumps(SIDES[given.side](given.folder)))


if __name__ == "__main__":
    main()

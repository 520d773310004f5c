"""A schema of 60 types and 600 queries of every kind over it, as one large graph would have."""

NODES = 20
EDGES = 40
QUERIES = 600

_BODIES = (
    """match { $a: Node<i> { slug: $slug } }
  return { $a.title, $a.score, $a.made }""",
    """match {
    $a: Node<i>
    $a.score >= -1.5
    ($a.state = "open" or $a.state is null)
  }
  return { $a.slug, $a.title }
  order { $a.score desc, $a.slug }
  limit 20""",
    """match {
    $a: Node<i> { slug: $slug }
    $a edge<i> $b
    not { $b edge<j> $_ }
  }
  return { $b.slug, count($a) as n, max($b.made) as latest }
  order { n desc }""",
    """match {
    $a: Node<i>
    search($a.title, $slug)
    $a.tags contains "x"
  }
  return { $a.title, bm25($a.title, $slug) as score }
  order { score }
  limit 5""",
    """insert Node<i> { slug: $slug, title: $slug, state: "open", made: now() }""",
    """update Node<i> set { title: $slug, state: "done" } where slug = $slug""",
)


def big_schema() -> str:
    """Return the text of the schema: 20 node types and 40 edge types."""
    nodes = [
        f"""node Node{i} @description("kind {i}") {{
  slug: String @key
  title: String @index
  state: enum(open, done, lost)?
  score: F64?
  made: DateTime?
  tags: [String]?
  vector: Vector(64)? @embed(title)
  @range(score, -100..100)
}}"""
        for i in range(NODES)
    ]
    edges = [
        f"edge Edge{i}: Node{i % NODES} -> Node{(i + 1) % NODES} {{ weight: F32?  since: Date? }}"
        for i in range(EDGES)
    ]
    return "\n".join([*nodes, *edges])


def big_queries() -> str:
    """Return the text of 600 valid queries."""
    queries = []
    for number in range(QUERIES):
        i = number % NODES
        body = _BODIES[number % len(_BODIES)]
        body = body.replace("<i>", str(i)).replace("<j>", str((i + 1) % NODES))
        queries.append(f"query q{number}($slug: String) {{\n  {body}\n}}")
    return "\n\n".join(queries)

"""Change the graph on a branch, look at the difference, and merge it."""

from pathlib import Path

import omnigraph as og


def main() -> None:
    """Add a person on a branch and merge it into main."""
    graph = og.open(Path(__file__).parent / "graph")
    with graph.branch("add-fay", create=True) as branch:
        branch.insert("Person", [{"name": "Fay", "born": "1997-01-02", "city": "Oslo"}])
        branch.insert("WorksAt", [{"from": "Fay", "to": "Zeta", "since": "2024-01-01"}])

    for change in graph.diff("main", "add-fay"):
        print(change.op, change.type, change.id)

    graph.merge("add-fay", delete_branch=True)
    people = graph.query("match { $p: Person } return { count($p) as people }")
    print(people.rows)


if __name__ == "__main__":
    main()

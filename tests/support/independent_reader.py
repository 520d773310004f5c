"""Reads a graph by `docs/spec/format.md` alone: with Lance and JSON, without any of omnigraph."""

import json
from pathlib import Path
from typing import Any

import lance

EXTERNAL = 3


class Reader:
    """A graph on disk, read by the words of the format page."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.rows: dict[str, Any] = {}
        self.heads: dict[str | None, Any] = {None: self._lineage("__manifest")}
        names = [r for r in self.rows.values() if r["object_type"] in ("graph_branch", "graph_tag")]
        for facts in (json.loads(row["metadata"]) for row in names):
            for lineage_id in (facts["native"], *facts["origins"]):
                if lineage_id not in self.heads:
                    self.heads[lineage_id] = self._lineage(f"__branches/{lineage_id}")

    def _lineage(self, path: str) -> Any:
        """Keep the rows of a lineage; return its head, the first row of its newest fragment."""
        dataset = lance.dataset(str(self.root / path))
        for row in dataset.to_table(filter="object_type <> 'graph_head'").to_pylist():
            self.rows[row["object_id"]] = row
        newest = dataset.get_fragments()[-1].to_table().to_pylist()[0]
        assert (newest["object_id"], newest["table_version"]) == ("graph_head", dataset.version)
        return json.loads(newest["metadata"])

    def facts(self, object_id: str) -> Any:
        return json.loads(self.rows[object_id]["metadata"])

    def state(self, at: str) -> tuple[str, dict[str, tuple[int, int]]]:
        """Return the schema and the version of every dataset at a branch, tag or commit.

        With a version stands how many rows at its end do not count.
        """
        if at == "main" or f"branch:{at}" in self.rows:
            head = self.heads[None if at == "main" else self.facts(f"branch:{at}")["native"]]
            parts = (text.split(":") for text in head["datasets"])
            return head["schema"], {
                name: (int(physical, 16), int((*rest, "0")[0], 16))
                for name, _, physical, _, *rest in parts
            }
        commit = self.facts(f"tag:{at}")["commit"] if f"tag:{at}" in self.rows else at
        schema, line = self.facts(f"commit:{commit}")["schema"], []
        while commit is not None:
            line.append(commit)
            commit = next(iter(self.facts(f"commit:{commit}")["parents"]), None)
        shown: dict[str, tuple[int, int]] = {}
        for commit in reversed(line):
            for key, row in self.rows.items():
                kind, _, rest = key.partition(":")
                if rest.endswith(f"@{commit}") and kind in ("version", "tombstone"):
                    dataset = rest.partition("@")[0]
                    shown.pop(dataset, None)
                    if kind == "version":
                        excluded = json.loads(row["metadata"]).get("excluded", 0)
                        shown[dataset] = row["table_version"], excluded
        return schema, shown

    def entities(self, at: str) -> dict[str, Any]:
        """Return all entities by `node:T` or `edge:E`, id and property."""
        schema, datasets = self.state(at)
        ir, found = self.facts(f"schema:{schema}")["ir"], {}
        for kind in ("node", "edge"):
            for type_ in ir[f"{kind}s"]:
                name = f"{type_['id']}-{type_['incarnation']}"
                path = self.rows[f"table:{name}"]["location"]
                version, excluded = datasets[name]
                dataset = lance.dataset(str(self.root / path), version=version)
                rows = self._read(dataset, kind, type_["properties"])
                kept = list(rows.items())[: len(rows) - excluded]
                found[f"{kind}:{type_['name']}"] = dict(kept)
        return found

    def _read(self, dataset: Any, kind: str, properties: Any) -> dict[str, Any]:
        ids = {
            f.name: (f.metadata or {}).get(b"omnigraph.stable_property_id") for f in dataset.schema
        }
        columns = {mark.decode(): name for name, mark in ids.items() if mark is not None}
        names = {name: name for name in ("id", "src", "dst")[: 3 if kind == "edge" else 1]}
        names |= {p["name"]: columns[p["id"]] for p in properties}
        options = {"with_row_address": True, "blob_handling": "blobs_descriptions"}
        rows = dataset.scanner(list(names.values()), **options).to_table().to_pylist()
        for column in (names[p["name"]] for p in properties if p["type"]["scalar"] == "Blob"):
            for row in (row for row in rows if row[column] is not None):
                external = row[column]["kind"] == EXTERNAL
                read = [] if external else dataset.read_blobs(column, addresses=[row["_rowaddr"]])
                row[column] = row[column]["blob_uri"] if external else bytes(read[0][1])
        return {row["id"]: {name: row[column] for name, column in names.items()} for row in rows}

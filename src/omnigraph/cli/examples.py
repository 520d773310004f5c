"""Examples of every command, printed at the end of its `--help`.

`tests/cli/test_help.py` parses each line with the parser of its command.
"""

from __future__ import annotations

import click

EXAMPLES = {
    "": (
        "omnigraph init ./my-graph --schema schema.pg",
        "omnigraph load ./my-graph --data data.ndjson --mode merge",
        "omnigraph query --store ./my-graph --query queries.gq",
    ),
    "alias": ("omnigraph alias papers-of Ada",),
    "analyze": ("omnigraph analyze degrees ./my-graph --edges Cites --into Paper.degree",),
    "analyze components": (
        "omnigraph analyze components ./my-graph --edges Cites --into Paper.component",
    ),
    "analyze degrees": (
        "omnigraph analyze degrees ./my-graph --edges Cites --into Paper.citations --direction in",
    ),
    "analyze labels": ("omnigraph analyze labels ./my-graph --edges Cites --into Paper.community",),
    "analyze pagerank": (
        "omnigraph analyze pagerank ./my-graph --edges Cites --into Paper.rank --iterations 30",
    ),
    "blob": ("omnigraph blob get --store ./my-graph node Paper p1 pdf --out p1.pdf",),
    "blob clear": ("omnigraph blob clear --store ./my-graph node Paper p1 pdf",),
    "blob get": (
        "omnigraph blob get --store ./my-graph node Paper p1 pdf --out p1.pdf",
        "omnigraph blob get --store ./my-graph node Paper p1 pdf --offset 0 --length 1024",
    ),
    "blob put": ("omnigraph blob put --store ./my-graph node Paper p1 pdf ./p1.pdf",),
    "blob stat": ("omnigraph blob stat --store ./my-graph node Paper p1 pdf --json",),
    "branch": (
        "omnigraph branch create --store ./my-graph review",
        "omnigraph branch merge --store ./my-graph review --into main",
    ),
    "branch create": (
        "omnigraph branch create --store ./my-graph review",
        "omnigraph branch create --store ./my-graph hotfix --from v1",
    ),
    "branch delete": ("omnigraph branch delete --store ./my-graph review",),
    "branch list": ("omnigraph branch list --store ./my-graph",),
    "branch merge": ("omnigraph branch merge --store ./my-graph review --into main",),
    "changes": ("omnigraph changes poll --store ./my-graph --start beginning",),
    "changes baseline": ("omnigraph changes baseline --store ./my-graph --out baseline.ndjson",),
    "changes commit": (
        "omnigraph changes commit --store ./my-graph 01KXAMPLE00000000000000000 --op update",
    ),
    "changes poll": (
        "omnigraph changes poll --store ./my-graph --start beginning --json",
        "omnigraph changes poll --store ./my-graph --cursor CURSOR --type Paper",
    ),
    "cherry-pick": (
        "omnigraph cherry-pick --store ./my-graph 01KXAMPLE00000000000000000 --branch release",
    ),
    "cleanup": (
        "omnigraph cleanup ./my-graph --keep 10 --older-than 7d",
        "omnigraph cleanup ./my-graph --keep 10 --older-than 7d --confirm",
    ),
    "cluster": (
        "omnigraph cluster plan --config ./cluster",
        "omnigraph cluster apply --config ./cluster",
    ),
    "cluster apply": ("omnigraph cluster apply --config ./cluster --as ada",),
    "cluster approve": ("omnigraph cluster approve graph.papers --as ada --config ./cluster",),
    "cluster force-unlock": ("omnigraph cluster force-unlock LOCK_ID --config ./cluster",),
    "cluster import": ("omnigraph cluster import --config ./cluster",),
    "cluster plan": ("omnigraph cluster plan --config ./cluster --json",),
    "cluster refresh": ("omnigraph cluster refresh --config ./cluster",),
    "cluster status": ("omnigraph cluster status --config ./cluster",),
    "cluster validate": ("omnigraph cluster validate --config ./cluster",),
    "commit": ("omnigraph commit log ./my-graph --draw",),
    "commit changes": (
        "omnigraph commit changes --store ./my-graph 01KXAMPLE00000000000000000 --json",
    ),
    "commit list": ("omnigraph commit list ./my-graph --branch review --limit 20",),
    "commit log": ("omnigraph commit log ./my-graph --draw",),
    "commit show": ("omnigraph commit show --store ./my-graph 01KXAMPLE00000000000000000",),
    "completion": ("omnigraph completion bash > ~/.local/share/omnigraph.bash",),
    "diff": (
        "omnigraph diff ./my-graph main review",
        "omnigraph diff ./my-graph v1 main --type Paper --stat",
    ),
    "embed": (
        "omnigraph embed ./my-graph Article",
        "omnigraph embed --input docs.ndjson --output embedded.ndjson --spec spec.json",
    ),
    "explain": ("omnigraph explain --store ./my-graph --query queries.gq papers --analyze",),
    "export": (
        "omnigraph export ./my-graph > data.ndjson",
        "omnigraph export ./my-graph --parquet ./tables --type Paper",
        "omnigraph export ./my-graph --archive my-graph.gz --history",
    ),
    "fmt": ("omnigraph fmt schema.pg queries", "omnigraph fmt --check ."),
    "graphs": ("omnigraph graphs list --server https://graphs.example.com",),
    "graphs list": ("omnigraph graphs list --server https://graphs.example.com",),
    "import": ("omnigraph import my-graph.gz ./restored-graph",),
    "index": ("omnigraph index build ./my-graph",),
    "index build": ("omnigraph index build ./my-graph --branch main",),
    "index status": ("omnigraph index status ./my-graph",),
    "ingest": ("omnigraph ingest ./my-graph --data data.json",),
    "init": (
        "omnigraph init ./my-graph --schema schema.pg",
        "omnigraph init s3://bucket/my-graph --schema schema.pg",
    ),
    "lint": (
        "omnigraph lint --schema schema.pg --query queries.gq",
        "omnigraph lint --store ./my-graph --query queries",
    ),
    "load": (
        "omnigraph load ./my-graph --data data.ndjson --mode merge",
        "omnigraph load ./my-graph --node Paper=papers.csv --edge Cites=cites.csv --mode append",
    ),
    "login": ("omnigraph login production < token.txt",),
    "logout": ("omnigraph logout production",),
    "mcp": (
        "omnigraph mcp --store ./my-graph --as agent",
        "omnigraph mcp --graph papers=./my-graph --http --bind 127.0.0.1:8080",
    ),
    "merge": (
        "omnigraph merge --store ./my-graph review --into main",
        "omnigraph merge --store ./my-graph review --dry-run --json",
    ),
    "mutate": (
        'omnigraph mutate --store ./my-graph --query queries.gq add --params \'{"id": "p1"}\'',
    ),
    "optimize": ("omnigraph optimize ./my-graph",),
    "pipeline": (
        "omnigraph pipeline validate papers.yaml --store ./my-graph",
        "omnigraph pipeline run papers.yaml --store ./my-graph",
        "omnigraph pipeline status --store ./my-graph",
    ),
    "pipeline abort": ("omnigraph pipeline abort --store ./my-graph RUN",),
    "pipeline list": ("omnigraph pipeline list --cluster ./cluster",),
    "pipeline plan": ("omnigraph pipeline plan papers.yaml --store ./my-graph --count",),
    "pipeline report": ("omnigraph pipeline report --store ./my-graph --html report.html",),
    "pipeline resume": ("omnigraph pipeline resume --store ./my-graph RUN",),
    "pipeline run": (
        "omnigraph pipeline run papers.yaml --store ./my-graph --set day=2026-01-31",
        "omnigraph pipeline run papers.yaml --store ./my-graph --force",
        "omnigraph pipeline run papers --cluster ./cluster --html report.html",
    ),
    "pipeline status": ("omnigraph pipeline status --store ./my-graph",),
    "pipeline validate": (
        "omnigraph pipeline validate papers.yaml --store ./my-graph",
        "omnigraph pipeline validate papers.yaml --schema schema.pg",
    ),
    "pipeline warmup": ("omnigraph pipeline warmup",),
    "policy": ("omnigraph policy validate --policy policy.yaml",),
    "policy explain": (
        "omnigraph policy explain --policy policy.yaml --actor ada --action change --branch main",
    ),
    "policy test": ("omnigraph policy test --policy policy.yaml --tests cases.yaml",),
    "policy validate": ("omnigraph policy validate --policy policy.yaml",),
    "profile": ("omnigraph profile list",),
    "profile list": ("omnigraph profile list --json",),
    "profile show": ("omnigraph profile show production",),
    "queries": ("omnigraph queries list --cluster ./cluster",),
    "queries list": ("omnigraph queries list --cluster ./cluster --graph papers",),
    "queries validate": ("omnigraph queries validate --cluster ./cluster",),
    "query": (
        "omnigraph query --store ./my-graph --query queries.gq papers --params '{\"year\": 2024}'",
        "omnigraph query --store ./my-graph -e 'query q() { match { $p: Paper } return { $p } }'",
        "omnigraph query papers --server production --graph papers --format csv",
    ),
    "recover": (
        "omnigraph recover ./my-graph --stale-after 15m",
        "omnigraph recover ./my-graph --audit",
    ),
    "repair": ("omnigraph repair ./my-graph", "omnigraph repair ./my-graph --confirm"),
    "revert": (
        "omnigraph revert --store ./my-graph 01KXAMPLE00000000000000000 -m 'Undo the load'",
    ),
    "schema": (
        "omnigraph schema plan ./my-graph --schema new.pg",
        "omnigraph schema apply ./my-graph new.pg",
    ),
    "schema apply": (
        "omnigraph schema apply ./my-graph new.pg --dry-run",
        "omnigraph schema apply ./my-graph new.pg --message 'Add Paper.year'",
    ),
    "schema diff": (
        "omnigraph schema diff old.pg new.pg",
        "omnigraph schema diff --store ./my-graph v1 main",
    ),
    "schema get": ("omnigraph schema get ./my-graph",),
    "schema plan": (
        "omnigraph schema plan ./my-graph --schema new.pg",
        "omnigraph schema plan --from old.pg --to new.pg",
    ),
    "schema show": ("omnigraph schema show schema.pg", "omnigraph schema show ./my-graph --at v1"),
    "serve": (
        "omnigraph serve --graph papers=./my-graph --bind 127.0.0.1:8080 --unauthenticated",
        "omnigraph serve --cluster ./cluster --workers 4",
    ),
    "snapshot": ("omnigraph snapshot ./my-graph --branch review",),
    "tag": ("omnigraph tag create --store ./my-graph v1",),
    "tag create": ("omnigraph tag create --store ./my-graph v1 --at main",),
    "tag delete": ("omnigraph tag delete --store ./my-graph v1",),
    "tag list": ("omnigraph tag list --store ./my-graph",),
    "verify": ("omnigraph verify ./my-graph --deep",),
    "version": ("omnigraph version --json",),
}
"""Command lines by the words of their command; the first entry is the program itself."""


def add_examples(command: click.Command, words: str) -> click.Command:
    """Append examples to the help of a command and of its subcommands."""
    lines = EXAMPLES.get(words, ())
    if lines and command.epilog is None:
        command.epilog = "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
    if words and isinstance(command, click.Group):
        for name, subcommand in command.commands.items():
            add_examples(subcommand, f"{words} {name}")
    return command

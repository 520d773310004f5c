"""Examples of every command, printed at the end of its `--help`.

`tests/cli/test_help.py` parses each line with the parser of its command.
"""

from __future__ import annotations

import click

_TABLE = """\
 | init ./my-graph --schema schema.pg
 | load ./my-graph --data data.ndjson --mode merge
 | query --store ./my-graph --query queries.gq
alias | papers-of Ada
analyze | pagerank ./my-graph --edges Cites
analyze | degrees ./my-graph --edges Cites --into Paper.degree
analyze components | ./my-graph --edges Cites --into Paper.component
analyze degrees | ./my-graph --edges Cites --into Paper.citations --direction in
analyze kcore | ./my-graph --edges Cites --format csv
analyze labels | ./my-graph --edges Cites --into Paper.community
analyze pagerank | ./my-graph --edges Cites --into Paper.rank --iterations 30
analyze shortest-paths | ./my-graph --edges Road --source Oslo --weight km
analyze triangles | ./my-graph --edges Cites --json
blame | ./my-graph Paper p1
blame | ./my-graph Paper p1 --at v1 --json
blob | get --store ./my-graph node Paper p1 pdf --out p1.pdf
blob clear | --store ./my-graph node Paper p1 pdf
blob get | --store ./my-graph node Paper p1 pdf --out p1.pdf
blob get | --store ./my-graph node Paper p1 pdf --offset 0 --length 1024
blob put | --store ./my-graph node Paper p1 pdf ./p1.pdf
blob stat | --store ./my-graph node Paper p1 pdf --json
branch | create --store ./my-graph review
branch | merge --store ./my-graph review --into main
branch create | --store ./my-graph review
branch create | --store ./my-graph hotfix --from v1
branch delete | --store ./my-graph review
branch list | --store ./my-graph
branch merge | --store ./my-graph review --into main
changes | poll --store ./my-graph --start beginning
changes baseline | --store ./my-graph --out baseline.ndjson
changes commit | --store ./my-graph 01KXAMPLE00000000000000000 --op update
changes poll | --store ./my-graph --start beginning --json
changes poll | --store ./my-graph --cursor CURSOR --type Paper
check | ./my-graph --checks queries
check | ./my-graph --checks queries --at review --junit checks.xml
cherry-pick | --store ./my-graph 01KXAMPLE00000000000000000 --branch release
cleanup | ./my-graph --keep 10 --older-than 7d
cleanup | ./my-graph --keep 10 --older-than 7d --confirm
cluster | plan --config ./cluster
cluster | apply --config ./cluster
cluster apply | --config ./cluster --as ada
cluster approve | graph.papers --as ada --config ./cluster
cluster force-unlock | LOCK_ID --config ./cluster
cluster import | --config ./cluster
cluster plan | --config ./cluster --json
cluster refresh | --config ./cluster
cluster status | --config ./cluster
cluster validate | --config ./cluster
commit | log ./my-graph --draw
commit changes | --store ./my-graph 01KXAMPLE00000000000000000 --json
commit list | ./my-graph --branch review --limit 20
commit log | ./my-graph --draw
commit show | --store ./my-graph 01KXAMPLE00000000000000000
completion | bash > ~/.local/share/omnigraph.bash
diff | ./my-graph main review
diff | ./my-graph v1 main --type Paper --stat
embed | ./my-graph Article
embed | --input docs.ndjson --output embedded.ndjson --spec spec.json
explain | --store ./my-graph --query queries.gq papers --analyze
export | ./my-graph > data.ndjson
export | ./my-graph --parquet ./tables --type Paper
export | ./my-graph --archive my-graph.gz --history
fmt | schema.pg queries
fmt | --check .
graphs | list --server https://graphs.example.com
graphs list | --server https://graphs.example.com
history | ./my-graph Paper p1
history | ./my-graph edge:Cites c1 --at review --limit 20 --json
import | my-graph.gz ./restored-graph
index | build ./my-graph
index build | ./my-graph --branch main
index status | ./my-graph
ingest | ./my-graph --data data.json
init | ./my-graph --schema schema.pg
init | s3://bucket/my-graph --schema schema.pg
init | ./my-graph --from people.csv --from knows.parquet --yes
lint | --schema schema.pg --query queries.gq
lint | --store ./my-graph --query queries
load | ./my-graph --data data.ndjson --mode merge
load | ./my-graph --node Paper=papers.csv --edge Cites=cites.csv --mode append
login | production < token.txt
logout | production
maintain | ./my-graph
maintain | ./my-graph --watch --interval 30 --cpu-share 0.5
mcp | --store ./my-graph --as agent
mcp | --graph papers=./my-graph --http --bind 127.0.0.1:8080
merge | --store ./my-graph review --into main
merge | --store ./my-graph review --dry-run --json
mutate | --store ./my-graph --query queries.gq add --params '{"id": "p1"}'
optimize | ./my-graph
pipeline | validate papers.yaml --store ./my-graph
pipeline | run papers.yaml --store ./my-graph
pipeline | status --store ./my-graph
pipeline abort | --store ./my-graph RUN
pipeline init | --from people.parquet --from knows.csv
pipeline init | --from Author=people.csv --from 'papers/*.parquet' --out papers
pipeline list | --cluster ./cluster
pipeline ls | papers.yaml --store ./my-graph
pipeline ls | papers.yaml --schema schema.pg --select Person+ --exclude source:drafts --json
pipeline plan | papers.yaml --store ./my-graph --count
pipeline plan | papers.yaml --target prod --select Person+
pipeline report | --store ./my-graph --html report.html
pipeline resume | --store ./my-graph RUN
pipeline run | papers.yaml --store ./my-graph --set day=2026-01-31
pipeline run | papers.yaml --store ./my-graph --force
pipeline run | papers.yaml --target prod --exclude source:drafts
pipeline run | papers --cluster ./cluster --html report.html
pipeline run | papers.yaml --store ./my-graph --json --log-format json
pipeline status | --store ./my-graph
pipeline validate | papers.yaml --store ./my-graph
pipeline validate | papers.yaml --schema schema.pg
pipeline warmup |
policy | validate --policy policy.yaml
policy explain | --policy policy.yaml --actor ada --action change --branch main
policy test | --policy policy.yaml --tests cases.yaml
policy validate | --policy policy.yaml
profile | list
profile list | --json
profile show | production
proposal | create --store ./my-graph review --title 'Harbours of Norway'
proposal | merge --store ./my-graph 1
proposal check | --store ./my-graph 1 --checks queries
proposal close | --store ./my-graph 1 --comment 'Done otherwise'
proposal comment | --store ./my-graph 1 --on Paper --on p1 --on title -b 'A typing error?'
proposal comment | --store ./my-graph 1 --reply-to 2 -b 'Corrected'
proposal create | --store ./my-graph review --title 'Harbours of Norway' --reviewer ada
proposal diff | --store ./my-graph 1 --type Paper --stat
proposal edit | --store ./my-graph 1 --title 'Harbours of Norway and Sweden'
proposal events | --store ./my-graph --after 120 --json
proposal list | --store ./my-graph --state all --reviewer ada
proposal merge | --store ./my-graph 1 --resolve source --delete-branch
proposal reopen | --store ./my-graph 1
proposal review | --store ./my-graph 1 approve --as ada
proposal show | --store ./my-graph 1 --json
protection | set --store ./my-graph --branch main --approvals 1
protection clear | --store ./my-graph
protection set | --store ./my-graph --branch main --branch 'release/*' --from reviewers
protection set | --store ./my-graph --rules rules.json
protection show | --store ./my-graph --json
queries | list --cluster ./cluster
queries list | --cluster ./cluster --graph papers
queries validate | --cluster ./cluster
query | --store ./my-graph --query queries.gq papers --params '{"year": 2024}'
query | ./my-graph -e 'match { $p: Paper } return { $p.title }'
query | papers --server production --graph papers --format csv
quickstart | ./my-project
recover | ./my-graph --stale-after 15m
recover | ./my-graph --audit
repair | ./my-graph
repair | ./my-graph --confirm
repair | ./my-graph --to-last-good
repair | ./my-graph --to-last-good --confirm
retention | set ./my-graph --keep 1000 --older-than 30d
retention set | ./my-graph --keep 1000 --older-than 30d
retention show | ./my-graph --json
retention unset | ./my-graph
revert | --store ./my-graph 01KXAMPLE00000000000000000 -m 'Undo the load'
running | list --server http://127.0.0.1:8080 --graph papers
running cancel | 5f0c1a7be2d94c38 --server http://127.0.0.1:8080 --graph papers
running list | --server http://127.0.0.1:8080 --graph papers --json
schema | plan ./my-graph --schema new.pg
schema | apply ./my-graph new.pg
schema apply | ./my-graph new.pg --dry-run
schema apply | ./my-graph new.pg --message 'Add Paper.year'
schema diff | old.pg new.pg
schema diff | --store ./my-graph v1 main
schema get | ./my-graph
schema plan | ./my-graph --schema new.pg
schema plan | --from old.pg --to new.pg
schema show | schema.pg
schema show | ./my-graph --at v1
serve | --graph papers=./my-graph --bind 127.0.0.1:8080 --unauthenticated
serve | --cluster ./cluster --workers 4
serve | --graph papers=./my-graph --no-maintenance
shell | ./my-graph
shell | ./my-graph --branch review --read-only < queries.txt
snapshot | ./my-graph --branch review
status | ./my-graph
status | ./my-graph --json
studio | ./my-graph
studio | ./my-graph --no-open --as ada
tag | create --store ./my-graph v1
tag create | --store ./my-graph v1 --at main
tag delete | --store ./my-graph v1
tag list | --store ./my-graph
verify | ./my-graph --deep
version | --json
"""


def _parse_table(table: str) -> dict[str, tuple[str, ...]]:
    """Read lines of a command and its arguments, separated by `|`."""
    examples: dict[str, tuple[str, ...]] = {}
    for line in table.splitlines():
        command, _, arguments = line.partition("|")
        words = f"omnigraph {command}{arguments}".split()
        examples[command.strip()] = (*examples.get(command.strip(), ()), " ".join(words))
    return examples


EXAMPLES = _parse_table(_TABLE)
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

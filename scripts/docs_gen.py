"""Rewrite the generated tables of the docs from the registries.

A block starts with `<!-- generated:NAME -->` and ends with `<!-- /generated -->`. With `--check`
nothing is written, and the exit code is 1 if a page does not match the registries.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import get_args

import click
from msgspec import structs

from omnigraph.catalog.migration_steps import WIRE_NAMES as WIRE_NAMES
from omnigraph.catalog.migration_steps import MigrationStep
from omnigraph.cli.app import COMMANDS, DEPRECATED_COMMANDS, cli
from omnigraph.cli.exit_codes import EXIT_CODES
from omnigraph.cli.shell.session import COMMANDS as SHELL_COMMANDS
from omnigraph.cli.summaries import describe_commands
from omnigraph.error_codes import ERROR_CODES, STATUS_BY_CATEGORY, ErrorCodeRow
from omnigraph.lang import Code
from omnigraph.lang.base_parser import MAX_NESTING
from omnigraph.lang.diagnostics import MAX_DIAGNOSTICS, MAX_SOURCE_BYTES
from omnigraph.pipeline.config.fields import SECTIONS
from omnigraph.pipeline.config.json_schema import json_schema
from omnigraph.plan import FUNCTIONS, FunctionKind
from omnigraph.plan.interfaces import MAX_INTERFACE_CHOICES
from omnigraph.plan.result_types import ResultRule
from omnigraph.plan.type_checker import MAX_COMPUTED_SIZE, MAX_MATCH_SIZE, MAX_RESULT_SIZE
from omnigraph.service.operations import OPERATIONS, AnyOperation
from omnigraph.types import MAX_VECTOR_DIMENSION, SCALARS, Scalar

ROOT = Path(__file__).resolve().parent.parent
EDITORS = Path("docs/spec/pipeline.schema.json")
"""The JSON Schema of pipeline files, for editors."""
COMMAND_TABLE = Path("src/omnigraph/cli/command_table.py")
"""What help lists and shells complete."""

_BLOCK = re.compile(r"(<!-- generated:([a-z_]+) -->\n)(.*?)(<!-- /generated -->)", re.DOTALL)
_FAMILIES = {
    "S": "Schemas",
    "Q": "Query text",
    "T": "Query types",
    "D": "Mutations",
    "L": "Lint",
    "P": "Parameter values",
    "Y": "Pipeline files",
    "OG-": "Refused schema changes",
}
_PLACES = {
    FunctionKind.CONSTANT: "any value",
    FunctionKind.SCALAR: "`match`, `return`, `order`",
    FunctionKind.AGGREGATE: "`return`, `order`",
    FunctionKind.PREDICATE: "`match`, `return`",
    FunctionKind.RANK: "`order`, `return`",
    FunctionKind.PATH: "`return`, `order`",
}


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [headers, ["---"] * len(headers), *rows]
    cells = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def types() -> str:
    """Return the table of scalar types."""
    rows = []
    for spec in SCALARS.values():
        name = f"{spec.scalar}(n)" if spec.scalar is Scalar.VECTOR else str(spec.scalar)
        about = f"{spec.about}, {_powers(*spec.bounds)}" if spec.bounds else spec.about
        marks = ["yes" if yes else "no" for yes in (spec.orderable, spec.key_text is not None)]
        rows.append([f"`{name}`", about, *marks, f"`{spec.arrow}`", f"`{spec.wire}`"])
    return table(["type", "values", "ordered", "in a key", "Arrow type", "kind"], rows)


def _powers(low: int, high: int) -> str:
    bits = high.bit_length()
    return f"{f'-2^{bits}' if low else '0'} to 2^{bits} - 1"


def functions() -> str:
    """Return the table of query functions."""
    rows = []
    for spec in FUNCTIONS.values():
        arguments = "; ".join(f"`{a.name}`: {a.kind}" for a in spec.arguments) or "none"
        result = f"`{spec.result}`" if spec.result else "the type of `value`, nullable"
        if isinstance(spec.result, ResultRule):
            result = spec.result.about
        rows.append([f"`{spec.signature}`", spec.about, arguments, result, _PLACES[spec.kind]])
    return table(["call", "meaning", "arguments", "result", "stands in"], rows)


def diagnostics() -> str:
    """Return a table of codes for each family."""
    return "\n".join(f"### {title}\n\n{_family(prefix)}" for prefix, title in _FAMILIES.items())


def _family(prefix: str) -> str:
    codes = [code for code in Code if _prefix(code) == prefix]
    rows = [[f"`{code}`", str(code.severity), f"`{code.slug}`", code.about] for code in codes]
    return table(["code", "severity", "name", "meaning"], rows)


def _prefix(code: Code) -> str:
    return next(p for p in sorted(_FAMILIES, key=len, reverse=True) if code.startswith(p))


def steps() -> str:
    """Return the table of migration steps."""
    rows = []
    for step in get_args(MigrationStep):
        names = (f"`{WIRE_NAMES.get(field.name, field.name)}`" for field in fields(step))
        rows.append([f"`{step.kind}`", step.__doc__.splitlines()[0], ", ".join(names)])
    return table(["kind", "meaning", "further JSON members"], rows)


def limits() -> str:
    """Return the table of limits of both languages."""
    rows = {
        "bytes of one file": MAX_SOURCE_BYTES,
        "nesting of blocks, groups, calls and lists in a query": MAX_NESTING,
        "bindings, inline matches, traversals and conditions of a query": MAX_MATCH_SIZE,
        "columns and order keys of a query": MAX_RESULT_SIZE,
        "operators, arguments and branches of the computed values of a query": MAX_COMPUTED_SIZE,
        "choices of node types for the interfaces of a query": MAX_INTERFACE_CHOICES,
        "diagnostics listed for one file": MAX_DIAGNOSTICS,
        "dimension of a vector": MAX_VECTOR_DIMENSION,
    }
    return table(["limit", "value"], [[what, f"{value:,}"] for what, value in rows.items()])


_TITLES = {
    "pipeline": "At the top",
    "source": "A source, below `sources`",
    "incremental": "`incremental` of a source",
    "node": "A node type, below `nodes`",
    "edge": "An edge type, below `edges`, also has",
    "dedupe": "`dedupe`",
    "branch": "`branch`",
    "publish": "`publish`",
    "check": "A check, below `checks`",
    "target": "A target, below `targets`",
    "spark": "`spark`",
    "openlineage": "`openlineage`",
}


def pipeline() -> str:
    """Return a table of the fields of a pipeline file for each section."""
    parts = []
    for name, title in _TITLES.items():
        rows = []
        for field in SECTIONS[name]:
            if name == "edge" and field in SECTIONS["node"]:
                continue
            words = [f"`{choice}`" for choice in field.choices]
            value = " or ".join(words) if words else str(field.kind)
            without = "**required**" if field.required else field.default
            example = f"`{field.example}`" if field.example else ""
            rows.append([f"`{field.name}`", value, field.about, without, example])
        heads = ["field", "value", "meaning", "without it", "example"]
        parts.append(f"### {title}\n\n{table(heads, rows)}")
    return "\n".join(parts)


def exit_codes() -> str:
    """Return a table of the exit codes of pipeline runs."""
    rows = [[str(int(code)), *texts] for code, texts in EXIT_CODES.items()]
    return table(["exit code", "cause", "next step"], rows)


def shell_commands() -> str:
    """Return the table of the dot commands of the shell."""
    rows = [
        [f"`{f'{name} {command.usage}'.strip()}`", command.about]
        for name, command in SHELL_COMMANDS.items()
    ]
    return table(["command", "meaning"], rows)


def operations(table_: Sequence[AnyOperation] = OPERATIONS) -> str:
    """Return a table of all operations, and a section for each."""
    rows = [
        [
            f"[`{operation.name}`](#{operation.name.lower()})",
            operation.summary,
            _route(operation),
            ", ".join(f"`{tool.name}`" for tool in operation.tools),
            ", ".join(f"`{action}`" for action in operation.access.actions),
        ]
        for operation in table_
    ]
    overview = table(["operation", "purpose", "HTTP", "MCP tools", "policy actions"], rows)
    return "\n".join([overview, *map(_operation, table_)])


def _operation(operation: AnyOperation) -> str:
    """Return the section of one operation."""
    note = f" {operation.access.note}" if operation.access.note else ""
    actions = ", ".join(f"`{action}`" for action in operation.access.actions)
    facts = [f"- HTTP: {_route(operation)}"] if operation.path else []
    facts.append(f"- Permission: {actions}{note}" if actions else "- Permission: every caller")
    if operation.successor is not None:
        facts.append(f"- Deprecated: use `{operation.successor}`")
    if operation.tools:
        facts.append("- MCP: " + ", ".join(f"`{tool.name}`" for tool in operation.tools))
    if isinstance(operation.answer, str):
        facts.append(f"- Answer: `{operation.answer}`")
    elif isinstance(operation.answer, type):
        facts.append(f"- Answer: `{operation.answer.__name__}`")
    members = [
        [f"`{parameter.name}`", str(parameter.location), "yes" if parameter.required else "no"]
        for parameter in operation.parameters
    ]
    if operation.body is not None and operation.body.type is not bytes:
        members += [
            [f"`{field.encode_name}`", "body", "yes" if field.required else "no"]
            for field in structs.fields(operation.body.type)
        ]
    parts = [f"## {operation.name}", operation.description, "\n".join(facts)]
    if members:
        parts.append(table(["member", "in", "required"], members).rstrip())
    if operation.example:
        example = json.dumps(dict(operation.example), indent=2, ensure_ascii=False)
        parts.append(f"```json\n{example}\n```")
    return "\n\n".join(parts) + "\n"


def _route(operation: AnyOperation) -> str:
    return f"`{operation.method} {operation.path}`" if operation.path else ""


def errors() -> str:
    """Return a table of error codes for each group."""
    groups: dict[str, list[ErrorCodeRow]] = {}
    for row in ERROR_CODES.values():
        groups.setdefault(row.group, []).append(row)
    heads = ["code", "category", "status", "meaning"]
    parts = []
    for title, codes in groups.items():
        rows = []
        for row in codes:
            categories = ", ".join(f"`{category}`" for category in row.categories)
            statuses = ", ".join(str(row.status(category)) for category in row.categories)
            rows.append([f"`{row.code}`", categories, statuses, row.about])
        parts.append(f"### {title}\n\n{table(heads, rows)}")
    return "\n".join(parts)


def categories() -> str:
    """Return the table of error categories."""
    rows = [[f"`{category}`", str(status)] for category, status in STATUS_BY_CATEGORY.items()]
    return table(["category", "status"], rows)


BLOCKS: dict[str, Callable[[], str]] = {
    block.__name__: block
    for block in (
        types,
        functions,
        diagnostics,
        steps,
        limits,
        pipeline,
        exit_codes,
        errors,
        categories,
        operations,
        shell_commands,
    )
}


def generate(text: str) -> str:
    """Return the text of a page with every generated block rewritten."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{BLOCKS[block[2]]()}\n{block[4]}", text)


def stale_pages(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Yield each page that is not current, with the text it should have."""
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        text = page.read_text(encoding="utf-8")
        wanted = generate(text)
        if wanted != text:
            yield page, wanted
    editors = root / EDITORS
    wanted = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    if editors.exists() and editors.read_text(encoding="utf-8") != wanted:
        yield editors, wanted
    commands = root / COMMAND_TABLE
    wanted = command_table()
    if commands.exists() and commands.read_text(encoding="utf-8") != wanted:
        yield commands, wanted


def command_tree() -> dict[str, click.Command]:
    """Return every command by its words, without running any."""
    context = click.Context(cli, info_name="omnigraph")
    commands: dict[str, click.Command] = {}
    names = (*COMMANDS, *DEPRECATED_COMMANDS)
    pending = [(name, cli.get_command(context, name)) for name in names]
    for words, command in pending:
        assert command is not None, f"{words} is not a command"
        commands[words] = command
        if isinstance(command, click.Group):
            pending += [(f"{words} {name}", below) for name, below in command.commands.items()]
    return commands


def command_table() -> str:
    """Return the module that describes the commands."""
    about = "The commands, with their parameters and help, written by `scripts/docs_gen.py`."
    text = describe_commands(command_tree())
    return f'''"""{about}"""\n\n# ruff: noqa: E501\nCOMMAND_TABLE = """\\\n{text}"""\n'''


def main(root: Path = ROOT) -> int:
    """Rewrite or check the pages."""
    check = "--check" in sys.argv[1:]
    stale = list(stale_pages(root))
    for page, text in stale:
        print(f"{'stale: run make docs-gen:' if check else 'rewrote'} {page.relative_to(root)}")
        if not check:
            page.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

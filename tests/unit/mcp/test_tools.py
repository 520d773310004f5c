"""The table of tools: names are unique, and each stands on the page about agents."""

from pathlib import Path

from omnigraph.mcp.tools import operation_tools

TOOLS = list(operation_tools())
PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "mcp.md"


def test_names_are_unique_and_documented():
    names = [tool.name for tool in TOOLS]
    assert len(set(names)) == len(names)
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}`" not in page] == []


def test_whatever_destroys_also_writes():
    assert [tool.name for tool in TOOLS if tool.tool.destroys and not tool.operation.writes] == []

"""`omnigraph schema show` and `omnigraph schema plan`, driven from outside."""

import json

import pytest

from tests.support.program import HARBOUR, omnigraph, omnigraph_on_terminal

OLD = HARBOUR / "schema.pg"
NEW = HARBOUR / "schema-next.pg"


def plan_of(tmp_path, old, new, *arguments):
    (tmp_path / "old.pg").write_text(old)
    (tmp_path / "new.pg").write_text(new)
    return omnigraph(
        "schema", "plan", "--from", "old.pg", "--to", "new.pg", *arguments, cwd=tmp_path
    )


def test_plan_lists_steps_for_people():
    ran = omnigraph("schema", "plan", "--from", OLD, "--to", NEW)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"schema plan for {OLD} to {NEW}\n"
        "supported: yes\n"
        "- add constraint node Port @index(opened)\n"
        "- rename property node Port.city -> town\n"
        "- rename type node Ship -> Vessel\n"
        "- extend enum node Vessel.kind: pilot\n"
        "- add property node Vessel.tonnage: I32?\n"
        "- drop type node Note (soft)\n"
        "- drop type edge About (soft)\n"
    )


def test_plan_json_has_the_wire_steps(tmp_path):
    ran = plan_of(tmp_path, "node A { x: I32 }", "node A { x: I32 y: I32 z: I32? }", "--json")
    assert ran.code == 0
    facts = json.loads(ran.out)
    assert {name: facts[name] for name in ("from", "to", "supported", "step_count")} == {
        "from": "old.pg",
        "to": "new.pg",
        "supported": False,
        "step_count": 2,
    }
    refused, added = facts["steps"]
    assert refused["kind"] == "unsupported_change"
    assert (refused["entity"], refused["code"]) == ("node:A.y", "OG-MF-103")
    assert added == {
        "kind": "add_property",
        "type_kind": "node",
        "type_name": "A",
        "property_name": "z",
        "property_type": {
            "scalar": "I32",
            "nullable": True,
            "list": False,
            "enum_values": None,
        },
    }


def test_equal_schemas_have_no_changes(tmp_path):
    ran = plan_of(tmp_path, "node A { x: enum(a, b) }", "node A { x: enum(b, a) } // same")
    assert ran.out.splitlines()[1:] == ["supported: yes", "no schema changes"]


def test_drops_are_soft_unless_data_loss_is_allowed(tmp_path):
    soft = json.loads(plan_of(tmp_path, "node A {} node B {}", "node A {}", "--json").out)
    hard = json.loads(
        plan_of(tmp_path, "node A {} node B {}", "node A {}", "--json", "--allow-data-loss").out
    )
    assert [step["mode"] for step in soft["steps"]] == ["soft"]
    assert [step["mode"] for step in hard["steps"]] == ["hard"]


def test_an_impossible_rename_is_refused_with_its_place(tmp_path):
    ran = plan_of(tmp_path, "node A {}", 'node B @rename_from("C") {}')
    assert (ran.code, ran.out) == (1, "")
    assert "error[S301]" in ran.err
    assert "new.pg:1:6" in ran.err


def test_a_needless_rename_hint_is_only_told(tmp_path):
    ran = plan_of(tmp_path, "node A {}", 'node A @rename_from("Z") {}')
    assert ran.code == 0
    assert "info[S391]" in ran.err
    assert ran.out.endswith("no schema changes\n")


def test_show_prints_every_type(tmp_path):
    (tmp_path / "s.pg").write_text(
        "interface Named { name: String @index }\nnode A implements Named { id_no: U64 @key }\n"
        "edge Knows: A -> A @card(0..3) { since: Date? }\nedge Likes: A -> A\n"
    )
    ran = omnigraph("schema", "show", "s.pg", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "interface Named\n"
        "  name  String  @index\n"
        "node A implements Named\n"
        "  id_no  U64     @key\n"
        "  name   String  @index\n"
        "edge Knows: A -> A @card(0..3)\n"
        "  since  Date?\n"
        "edge Likes: A -> A\n"
    )


def test_show_json_is_the_shape_and_its_hash():
    facts = json.loads(omnigraph("schema", "show", OLD, "--json").out)
    assert facts["shape_hash"].startswith("sha256:")
    assert [node["name"] for node in facts["nodes"]] == ["Note", "Port", "Ship"]
    assert [edge["name"] for edge in facts["edges"]] == ["About", "CallsAt", "Route"]


def test_show_draws_a_table_on_a_terminal():
    screen = omnigraph_on_terminal("schema", "show", OLD)
    assert "\x1b[1mnode Ship implements Labelled\x1b[0m" in screen
    assert "description" in screen


@pytest.mark.parametrize("command", [("show", "nowhere.pg"), ("plan", "--from", "x", "--to", "y")])
def test_a_missing_file_is_named(command):
    ran = omnigraph("schema", *command)
    assert ran.code == 1
    assert ran.err.startswith("error[file_not_found]: cannot read ")

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


def test_a_needless_rename_hint_is_a_warning(tmp_path):
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


# --- apply and diff ----------------------------------------------------------------------------


@pytest.fixture
def uri(tmp_path):
    address = str(tmp_path / "graph")
    assert omnigraph("init", address, "--schema", OLD).code == 0
    loaded = omnigraph("load", address, "--data", HARBOUR / "data.ndjson", "--mode", "merge")
    assert loaded.code == 0
    return address


def test_apply_prints_its_steps(uri):
    ran = omnigraph("schema", "apply", uri, NEW)
    assert (ran.code, ran.err) == (0, f"omnigraph schema apply → {uri} (direct, local)\n")
    assert ran.out == (
        f"schema apply for {uri} on branch main\n"
        "supported: yes\n"
        "applied: yes\n"
        "graph_manifest_version: 3\n"
        "- add constraint node Port @index(opened)\n"
        "- rename property node Port.city -> town\n"
        "- rename type node Ship -> Vessel\n"
        "- extend enum node Vessel.kind: pilot\n"
        "- add property node Vessel.tonnage: I32?\n"
        "- drop type node Note (soft)\n"
        "- drop type edge About (soft)\n"
    )
    assert omnigraph("schema", "show", uri).out == NEW.read_text()
    again = omnigraph("schema", "apply", uri, "--schema", NEW)
    assert again.out.splitlines()[1:] == [
        "supported: yes",
        "applied: no",
        "graph_manifest_version: 3",
        "no schema changes",
    ]


def test_apply_json_has_the_wire_shape(uri):
    ran = omnigraph(
        "schema", "apply", "--store", uri, NEW, "--json", "--as", "ada", "--message", "m"
    )
    facts = json.loads(ran.out)
    assert {k: facts[k] for k in ("uri", "branch", "supported", "applied", "step_count")} == {
        "uri": uri,
        "branch": "main",
        "supported": True,
        "applied": True,
        "step_count": 7,
    }
    assert facts["graph_manifest_version"] == facts["commit"]["graph_manifest_version"] == 3
    assert (facts["actor_id"], facts["commit"]["actor_id"]) == ("ada", "ada")
    assert (facts["commit"]["operation"], facts["commit"]["message"]) == ("schema_apply", "m")
    assert [step["kind"] for step in facts["steps"]][-2:] == ["drop_type", "drop_type"]


def test_a_dry_run_applies_nothing(uri):
    ran = omnigraph("schema", "apply", uri, NEW, "--dry-run", "--allow-data-loss")
    assert ran.code == 0
    assert ran.out.splitlines()[2] == "applied: no"
    assert ran.out.splitlines()[-1] == "- drop type edge About (hard)"
    assert omnigraph("schema", "show", uri).out == OLD.read_text()


def test_apply_refuses_with_every_reason_and_changes_nothing(uri, tmp_path):
    text = OLD.read_text().replace("built: Date?", "built: String?  must: I32")
    (tmp_path / "bad.pg").write_text(text)
    ran = omnigraph("schema", "apply", uri, tmp_path / "bad.pg", "--quiet")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error[schema_change_unsupported]: 2 changes cannot be made; nothing was changed\n"
        "  node:Ship.built: [OG-MF-106] the type cannot change (Date? -> String?); "
        "it may only become wider\n"
        "  node:Ship.must: [OG-MF-103] a required property cannot be added (I32); "
        "make it I32? or give it a @default\n"
    )
    asked = omnigraph("schema", "apply", uri, tmp_path / "bad.pg", "--json")
    assert [s["entity"] for s in json.loads(asked.out)["error"]["details"]["steps"]] == [
        "node:Ship.built",
        "node:Ship.must",
    ]


def test_apply_names_the_entities_that_break_a_new_rule(uri):
    ran = omnigraph("schema", "apply", uri, HARBOUR / "schema-strict.pg", "--quiet")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error[validation_failed]: 3 violations; nothing was changed\n"
        "  node Port 'DOV': Port.depth is required, but null or missing\n"
        "  node Ship '9321483': @range violation on Ship.draught: value 15.5 > max 12\n"
        "  @card violation on edge CallsAt: source '9074729' has 2 edges (max 1)\n"
    )


def test_plan_shows_how_many_edges_a_new_key_rewrites(uri, tmp_path):
    keyed = OLD.read_text().replace("Port -> Port", "Port -> Port @key(src, dst)")
    (tmp_path / "keyed.pg").write_text(keyed)
    line = "- change key edge Route: none -> @key(src, dst) (rewrites {} edges, ids change)"
    files = omnigraph("schema", "plan", "--from", OLD, "--to", tmp_path / "keyed.pg")
    assert files.out.splitlines()[2:] == [line.format("all")]
    ran = omnigraph("schema", "plan", uri, "--schema", tmp_path / "keyed.pg")
    assert ran.out.splitlines()[2:] == [line.format(3)]
    made = json.loads(omnigraph("schema", "apply", uri, tmp_path / "keyed.pg", "--json").out)
    assert made["steps"] == [
        {
            "kind": "change_key",
            "type_kind": "edge",
            "type_name": "Route",
            "to": {"Key": ["src", "dst"]},
            "edges": 3,
        }
    ]


def test_states_and_files_are_compared(uri):
    assert omnigraph("branch", "create", "side", "--uri", uri).code == 0
    assert omnigraph("schema", "apply", uri, NEW, "--branch", "side").code == 0
    ran = omnigraph("schema", "diff", "--uri", uri, "main", "side")
    assert ran.out.splitlines()[:3] == [
        f"schema diff of {uri} from main to side",
        "supported: yes",
        "- add constraint node Port @index(opened)",
    ]
    assert len(ran.out.splitlines()) == 9
    same = omnigraph("schema", "diff", "--uri", uri, "side", NEW)
    assert same.out.splitlines()[1:] == ["supported: yes", "no schema changes"]
    files = json.loads(omnigraph("schema", "diff", OLD, NEW, "--json").out)
    assert files["step_count"] == 7
    assert omnigraph("schema", "show", uri, "--at", "side").out == NEW.read_text()
    assert omnigraph("schema", "show", uri, "--at", "main").out == OLD.read_text()


def test_apply_without_a_schema_is_a_mistake_of_usage(uri):
    ran = omnigraph("schema", "apply", uri)
    assert ran.code == 2
    assert "no schema given" in ran.err

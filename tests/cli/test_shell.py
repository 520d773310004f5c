"""The shell: from a pipe, on a terminal with both ways to read lines, and through a server."""

import os

import pytest

import omnigraph as og
from omnigraph.cli.shell.completion import complete
from omnigraph.cli.shell.session import COMMANDS, ShellSession
from omnigraph.cli.shell.statements import is_finished, script_statements, split_statements
from tests.support.program import omnigraph
from tests.support.serving import serving
from tests.support.terminal import Terminal

SCHEMA = """// The ports of a coast.
node Port {
  code: String @key
  city: String?
}

node Ship { imo: I64 @key }

edge CallsAt: Ship -> Port
"""
ALL = "match { $p: Port } return { $p.code as code } order { code }"
READLINE = (
    "import sys; sys.modules['prompt_toolkit'] = None; from omnigraph.cli.app import main; main()"
)
PROGRAMS = {
    "prompt_toolkit": ["-m", "omnigraph.cli"],
    "readline": ["-c", READLINE],
}


@pytest.fixture
def uri(tmp_path):
    graph = og.init(tmp_path / "ports", SCHEMA)
    rows = {"Port": [{"code": "AAA", "city": "Åbo"}, {"code": "BBB"}], "Ship": [{"imo": 1}]}
    graph.load({**rows, "CallsAt": [{"from": "1", "to": "AAA"}]}, mode="merge")
    return str(tmp_path / "ports")


def piped(uri, text, *options):
    return omnigraph("shell", uri, *options, typed=text)


# --- statements --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("", True),
        (".branch", True),
        (".explain match {", False),
        (".explain", True),
        ("match { $p: Port }", False),
        ("match { $p: Port } return { $p.code }", True),
        ("match { $p: Port }\nreturn { $p.code }", False),
        ("match { $p: Port }\nreturn { $p.code };", True),
        ("match { $p: Port }\nreturn { $p.code }\n", True),
        ("match {\n\n", False),
        ("query f()", False),
        ("query f() {\nmatch { $p: Port }\nreturn { $p.code }\n}", True),
        ('insert Port { code: "}', False),
        ('insert Port { code: "{" }', True),
        ("delete Port /* {", False),
        ("nonsense", True),
    ],
)
def test_enter_runs_what_is_finished(text, finished):
    assert is_finished(text) is finished


def test_statements_end_at_semicolons_outside_strings_and_brackets():
    text = f'insert Port {{ code: "a;b" }} ; // x;y\n {ALL};;.types\n.log 2;'
    assert split_statements(text) == [
        'insert Port { code: "a;b" }',
        f"// x;y\n {ALL}",
        ".types",
        ".log 2",
    ]


def test_statements_of_a_script_end_before_the_next_begins():
    lines = ["match { $p: Port }", "return { $p.code }", "order { $p.code }", ".explain", "", ALL]
    lines += [".explain analyze", ALL, 'insert Port { code: "', 'match" }', "", "", ".quit"]
    assert list(script_statements(lines)) == [
        "match { $p: Port }\nreturn { $p.code }\norder { $p.code }",
        ".explain",
        ALL,
        f".explain analyze\n{ALL}",
        'insert Port { code: "\nmatch" }',
        ".quit",
    ]


# --- from a pipe -------------------------------------------------------------------------------


def test_a_script_reads_and_changes_branches_and_states(uri):
    ran = piped(
        uri,
        f"""
        .branch review from main
        insert Port {{ code: "CCC" }}
        insert Port {{ code: "DDD" }}
        .format csv
        {ALL}
        .branch main
        {ALL}
        .branch
        """,
    )
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert lines[0] == "on branch review"
    assert lines[1].startswith("changed review: 1 node, 0 edges (commit ")
    assert lines[3:] == [
        *("code", "AAA", "BBB", "CCC", "DDD"),
        *("on branch main", "code", "AAA", "BBB"),
        *("* main", "  review"),
    ]


def test_a_state_of_the_past_is_read_and_not_changed(uri):
    graph = og.open(uri)
    graph.tags.create("v1")
    graph.insert("Port", [{"code": "CCC"}])
    ran = piped(uri, f'.time v1\n{ALL}\ninsert Port {{ code: "DDD" }}')
    assert ran.code == 1
    assert ran.out.splitlines()[1:] == [
        "2 rows from snapshot v1 via query",
        "code",
        "----",
        "AAA",
        "BBB",
    ]
    assert ran.err == "error: the shell reads v1, which cannot change: `.time now` returns\n"
    assert piped(uri, f".format csv\n.time v1\n.time now\n{ALL}").out.splitlines()[-1] == "CCC"


def test_declared_queries_take_parameters(uri):
    text = (
        "query f($code: String) { match { $p: Port { code: $code } } return { $p.city as city } }"
    )
    ran = piped(uri, f".params code=AAA n=3\n.format jsonl\n{text}")
    assert ran.out.splitlines()[:2] == ['$code = "AAA"', "$n = 3"]
    assert ran.out.splitlines()[-1] == '{"city":"Åbo"}'
    refused = piped(uri, text)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.endswith("set it with `.params code=…`\n")


def test_a_query_of_a_file_is_run_by_name(uri, tmp_path):
    path = tmp_path / "q.gq"
    one = "query one() { match { $p: Port } return { count($p) as n } }"
    path.write_text(f'{one} query two() {{ insert Port {{ code: "CCC" }} }}', encoding="utf-8")
    ran = piped(uri, f".run '{path}' two\n.format csv\n.run '{path}' one")
    assert ran.out.splitlines()[1:] == ["n", "3"]


def test_schema_types_plans_and_commits_are_printed(uri):
    ran = piped(uri, f".schema\n.schema CallsAt\n.explain {ALL}\n.log 1")
    commit = og.open(uri).commits.list()[0]
    plan = str(og.open(uri).explain(ALL))
    expected = f"{SCHEMA}edge CallsAt: Ship -> Port\n{plan}\n{commit.id}  load\n"
    assert (ran.code, ran.out) == (0, expected)


def test_explain_alone_shows_the_plan_of_the_last_query(uri):
    plan = str(og.open(uri).explain(ALL))
    assert piped(uri, f"{ALL}\n.explain").out.endswith(plan + "\n")


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("match { $p: Port }\nreturn { $p.cod }", "<query>:2:13"),
        ('insert Port { code: "X",\n  cty: "Y" }', "<query>:2:3"),
    ],
)
def test_errors_show_their_place_and_end_a_script(uri, statement, place):
    ran = piped(uri, f"{statement}\n\n{ALL}")
    assert (ran.code, ran.out) == (1, "")
    assert f"--> {place}\n" in ran.err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (".schemas", "unknown command '.schemas': did you mean `.schema`?"),
        (".xyz", "unknown command '.xyz': `.help` lists the commands"),
        (".format arrow", "usage: .format table|json|jsonl|csv|kv"),
        (".params code", "usage: .params [NAME=VALUE …|clear]"),
        (".rows some", "usage: .rows N|all"),
        (".log all", "usage: .log [N]"),
        (".run", "usage: .run FILE [NAME]"),
        (".branch a b", "usage: .branch [NAME [from STATE]]"),
        (".explain", "usage: .explain [analyze] [QUERY]"),
        (".timing", "usage: .timing on|off"),
    ],
)
def test_commands_that_are_wrong_are_answered_with_their_usage(uri, command, message):
    ran = piped(uri, command)
    assert (ran.code, ran.err) == (1, f"error: {message}\n")


def test_unknown_branches_and_types_are_refused(uri):
    message = "branch 'nope' does not exist; `.branch nope from main` creates it"
    assert piped(uri, ".branch nope").err == f"error: {message}\n"
    assert "did you mean `Port`?" in piped(uri, ".schema Prot").err
    assert og.open(uri).branches.list() == ["main"]


def test_read_only_refuses_changes(uri):
    ran = piped(uri, 'insert Port { code: "X" }', "--read-only")
    assert ran.code == 1
    assert len(og.open(uri).query(ALL)) == 2


def test_help_lists_every_command(uri):
    out = piped(uri, ".help").out
    assert [line.split()[0] for line in out.splitlines() if line.startswith(".")] == list(COMMANDS)


def test_a_graph_on_a_server_is_addressed_the_same_way(uri):
    with serving("--graph", f"ports={uri}", "--unauthenticated") as server:
        ran = omnigraph(
            *("shell", "--server", server.url, "--graph", "ports", "--format", "csv"),
            typed=f'insert Port {{ code: "CCC" }}\n{ALL}\nmatch {{ $p: Port }} return {{ $p.x }}',
        )
    assert ran.out.splitlines()[1:] == ["code", "AAA", "BBB", "CCC"]
    assert ran.code == 1
    assert "--> <query>:1:32" in ran.err


# --- completion --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ma", ["match"]),
        (".explain ma", ["match"]),
        (".sch", [".schema"]),
        (".schema P", ["Port"]),
        (".branch m", ["main"]),
        (".time ", ["now", "v1"]),
        (".format t", ["table"]),
        ("match { $p: Po", ["Port"]),
        ("match { $p: Port } return { $p.c", ["city", "code"]),
        (".explain match { $s: Ship  $s ca", ["callsAt"]),
    ],
)
def test_words_of_the_schema_and_of_both_languages_are_completed(uri, text, words):
    graph = og.open(uri)
    graph.tags.create("v1")
    found = complete(text, ShellSession(graph))
    assert sorted(c.word for c in found) == words
    for completion in found:
        assert completion.word.startswith(text[completion.start :])


# --- on a terminal -----------------------------------------------------------------------------


@pytest.fixture(params=PROGRAMS)
def terminal(request, uri, tmp_path):
    """Return what starts a shell on a terminal of its own."""
    env = {
        **os.environ,
        "OMNIGRAPH_HISTORY": str(tmp_path / "history"),
        "TERM": "xterm",
        "NO_COLOR": "1",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "INPUTRC": os.devnull,
    }
    children = []

    def start():
        child = Terminal([*PROGRAMS[request.param], "shell", uri], env)
        children.append(child)
        child.expect("ports:main>")
        return child

    yield start
    for child in children:
        child.close()


def test_statements_are_typed_on_one_line_and_on_several(terminal):
    child = terminal()
    child.send(ALL + "\r")
    child.expect("2 rows from branch main via query")
    child.expect("BBB")
    child.send("match {\r")
    child.expect("...")
    child.send("$p: Port }\r")
    child.send("return { $p.cod };\r")
    child.expect("<query>:3:13")
    child.expect("ports:main>")
    child.send('insert Port { code: "CCC" }\r')
    child.expect("changed main: 1 node, 0 edges")
    child.send(".branch review from main\r")
    child.expect("on branch review")
    child.expect("ports:review>")
    child.send(".quit\r")
    assert child.wait() == 0


def test_tab_completes_and_ctrl_c_discards(terminal):
    child = terminal()
    child.send(".schema Sh\t")
    child.expect("ip")
    child.send("\r")
    child.expect("imo: I64 @key")
    child.expect("ports:main>")
    child.send("match {")
    child.expect("match")
    child.expect("{")
    child.press_until("\x03", "ports:main>")
    child.send(ALL + "\r")
    child.expect("2 rows from branch main via query")
    child.expect("ports:main>")
    child.send("\x04")
    assert child.wait() == 0


def test_history_is_kept_between_shells(terminal):
    child = terminal()
    child.send(".schema Ship\r")
    child.expect("imo: I64 @key")
    child.expect("ports:main>")
    child.send("\x04")
    assert child.wait() == 0
    child = terminal()
    child.send("\x10\r")
    child.expect("imo: I64 @key")


def test_a_terminal_shows_the_first_rows_of_many(terminal):
    child = terminal()
    child.send(".rows 1\r")
    child.expect("ports:main>")
    child.send(ALL + "\r")
    child.expect("2 rows from branch main via query")
    child.expect("… 1 more row (`.rows all` shows them)")

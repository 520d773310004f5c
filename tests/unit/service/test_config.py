"""What a person set up: servers, profiles, defaults, aliases, tokens."""

import stat

import pytest

from omnigraph.errors import InvalidInput
from omnigraph.service.user_config import (
    ConfigDefaults,
    Profile,
    QueryAlias,
    delete_token,
    read_user_config,
    store_token,
    token_for,
)

TEXT = """
operator: { actor: act-dana }
servers:
  lab: { url: "https://lab.example/" }
  lab-two: { url: "https://lab.example/two" }
clusters: { admin: { root: "s3://bkt/lab" } }
profiles:
  lab: { server: lab, default_graph: notes }
defaults: { output: kv, table_max_column_width: 20, server: lab, default_graph: notes }
aliases:
  weekly: { server: lab, graph: notes, query: digest, args: [since], params: { limit: 10 } }
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "config.yaml").write_text(TEXT)
    return {"OMNIGRAPH_HOME": str(tmp_path)}


def test_everything_is_read(home):
    found = read_user_config(home)
    assert (found.actor, found.clusters) == ("act-dana", {"admin": "s3://bkt/lab"})
    assert found.servers == {"lab": "https://lab.example", "lab-two": "https://lab.example/two"}
    assert found.profiles == {"lab": Profile("lab", server="lab", default_graph="notes")}
    assert found.defaults == ConfigDefaults(
        output="kv", table_max_column_width=20, server="lab", default_graph="notes"
    )
    assert found.aliases["weekly"] == QueryAlias(
        name="weekly",
        server="lab",
        graph="notes",
        query="digest",
        args=("since",),
        params={"limit": 10},
    )
    assert found.warnings == ()


def test_nothing_set_up_is_fine(tmp_path):
    found = read_user_config({"OMNIGRAPH_HOME": str(tmp_path / "none")})
    assert (found.servers, found.actor, found.defaults) == ({}, None, ConfigDefaults())


def test_unknown_keys_are_reported_and_ignored(home, tmp_path):
    (tmp_path / "config.yaml").write_text("colour: red\nservers: { a: { url: 'http://a', x: 1 } }")
    found = read_user_config(home)
    assert found.servers == {"a": "http://a"}
    assert [warning.partition("`")[2] for warning in found.warnings] == [
        "colour` is ignored",
        "servers.a.x` is ignored",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "[]",
        "servers: []",
        "servers: { a: {} }",
        "defaults: { output: pie }",
        "defaults: { table_max_column_width: wide }",
        "defaults: { store: ./g, server: lab }",
        "defaults: { store: ./g, default_graph: g }",
        "aliases: { a: { server: lab } }",
        "aliases: { a: { server: lab, query: q, args: x } }",
    ],
)
def test_wrong_configuration_is_refused(home, tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_user_config(home)
    assert caught.value.code == "config_invalid"


def test_token_is_kept_for_its_owner_alone(home, tmp_path):
    operator = read_user_config(home)
    store_token(operator, "lab", " t-1 ")
    store_token(operator, "other", "t-2")
    path = tmp_path / "credentials"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "[lab]\ntoken = t-1\n[other]\ntoken = t-2\n"
    assert token_for("https://lab.example/graphs/g", operator, {}) == "t-1"
    delete_token(operator, "lab")
    delete_token(operator, "lab")
    assert path.read_text() == "[other]\ntoken = t-2\n"
    assert token_for("https://lab.example", operator, {}) is None


def test_credentials_others_can_read_are_refused(home, tmp_path):
    operator = read_user_config(home)
    store_token(operator, "lab", "t-1")
    (tmp_path / "credentials").chmod(0o640)
    with pytest.raises(InvalidInput) as caught:
        token_for("https://lab.example", operator, {})
    assert caught.value.code == "credentials_exposed"


def test_broken_credentials_do_not_show_what_they_hold(home, tmp_path):
    operator = read_user_config(home)
    path = tmp_path / "credentials"
    path.write_text("token = secret-1\n")
    path.chmod(0o600)
    with pytest.raises(InvalidInput) as caught:
        token_for("https://lab.example", operator, {})
    assert "secret-1" not in caught.value.message


@pytest.mark.parametrize(("name", "token"), [("lab", "  "), ("lab", "a\nb"), ("a]b", "t")])
def test_impossible_token_or_name_is_refused(home, name, token):
    with pytest.raises(InvalidInput):
        store_token(read_user_config(home), name, token)


def test_token_of_the_nearest_server_is_taken(home):
    operator = read_user_config(home)
    store_token(operator, "lab", "one")
    store_token(operator, "lab-two", "two")
    environment = {"OMNIGRAPH_BEARER_TOKEN": "any"}
    named = {**environment, "OMNIGRAPH_TOKEN_LAB_TWO": "named"}
    assert token_for("https://lab.example/two/graphs/g", operator, environment) == "two"
    assert token_for("https://lab.example/two/graphs/g", operator, named) == "named"
    assert token_for("https://lab.example/twofold", operator, environment) == "one"
    assert token_for("https://lab.example.evil.org", operator, environment) == "any"
    assert token_for("http://lab.example", operator, {}) is None

"""Addresses of graphs: folders, file://, s3://, and what is refused."""

import os
from pathlib import Path

import pytest

import omnigraph.graph as og
from omnigraph.errors import InvalidInput
from omnigraph.storage import Location, locate
from tests.support.graphs import NOTE, dump, insert, make_graph


@pytest.fixture(autouse=True)
def _no_aws_environment(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("/data/harbour", "/data/harbour"),
        ("/data/harbour/", "/data/harbour"),
        ("  /data/harbour  ", "/data/harbour"),
        (Path("/data/harbour"), "/data/harbour"),
        ("/data/with space/é", "/data/with space/é"),
        ("/data/a%20b", "/data/a%20b"),
        ("file:///data/harbour", "/data/harbour"),
        ("file:///data/harbour/", "/data/harbour"),
        ("file://localhost/data/harbour", "/data/harbour"),
        ("file:///data/with%20space/%C3%A9", "/data/with space/é"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/graphs/harbour", "s3://bucket/graphs/harbour"),
        ("s3://bucket//graphs/harbour//", "s3://bucket/graphs/harbour"),
    ],
)
def test_address_is_read_as_its_canonical_form(given, uri):
    assert locate(given) == Location(uri)


def test_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert locate("graphs/one").uri == str(tmp_path / "graphs" / "one")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "the graph URI is empty"),
        ("   ", "the graph URI is empty"),
        ("s3://", "has no bucket name"),
        ("s3:///key", "has no bucket name"),
        ("gs://bucket/graph", "gs:// URIs are not supported"),
        ("http://host/graph", "http:// URIs are not supported"),
        ("file://data/harbour", "not a path on this machine"),
        ("file://", "not a path on this machine"),
        ("file:///data/a?b", "must not contain `?`"),
        ("file:///data/a%3Fb", "must not contain `?`"),
        ("s3://bucket/a#b", "file:// URI no `#`"),
        ("/data/a?b", "must not contain `?`"),
    ],
)
def test_unusable_address_is_refused_with_the_reason(given, says):
    with pytest.raises(InvalidInput) as caught:
        locate(given)
    assert caught.value.code == "uri_invalid"
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("uri", "local"), [("/data/x", True), ("file:///data/x", True), ("s3://bucket/x", False)]
)
def test_location_knows_whether_it_is_a_folder(uri, local):
    assert locate(uri).is_local is local


def test_child_stands_below_the_root():
    assert locate("s3://bucket/graph").child("nodes/1") == "s3://bucket/graph/nodes/1"
    assert str(locate("/data/x")) == "/data/x"


def test_options_of_s3_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "")
    assert locate("s3://bucket/x").options == {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_region": "eu-north-1",
    }


def test_explicit_options_win_over_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    options = locate("s3://bucket/x", {"aws_region": "us-east-1"}).options
    assert options == {"aws_access_key_id": "key", "aws_region": "us-east-1"}


@pytest.mark.parametrize(
    ("endpoint", "options"),
    [
        (
            "http://127.0.0.1:9000",
            {"allow_http": "true", "aws_virtual_hosted_style_request": "false"},
        ),
        ("https://storage.example.org", {}),
    ],
)
def test_plain_endpoint_is_reached_in_path_style_over_http(endpoint, options):
    found = locate("s3://bucket/x", {"aws_endpoint": endpoint}).options
    assert found == {"aws_endpoint": endpoint, **options}


def test_folder_takes_no_storage_options(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert locate("/data/x", {"aws_region": "us-east-1"}).options == {}


@pytest.mark.parametrize("name", ["a b", "a%20b", "a#b", "é😀", "a:b", "[x]", "*", 'a"b', "o'b"])
def test_graph_lives_in_a_folder_of_any_name(tmp_path, name):
    graph = make_graph(str(tmp_path / name))
    graph.branches.create("side/line")
    insert(graph, NOTE, {"n": {"text": "x"}}, branch="side/line")
    again = og.open(tmp_path / name)
    assert dump(again, "side/line")[NOTE] == {"n": {"text": "x"}}
    assert again.verify().problems == []


# --- profiles ----------------------------------------------------------------------------------


@pytest.fixture
def aws_files(tmp_path):
    folder = tmp_path / "home" / ".aws"
    folder.mkdir(parents=True)
    (folder / "config").write_text(
        "[default]\nregion = eu-north-1\n"
        "[profile harbour]\nregion = eu-west-1\nendpoint_url = http://127.0.0.1:9\n"
    )
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id = D\naws_secret_access_key = d\n"
        "[harbour]\naws_access_key_id = H\naws_secret_access_key = h\naws_session_token = t\n"
    )
    return folder


def test_default_profile_is_used_when_nothing_else_is_said(aws_files):
    assert locate("s3://b").options == {
        "aws_access_key_id": "D",
        "aws_secret_access_key": "d",
        "aws_region": "eu-north-1",
    }


def test_named_profile_is_used(aws_files, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "harbour")
    options = locate("s3://b").options
    assert (options["aws_access_key_id"], options["aws_session_token"]) == ("H", "t")
    assert (options["aws_region"], options["aws_endpoint"]) == ("eu-west-1", "http://127.0.0.1:9")
    assert options["allow_http"] == "true"


def test_keys_of_the_environment_are_not_mixed_with_those_of_a_profile(aws_files, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "harbour")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "E")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "e")
    options = locate("s3://b", {"region": "us-east-1"}).options
    assert {k: v for k, v in options.items() if k.startswith("aws_") and "style" not in k} == {
        "aws_access_key_id": "E",
        "aws_secret_access_key": "e",
        "aws_region": "us-east-1",
        "aws_endpoint": "http://127.0.0.1:9",
    }


def test_profile_files_may_stand_elsewhere(aws_files, monkeypatch, tmp_path):
    elsewhere = (aws_files / "credentials").rename(tmp_path / "keys")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(elsewhere))
    assert locate("s3://b").options["aws_access_key_id"] == "D"


def test_unknown_profile_and_broken_files_are_refused(aws_files, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(InvalidInput, match="AWS profile 'nobody' does not exist") as caught:
        locate("s3://b")
    assert caught.value.code == "storage_profile_invalid"
    assert locate("/data").options == {}
    (aws_files / "config").write_text("region = x\n")
    with pytest.raises(InvalidInput, match="cannot read the AWS profile"):
        locate("s3://b")

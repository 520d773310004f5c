"""The pages of Studio are sent with rules that keep hostile content from running."""

import gzip
import re

import pytest
from starlette.testclient import TestClient

from omnigraph.server.app import create_app
from omnigraph.service.auth import AuthMode
from omnigraph.service.graph_registry import GraphSource, open_registry
from omnigraph.service.session import GraphService
from tests.support.serving import make_graph

SCRIPT = "console.log('studio');\n" * 100
PAGE = '<!doctype html><style nonce="__CSP_NONCE__"></style><script src="/studio/assets/a-1.js">'
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    uri = make_graph(tmp_path_factory.mktemp("graphs") / "g")
    return GraphService(registry=open_registry([GraphSource(id="g", uri=uri)]), state=AuthMode.OPEN)


@pytest.fixture
def client(service, tmp_path):
    files = {
        "index.html": PAGE,
        "docs.html": PAGE,
        "favicon.svg": "<svg/>",
        "assets/a-1.js": SCRIPT,
    }
    for name, text in files.items():
        (tmp_path / "studio" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "studio" / name).write_text(text)
    (tmp_path / "secret.txt").write_text("secret")
    with TestClient(create_app(service, studio=tmp_path / "studio")) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_has_a_policy_with_a_nonce_of_its_own(client, path):
    nonces = set()
    for _ in range(2):
        answer = client.get(path)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        [nonce] = re.findall(r'<style nonce="([\w-]{20,})">', answer.text)
        assert answer.headers["content-security-policy"] == POLICY.format(nonce=nonce)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-cache"
        nonces.add(nonce)
    assert len(nonces) == 2


def test_files_with_a_hash_are_kept_and_compressed(client):
    answer = client.get("/studio/assets/a-1.js")
    assert answer.text == SCRIPT
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) == len(gzip.compress(SCRIPT.encode(), 9))
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    plain = client.get("/studio/assets/a-1.js", headers={"Accept-Encoding": "identity"})
    assert (plain.text, "content-encoding" in plain.headers) == (SCRIPT, False)
    assert client.get("/studio/favicon.svg").headers["cache-control"] == "no-cache"
    policy = POLICY.replace(" 'nonce-{nonce}'", "")
    assert answer.headers["content-security-policy"] == policy


@pytest.mark.parametrize(
    "path",
    [
        "/studio/none.js",
        "/studio/index.html",
        "/studio/../secret.txt",
        "/studio/%2e%2e/secret.txt",
        "/studio/..%2fsecret.txt",
        "/studio/assets/",
        "/assets/a-1.js",
        "/favicon.ico",
    ],
)
def test_no_other_file_is_served(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.content) == (404, b"")


@pytest.mark.parametrize("path", ["/studio", "/studio/"])
def test_the_folder_leads_to_the_page(client, path):
    answer = client.get(path, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/")


def test_pages_only_have_get_and_head(client):
    assert client.head("/").status_code == 200
    assert client.post("/").json()["problem"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_without_built_files_the_page_says_how_to_build_them(service, tmp_path, path):
    with TestClient(create_app(service, studio=tmp_path / "none")) as client:
        answer = client.get(path)
    assert "make ui" in answer.text
    [nonce] = re.findall(r'<style nonce="([\w-]{20,})">', answer.text)
    assert answer.headers["content-security-policy"] == POLICY.format(nonce=nonce)


def test_servers_for_agents_alone_have_no_pages(service):
    with TestClient(create_app(service, agents_only=True)) as client:
        for path in ("/", "/docs", "/studio", "/session"):
            assert client.get(path).status_code == 404

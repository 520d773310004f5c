"""A page signs in by a cookie, which no other site can use and which ends with its token."""

import json
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from omnigraph.errors import InvalidInput
from omnigraph.server.app import create_app
from omnigraph.service.auth import AuthMode, TokenStore
from omnigraph.service.graph_registry import GraphSource, open_registry
from omnigraph.service.session import GraphService
from omnigraph.service.sign_in import (
    ONE_TIME_SECONDS,
    SESSION_KEY_VARIABLE,
    SESSION_SECONDS,
    BrowserSessions,
    OneTimeToken,
    session_key,
)
from tests.server.test_reloading import RELOADED, reload
from tests.support.serving import ALL_PEOPLE, make_graph, serving

KEY = b"k" * 32
TOKENS = TokenStore.of([("act-ada", ["token-ada"]), ("act-bob", ["token-bob", "new-bob"])])
PAGE = {"X-Omnigraph-Studio": "1", "Origin": "http://testserver"}
READ = {"query": ALL_PEOPLE}


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    uri = make_graph(tmp_path_factory.mktemp("graphs") / "g")
    return open_registry([GraphSource(id="g", uri=uri)])


@contextmanager
def browser(registry, sessions=None, base_url="http://testserver", proxies=(), **service):
    facts = {"state": AuthMode.DEFAULT_DENY, "tokens": TOKENS, **service}
    app = create_app(
        GraphService(registry=registry, **facts),
        sessions=sessions or BrowserSessions(KEY),
        trusted_proxies=proxies,
    )
    with TestClient(app, base_url=base_url, client=("127.0.0.1", 5)) as client:
        yield client


def sign_in(client, token="token-ada", **headers):
    return client.post("/session", json={"token": token}, headers={**PAGE, **headers})


def query(client, **headers):
    return client.post("/graphs/g/query", json=READ, headers={**PAGE, **headers}).status_code


def problem(answer, status):
    assert answer.status_code == status
    return answer.json()["problem"]["code"]


def test_a_token_is_exchanged_for_a_cookie_that_scripts_cannot_read(registry):
    with browser(registry) as client:
        assert problem(client.get("/session"), 401) == "unauthorized"
        answer = sign_in(client)
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={SESSION_SECONDS}"} <= set(
            cookie.split("; ")
        )
        assert "Secure" not in cookie
        assert "token-ada" not in cookie
        assert answer.headers["cache-control"] == "no-store"
        body = client.get("/session").json()
        assert body == answer.json()
        assert (body["actor"], body["sign_in"], body["local"]) == ("act-ada", True, False)
        assert 0 < body["expires_at"] / 1_000_000 - time.time() <= SESSION_SECONDS
        assert client.get("/graphs/g/branches").json() == {"branches": ["main"]}
        assert query(client) == 200


def test_a_wrong_token_gives_no_cookie(registry):
    with browser(registry) as client:
        answer = sign_in(client, "nope")
        assert problem(answer, 401) == "unauthorized"
        assert "set-cookie" not in answer.headers
        assert client.post("/session", json={"password": "x"}, headers=PAGE).status_code == 422


def test_the_cookie_is_secure_over_tls_and_behind_a_trusted_proxy_that_has_tls(registry):
    with browser(registry, base_url="https://testserver") as client:
        assert "Secure" in sign_in(client, Origin="https://testserver").headers["set-cookie"]
        assert problem(sign_in(client), 403) == "cross_site"
    forwarded = {"X-Forwarded-Proto": "https", "Origin": "https://testserver"}
    with browser(registry, proxies=("127.0.0.1",)) as client:
        assert "Secure" in sign_in(client, **forwarded).headers["set-cookie"]
    with browser(registry) as client:
        assert "Secure" not in sign_in(client, **forwarded).headers["set-cookie"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://testserver.evil.example"},
        {"Origin": "http://testserver:81"},
        {"Origin": "http://[testserver"},
        {"Origin": "null"},
        {"Origin": ""},
        {"X-Omnigraph-Studio": "0"},
    ],
)
def test_another_site_can_neither_use_nor_replace_a_session(registry, headers):
    with browser(registry) as client:
        sign_in(client)
        for method, path in [
            ("POST", "/session"),
            ("DELETE", "/session"),
            ("POST", "/graphs/g/query"),
            ("POST", "/graphs/g/branches"),
            ("DELETE", "/graphs/g/branches/main"),
            ("POST", "/mcp"),
        ]:
            answer = client.request(method, path, json={}, headers={**PAGE, **headers})
            assert problem(answer, 403) == "cross_site"
            assert "set-cookie" not in answer.headers
        assert client.get("/graphs/g/branches", headers=headers).status_code == 200


def test_a_page_of_another_site_changes_nothing_on_a_server_without_tokens(registry):
    other = {"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}
    writes = [("POST", "/graphs/g/proposals/1/merge"), ("DELETE", "/graphs/g/branches/none")]
    with browser(registry, state=AuthMode.OPEN, tokens=TokenStore()) as client:
        for method, path in writes:
            assert problem(client.request(method, path, headers=other), 403) == "cross_site"
            for site in ("same-origin", "same-site", "none"):
                answer = client.request(method, path, headers={**other, "Sec-Fetch-Site": site})
                assert answer.status_code == 404
            assert client.request(method, path).status_code == 404
        assert client.get("/graphs/g/branches", headers=other).status_code == 200


def test_a_bearer_token_needs_no_header_and_goes_before_the_cookie(registry):
    with browser(registry) as client:
        sign_in(client)
        bearer = {"Authorization": "Bearer token-bob"}
        assert client.post("/graphs/g/query", json=READ, headers=bearer).status_code == 200
        body = client.get("/session", headers=bearer).json()
        assert (body["actor"], body["expires_at"]) == ("act-bob", None)
        assert client.get("/session", headers={"Authorization": "Bearer x"}).status_code == 401


def test_signing_out_ends_the_session_for_copies_of_the_cookie_too(registry):
    with browser(registry) as client:
        sign_in(client)
        copy = dict(client.cookies)
        answer = client.delete("/session", headers=PAGE)
        assert answer.json()["actor"] is None
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert not client.cookies
        client.cookies.update(copy)
        assert problem(client.get("/session"), 401) == "unauthorized"
        assert client.delete("/session", headers=PAGE).status_code == 200


def test_a_session_ends_when_its_token_is_removed_or_replaced(registry):
    with browser(registry) as client:
        state = client.app.state.app_state
        sign_in(client, "token-bob")
        state.service = replace(state.service, tokens=TokenStore.of([("act-bob", ["new-bob"])]))
        assert problem(client.get("/graphs/g/branches"), 401) == "unauthorized"
        sign_in(client, "new-bob")
        assert client.get("/session").json()["actor"] == "act-bob"


def test_a_session_ends_after_its_time(registry, monkeypatch):
    with browser(registry) as client:
        sign_in(client)
        begun = time.time()
        monkeypatch.setattr(time, "time", lambda: begun + SESSION_SECONDS - 1)
        assert client.get("/session").status_code == 200
        monkeypatch.setattr(time, "time", lambda: begun + SESSION_SECONDS + 1)
        assert client.get("/session").status_code == 401


def test_a_changed_cookie_is_not_accepted(registry):
    with browser(registry) as client:
        sign_in(client)
        [(name, value)] = client.cookies.items()
        version, session, token, ends, signature = value.split(".")
        later = str(int(ends) + 10_000)
        client.cookies.clear()
        for forged in (
            ".".join((version, session, token, later, signature)),
            ".".join((version, session, token, ends, "0" * 64)),
            ".".join((version, session, token, ends)),
            "",
            ".",
            "1.2.3",
        ):
            answer = client.get("/session", headers={"Cookie": f"{name}={forged}"})
            assert problem(answer, 401) == "unauthorized"
        answer = client.get("/session", headers={"Cookie": f"{name}={value}"})
        assert answer.status_code == 200


def test_processes_accept_the_cookies_of_each_other_only_with_the_same_key(registry):
    with browser(registry) as one:
        sign_in(one)
        for key, status in ((KEY, 200), (b"x" * 32, 401)):
            with browser(registry, BrowserSessions(key)) as other:
                other.cookies.update(one.cookies)
                assert other.get("/session").status_code == status


def test_the_key_comes_from_the_environment_or_is_new():
    shared = {SESSION_KEY_VARIABLE: "s" * 32}
    assert session_key(shared) == session_key(shared) != session_key({})
    assert session_key({}) != session_key({})
    with pytest.raises(InvalidInput) as caught:
        session_key({SESSION_KEY_VARIABLE: "short-secret"})
    assert caught.value.code == "session_key_invalid"
    assert "short-secret" not in caught.value.message


def test_servers_on_other_ports_of_a_host_have_cookies_of_their_own(registry):
    with browser(registry, base_url="http://testserver:8081") as client:
        answer = sign_in(client, Origin="http://testserver:8081")
    assert answer.headers["set-cookie"].startswith("omnigraph_session_8081=")


def test_a_server_without_tokens_needs_no_session(registry):
    with browser(registry, tokens=TokenStore(), state=AuthMode.OPEN) as client:
        expected = {"actor": None, "sign_in": False, "local": False, "expires_at": None}
        assert client.get("/session").json() == expected
        answer = sign_in(client, "anything")
        assert answer.json() == expected
        assert "set-cookie" not in answer.headers
        assert client.post("/graphs/g/query", json=READ).status_code == 200


def test_a_one_time_token_works_once_and_for_a_minute(registry, monkeypatch):
    def link():
        return BrowserSessions(KEY, one_time=OneTimeToken("once", "token-ada"))

    with browser(registry, link()) as client:
        assert sign_in(client, "once").json()["actor"] == "act-ada"
        client.cookies.clear()
        answer = sign_in(client, "once")
        assert problem(answer, 401) == "unauthorized"
        assert "omnigraph studio" in answer.json()["error"]
    with browser(registry, link()) as client:
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + ONE_TIME_SECONDS + 1)
        assert problem(sign_in(client, "once"), 401) == "unauthorized"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("localhost:8080", 200),
        ("[::1]:8080", 200),
        ("evil.example:8080", 403),
        ("127.0.0.1:8081", 403),
        ("127.0.0.1", 403),
        ("127.0.0.1.evil.example:8080", 403),
        ("[", 403),
    ],
)
def test_a_local_server_refuses_other_host_names(registry, host, status):
    local = {"local": True, "state": AuthMode.OPEN}
    with browser(registry, base_url="http://127.0.0.1:8080", **local) as client:
        for path in ("/", "/healthz", "/openapi.json"):
            answer = client.get(path, headers={"Host": host})
            assert answer.status_code == status
    assert status == 200 or answer.json()["problem"]["code"] == "host_unknown"


def test_processes_share_sessions_and_a_reload_ends_those_of_removed_tokens(tmp_path):
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"ada": "token-ada", "bob": "token-bob"}))
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(tokens)}
    graph = f"--graph=g={make_graph(tmp_path / 'g')}"
    with serving(graph, "--workers=3", environment=environment) as server:
        headers = {"X-Omnigraph-Studio": "1", "Origin": server.url}

        def cookie(token):
            with server.client() as client:
                answer = client.post("/session", json={"token": token}, headers=headers)
                return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}

        def statuses(sent):
            # Each client is a connection of its own, which any process may accept.
            found = set()
            for _ in range(12):
                with server.client() as client:
                    found.add(client.get("/session", headers=sent).status_code)
            return found

        ada, bob = cookie("token-ada"), cookie("token-bob")
        assert statuses(ada) == statuses(bob) == {200}
        with server.client() as client:
            assert client.delete("/session", headers={**headers, **ada}).status_code == 200
        assert statuses(ada) == {401}
        tokens.write_text(json.dumps({"ada": "token-ada", "bob": "other"}))
        reload(server, RELOADED, times=3)
        assert statuses(bob) == {401}
        log = "".join(server.log)
    assert not any(secret in log for secret in ("token-ada", "token-bob", "omnigraph_session"))

from __future__ import annotations

import http.client
import json
import socket
import threading
import time

import pytest

from openset.review.server import Address, check_host, make_app, serve
from openset.review.session import Session


@pytest.fixture(scope="module")
def served(table_result):
    """A server in a thread, and its session."""
    session = Session(table_result[0], seed=0)
    found = []
    thread = threading.Thread(
        target=lambda: serve(session, tell=found.append), daemon=True
    )  # fmt: skip
    thread.start()
    while not found:
        time.sleep(0.01)
    return found[0], session


def ask(address, path, body=None, *, method=None, **headers):
    """One request; headers that are None are left out."""
    own = {"Host": f"127.0.0.1:{address.port}", "Cookie": f"{address.cookie}={address.token}"}
    data = None
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        own |= {
            "Origin": f"http://127.0.0.1:{address.port}",
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
        }
    own = {name: value for name, value in {**own, **headers}.items() if value is not None}
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
    connection.putrequest(
        method or ("GET" if body is None else "POST"), path, skip_host=True, skip_accept_encoding=True
    )
    for name, value in own.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders(data)
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, {name.lower(): value for name, value in reply.getheaders()}, content


def test_the_printed_address_opens_the_page_and_hands_out_the_cookie(served):
    address, _ = served
    status, headers, content = ask(address, f"/?token={address.token}", Cookie=None)
    assert status == 200 and b"openset review" in content
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"{address.cookie}={address.token};")
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert address.url.endswith(address.token) and len(address.token) >= 32


def test_every_answer_has_a_strict_policy(served):
    address, _ = served
    for path in ("/", "/review.js", "/api/overview", "/nothing", "/api/row/99999"):
        _, headers, _ = ask(address, path)
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers and "server" not in headers


@pytest.mark.parametrize("token", ["", "wrong", "a" * 32])
@pytest.mark.parametrize(
    "path", ["/", "/review.js", "/api/overview", "/api/next?queue=estimate", "/api/picture/target/0"]
)
def test_without_the_token_nothing_is_shown(served, path, token):
    address, _ = served
    for cookie in (None, f"{address.cookie}={token}", f"other={address.token}", "=;=;\x01"):
        status, headers, content = ask(address, path, Cookie=cookie)
        assert status == 403 and b"token" in content and "set-cookie" not in headers
    status, _, _ = ask(address, f"/api/overview?token={address.token}", Cookie=None)  # of the page alone
    assert status == 403
    status, _, _ = ask(address, f"/?token={token}&token={address.token}", Cookie=None)
    assert status == 403


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "[::1", "[::2]:80"]
)
def test_another_host_is_refused(served, host):
    """So a name that is pointed at this machine (DNS rebinding) reaches nothing."""
    address, _ = served
    status, _, _ = ask(address, f"/?token={address.token}", Host=host)
    assert status in (400, 421)  # uvicorn itself refuses a request without one


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
def test_the_names_of_this_machine_are_accepted(served, name):
    address, _ = served
    assert ask(address, "/api/overview", Host=f"{name}:{address.port}")[0] == 200


ANSWER = {"row": 1, "verdict": "skip", "queue": "explore"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": None}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "https://127.0.0.1"}, 403),
        ({"Content_Type": "text/plain", "Content-Type": None}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Length": None, "Transfer-Encoding": "chunked"}, 413),
        ({"Cookie": None}, 403),
    ],
)
def test_a_write_from_elsewhere_is_refused(served, headers, status):
    address, session = served
    before = session.numbers().answers
    body = b"5\r\n{}   \r\n0\r\n\r\n" if "Transfer-Encoding" in headers else ANSWER
    assert ask(address, "/api/answer", body, **headers)[0] == status
    assert session.numbers().answers == before


def test_a_large_write_is_refused(served):
    address, _ = served
    assert ask(address, "/api/answer", {**ANSWER, "label": "x" * 70_000})[0] == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(served, method):
    address, _ = served
    assert ask(address, "/api/overview", method=method)[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/assets/../server.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/review.js/../../session.py",
        "/api/picture/target/../../etc/passwd",
        "/api/picture/target/%2e%2e%2f0",
        "/api/picture/target/0.jpg",
        "/api/picture/..%2f/0",
        "/api/picture/model/0",
        "/api/picture/target/-1",
        "/api/picture/target/99999999999999999999",
        "/api/row/-1",
        "/api/row/500",
        "/api/group/99",
        "/review.sqlite",
        "//etc/passwd",
    ],
)
def test_tricks_with_paths_lead_nowhere(served, path):
    address, _ = served
    status, _, content = ask(address, path)
    assert status in (400, 404) and b"root:" not in content and b"import" not in content


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"not json", "is JSON"),
        (b"[]", "JSON object"),
        ({"row": "1", "verdict": "new", "queue": "explore"}, "by number"),
        ({"row": True, "verdict": "new", "queue": "explore"}, "by number"),
        ({"row": 10**9, "verdict": "new", "queue": "explore"}, "no row"),
        ({"row": 1, "verdict": "maybe", "queue": "explore"}, "'new', 'known' or 'skip'"),
        ({"row": 1, "verdict": "new", "queue": "bulk"}, "no queue"),
        ({"row": 1, "verdict": "new", "queue": "explore", "label": ["x"]}, "by text"),
        ({"row": 1, "verdict": "known", "queue": "explore", "label": "bat"}, "no known class"),
        ({"row": 1, "verdict": "new", "queue": "explore", "annotator": "x" * 99}, "annotator"),
    ],
)
def test_a_wrong_answer_says_what_is_wrong_and_saves_nothing(served, body, message):
    address, session = served
    before = session.numbers().answers
    status, _, content = ask(address, "/api/answer", body)
    assert status == 400 and message in json.loads(content)["error"]
    assert session.numbers().answers == before


def test_an_answer_brings_the_next_row_and_the_numbers(served):
    address, session = served
    row = json.loads(ask(address, "/api/next?queue=explore")[2])["row"]
    status, _, content = ask(
        address, "/api/answer", {"row": row, "verdict": "new", "queue": "explore", "label": "pot"}
    )
    reply = json.loads(content)
    assert status == 200 and reply["next"]["row"] != row
    assert {"name": "pot", "rows": 1} in reply["overview"]["names"]
    undone = json.loads(ask(address, "/api/undo", {"queue": "explore"})[2])
    assert undone["undone"] == [row] and undone["next"]["row"] == row
    assert row not in session.state.rows


def test_an_address_that_others_reach_needs_to_be_wanted():
    for host in ("0.0.0.0", "192.168.1.2", "::", "example.org"):
        with pytest.raises(ValueError, match="can be reached from other machines"):
            check_host(host, allow_remote=False)
        check_host(host, allow_remote=True)
    for host in ("127.0.0.1", "::1", "localhost"):
        check_host(host, allow_remote=False)


def test_ipv6_is_served_under_its_own_name(table_result):
    address = Address("::1", 8123, "secret")
    assert address.url == "http://[::1]:8123/?token=secret"
    if not socket.has_ipv6:
        pytest.skip("needs IPv6")
    found = []
    session = Session(table_result[0], seed=0)
    thread = threading.Thread(target=lambda: serve(session, host="::1", tell=found.append), daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not found and time.monotonic() < deadline and thread.is_alive():
        time.sleep(0.01)
    if not found:
        pytest.skip("no IPv6 loopback here")
    connection = http.client.HTTPConnection("::1", found[0].port, timeout=20)
    connection.request("GET", f"/?token={found[0].token}")
    reply = connection.getresponse()
    assert reply.status == 200 and reply.read()
    reply.close()
    connection.close()


def test_an_app_is_made_for_any_address(table_result):
    assert callable(make_app(Session(table_result[0]), Address("127.0.0.1", 1, "t")))

from __future__ import annotations

import asyncio

import pytest

from openset.review.guard import MOST_BYTES, Guard, allowed_hosts


async def app(scope, receive, send):
    message = await receive()
    while message.get("more_body"):
        message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"max-age=9")]})
    await send({"type": "http.response.body", "body": b"reached"})


def call(*, kind="http", method="GET", path="/", query="token=t", bodies=(b"",), **headers):
    sent = []
    guard = Guard(app, token="t", hosts=allowed_hosts("127.0.0.1", 7), cookie="c")
    fields = {"host": "127.0.0.1:7", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
    }
    waiting = list(bodies)

    async def receive():
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message):
        sent.append(message)

    asyncio.run(guard(scope, receive, send))
    return sent


def test_our_headers_replace_those_of_the_app():
    start, body = call()
    names = [name for name, _ in start["headers"]]
    assert body["body"] == b"reached" and names.count(b"cache-control") == 1
    assert (b"cache-control", b"no-store") in start["headers"]


def test_a_websocket_is_closed():
    assert call(kind="websocket") == [{"type": "websocket.close", "code": 1008}]


def test_more_than_was_announced_is_not_read():
    headers = {"cookie": "c=t", "origin": "http://127.0.0.1:7", "content_type": "application/json"}
    with pytest.raises(ValueError, match="larger than it may be"):
        call(method="POST", query="", content_length="5", bodies=[b"x" * MOST_BYTES, b"y"], **headers)


def test_hosts_of_an_address_that_others_reach():
    assert allowed_hosts("fe80::1", 80) == {"[fe80::1]", "[fe80::1]:80"}
    assert allowed_hosts("10.0.0.2", 8000) == {"10.0.0.2:8000"}

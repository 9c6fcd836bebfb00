"""Who may talk to the server: the right host, the right token, writes from our own page, nothing else."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 16
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


def allowed_hosts(host: str, port: int) -> frozenset[str]:
    """What a browser may name as host: the address that is served and, on loopback, its other names.

    >>> sorted(allowed_hosts("127.0.0.1", 80))
    ['127.0.0.1', '127.0.0.1:80', '[::1]', '[::1]:80', 'localhost', 'localhost:80']
    """
    names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else {_written(host)}
    return frozenset({f"{name}:{port}" for name in names} | (names if port in (80, 443) else set()))


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.2")]
    [True, True, True, False, False]
    """
    import ipaddress

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Wraps an application: refuses requests that are not of the person who started the server.

    A request must name an allowed host. It must carry the token: in the address when the page is opened, which
    then gets it as a cookie that scripts cannot read and other sites cannot send. A write must also come from our
    own origin, as JSON, and be small.
    """

    def __init__(self, app: App, *, token: str, hosts: Iterable[str], cookie: str) -> None:
        self._app, self._token, self._hosts, self._cookie = app, token, frozenset(hosts), cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a websocket, which the page has none of
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        cookie = None
        if self._in_address(scope):
            cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        await self._app(scope, _limited(receive), _with_headers(send, cookie))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if headers.get("host", "").lower() not in self._hosts:
            return 421, "This address is not served here. Open the one that 'openset review' printed."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Only GET and POST are answered."
        if not self._in_address(scope) and not self._in_cookie(headers):
            return 403, "The token is missing or old. Open the address that 'openset review' printed."
        if scope["method"] == "POST":
            origin = headers.get("origin", "").lower()
            if origin not in {f"http://{host}" for host in self._hosts}:
                return 403, "Answers are accepted from the review's own page only."
            if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
                return 415, "Answers are sent as JSON."
            length = headers.get("content-length", "")
            if not length.isdigit() or int(length) > MOST_BYTES:
                return 413, "An answer is small, and says how long it is."
        return None

    def _in_address(self, scope: Scope) -> bool:
        """The token in the address of the page itself; nowhere else is it looked for."""
        if scope["path"] != "/" or scope["method"] != "GET":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True).get("token", [])
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), self._token.encode())

    def _in_cookie(self, headers: dict[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._token.encode())


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


def _limited(receive: Receive) -> Receive:
    """Reading that ends with an error if more is sent than was said."""
    read = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MOST_BYTES:
            raise ValueError("an answer is larger than it may be.")
        return message

    return limited


def _with_headers(send: Send, cookie: str | None) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            own += [(b"set-cookie", cookie.encode())] if cookie else []
            kept = [(name, value) for name, value in message.get("headers", []) if name.decode() not in HEADERS]
            message = {**message, "headers": [*kept, *own]}
        await send(message)

    return sending


async def _refuse(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = {**HEADERS, "content-type": "text/plain; charset=utf-8", "content-length": str(len(body))}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})

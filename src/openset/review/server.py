"""The page's server: a few addresses over a session, behind the guard. Rows are named by number, not by path."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from openset._utils.extras import require
from openset.errors import Parameter, ParameterError
from openset.review.guard import App, Guard, allowed_hosts, is_loopback
from openset.review.queues import Suggestion
from openset.review.session import QUEUES, Session
from openset.review.views import Views

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

ASSETS = {
    "/": ("review.html", "text/html; charset=utf-8"),
    "/review.css": ("review.css", "text/css; charset=utf-8"),
    "/review.js": ("review.js", "text/javascript; charset=utf-8"),
    "/show.js": ("show.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_PURPOSE = "The review's page"


@dataclass(frozen=True)
class Address:
    """Where a page is served; ``url`` holds the token."""

    host: str
    port: int
    token: str

    @property
    def url(self) -> str:
        """The address to open."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The cookie's name; browsers share cookies between ports, so it has the port in it."""
        return f"openset_review_{self.port}"


def check_host(host: str, *, allow_remote: bool) -> None:
    """Raise an error for an address that others can reach, unless that is wanted."""
    if not is_loopback(host) and not allow_remote:
        raise ParameterError(
            f"{host} can be reached from other machines, and the page shows the rows: leave it out, or pass ",
            Parameter("allow_remote", True),
            " if that is wanted.",
        )


def make_app(session: Session, address: Address) -> App:
    """The application of a session at an address."""
    require("starlette", _PURPOSE, "review")
    from starlette.applications import Starlette
    from starlette.routing import Route

    page = Page(session)
    routes = [Route(path, _asset(*asset)) for path, asset in ASSETS.items()]
    routes += [
        Route("/api/overview", page.overview),
        Route("/api/next", page.next),
        Route("/api/row/{row:int}", page.row),
        Route("/api/group/{group:int}", page.group),
        Route("/api/picture/{role:str}/{row:int}", page.picture),
        Route("/api/answer", page.answer, methods=["POST"]),
        Route("/api/undo", page.undo, methods=["POST"]),
        Route("/api/rename", page.rename, methods=["POST"]),
        Route("/api/accept", page.accept, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={ValueError: _said, LookupError: _said})
    return Guard(app, token=address.token, hosts=allowed_hosts(address.host, address.port), cookie=address.cookie)


def serve(
    session: Session,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    allow_remote: bool = False,
    tell: Callable[[Address], None] = lambda address: None,
) -> None:
    """Serve the page until interrupted; ``tell`` is called with the address once it is open.

    Port 0 takes a free one.
    """
    check_host(host, allow_remote=allow_remote)
    uvicorn = require("uvicorn", _PURPOSE, "review")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        address = Address(host, listener.getsockname()[1], secrets.token_urlsafe(24))
        app = make_app(session, address)
        listener.listen(128)
        tell(address)
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", server_header=False)
        uvicorn.Server(config).run(sockets=[listener])


class Page:
    """The addresses of the page; each answers with plain values."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.views = Views(session)
        self._learning: asyncio.Task[None] | None = None

    async def overview(self, request: Request) -> Response:
        """The live numbers."""
        return _json(self.views.overview())

    async def next(self, request: Request) -> Response:
        """The next row of a queue."""
        return _json(self._next(request.query_params.get("queue", ""), _who(request.query_params)))

    async def row(self, request: Request) -> Response:
        """A certain row."""
        row, queue = request.path_params["row"], request.query_params.get("queue", "")
        if not 0 <= row < len(self.session):
            raise LookupError(f"there is no row {row}.")
        return _json(self.views.row(Suggestion(row, "asked for"), queue))

    async def group(self, request: Request) -> Response:
        """A group as a grid."""
        return _json(self.views.group(request.path_params["group"]))

    async def picture(self, request: Request) -> Response:
        """A row's picture, by the row's number."""
        from starlette.responses import Response

        role, row = request.path_params["role"], request.path_params["row"]
        if role not in ("source", "target"):
            raise LookupError("there are pictures of source and target.")
        domain = self.session.source if role == "source" else self.session.target
        if not 0 <= row < len(domain.records):
            raise LookupError(f"there is no row {row}.")
        picture = await asyncio.to_thread(domain.picture, row)
        return Response(picture, media_type="image/jpeg")

    async def answer(self, request: Request) -> Response:
        """Save an answer; what comes next is part of the reply, so that a key press is one round trip."""
        given = await _body(request)
        row, verdict, label = given.get("row"), given.get("verdict"), given.get("label")
        queue, who = str(given.get("queue", "")), _who(given)
        if not isinstance(row, int) or isinstance(row, bool):
            raise ValueError("an answer names its row by number.")
        if label is not None and not isinstance(label, str):
            raise ValueError("a class is named by text.")
        if queue not in (*QUEUES, "audit"):
            raise ValueError(f"there is no queue {queue!r}.")
        if verdict == "new":
            self.session.new(row, **({} if label is None else {"name": label}), queue=queue, annotator=who)
        elif verdict == "known":
            self.session.known(row, label, queue=queue, annotator=who)
        elif verdict == "skip":
            self.session.skip(row, queue=queue, annotator=who)
        else:
            raise ValueError("an answer is 'new', 'known' or 'skip'.")
        self._learn_if_due()
        following = self._next(queue, who) if queue in QUEUES else None
        return _json({"overview": self.views.overview(), "next": following})

    async def undo(self, request: Request) -> Response:
        """Take back one's last move, and show its row again."""
        given = await _body(request)
        rows = self.session.undo(annotator=_who(given))
        queue = str(given.get("queue", ""))
        shown = None
        if rows is not None and len(rows) == 1:
            shown = self.views.row(Suggestion(rows[0], "taken back"), queue)
        self._learn_if_due()
        return _json({"undone": rows, "overview": self.views.overview(), "next": shown})

    async def rename(self, request: Request) -> Response:
        """Rename or merge new classes."""
        given = await _body(request)
        self.session.rename(str(given.get("from", "")), str(given.get("to", "")), annotator=_who(given))
        return _json({"overview": self.views.overview()})

    async def accept(self, request: Request) -> Response:
        """Accept the rest of a group."""
        given = await _body(request)
        group, name = given.get("group"), given.get("name")
        if not isinstance(group, int) or not isinstance(name, str):
            raise ValueError("a group is named by number, a class by text.")
        accepted = self.session.accept_group(group, name, annotator=_who(given))
        self._learn_if_due()
        return _json({"accepted": accepted, "overview": self.views.overview()})

    def _next(self, queue: str, who: str) -> dict[str, Any] | None:
        found = self.session.next(queue, annotator=who)
        return None if found is None else self.views.row(found, queue)

    def _learn_if_due(self) -> None:
        """Learn the ranking anew, beside the answers."""
        if self.session.due and (self._learning is None or self._learning.done()):
            self._learning = asyncio.get_running_loop().create_task(self._learn())

    async def _learn(self) -> None:
        if await asyncio.to_thread(self.session.refit):
            await asyncio.to_thread(self.views.follow_ranking)


def _asset(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    content = (files("openset.review") / "assets" / name).read_bytes()

    async def send(request: Request) -> Response:
        from starlette.responses import Response

        return Response(content, media_type=kind)

    return send


async def _body(request: Request) -> dict[str, Any]:
    try:
        given = json.loads(await request.body())
    except ValueError:
        raise ValueError("an answer is JSON.") from None
    if not isinstance(given, dict):
        raise ValueError("an answer is a JSON object.")
    return given


def _who(given: Any) -> str:
    return str(given.get("annotator") or "me")


def _json(value: Any, status: int = 200) -> Response:
    from starlette.responses import Response

    return Response(json.dumps(value, ensure_ascii=False, allow_nan=False), status, media_type="application/json")


async def _said(request: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 404 if isinstance(error, LookupError) else 400)

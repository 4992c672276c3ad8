"""The viewer over HTTP, on the loopback interface alone.

    GET  /TOKEN/         the page, with the report in it
    GET  /TOKEN/alive    whether somebody is there
    POST /TOKEN/solve    {"loop", "change"}                    ──►  {"entry"}
    POST /TOKEN/check    {"loop", "change", "ii", "ops"}       ──►  {"violations"}
    POST /TOKEN/save     {"loop", "change", "kind"}            ──►  {"file", "text"}

Whoever does not know the token learns nothing, not even that there is a page. A question must come
from the page itself: another site that guesses the port has another origin, and one that has a name
of its own for 127.0.0.1 has another host. The server writes no file; what is saved, the browser
saves.

    threads, one a connection ──► a queue of questions ──► `run`, in the thread of Ctrl-C

Questions are answered one at a time, where a command would answer them: in the main thread.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from typing import Any, cast

from stretto.document import Cursor, parse_json
from stretto.errors import StrettoError
from stretto.report.html import page
from stretto.view.change import Change, read_change
from stretto.view.workshop import KINDS, PAGE, Workshop

HOST = "127.0.0.1"
MOST_BYTES = 8_000_000
"""Of a question; a schedule of many thousand operations takes less."""

PULSE = 0.5
"""Seconds that the server waits for a question before it looks whether Ctrl-C was pressed."""

SAFE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server(ThreadingHTTPServer):
    """Serves one workshop at one address."""

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, workshop: Workshop, port: int = 0) -> None:
        self.workshop = workshop
        self.token = secrets.token_urlsafe(24)
        self._questions: SimpleQueue[_Question | None] = SimpleQueue()
        self.first = self._page()
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            told = getattr(error, "strerror", None) or str(error)
            raise StrettoError(f"cannot listen on {HOST}:{port}: {told}") from None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """What to open."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Answer until `stop` is called, or Ctrl-C raises KeyboardInterrupt here."""
        listening = threading.Thread(target=self.serve_forever, daemon=True)
        listening.start()
        try:
            while (question := self._next()) is not None:
                question.answer()
        finally:
            self.shutdown()
            self.server_close()

    def _next(self) -> _Question | None:
        """The next question. Ctrl-C in the moment before a wait is heard after it, so it ends."""
        while True:
            with suppress(Empty):
                return self._questions.get(timeout=PULSE)

    def stop(self) -> None:
        """End `run`, from any thread."""
        self._questions.put(None)

    def asked(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What comes of work in the thread of `run`; for the threads of connections."""
        question = _Question(work)
        self._questions.put(question)
        return question.future.result()

    def _page(self) -> str:
        document = self.workshop.document()
        knobs = [self.workshop.knobs(loop.name) for loop in self.workshop.source.loops]
        return page({**document, "live": {"knobs": knobs}})

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone away is no news."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError | socket.timeout):
            super().handle_error(request, client_address)


class _Question:
    """Work for another thread, and the answer to come."""

    def __init__(self, work: Callable[[], dict[str, Any]]) -> None:
        self._work = work
        self.future: Future[dict[str, Any]] = Future()

    def answer(self) -> None:
        """Work; what goes wrong is told to whoever asked."""
        try:
            self.future.set_result(self._work())
        except Exception as error:
            self.future.set_exception(error)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server_version = "stretto"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 30

    @property
    def _house(self) -> Server:
        return cast("Server", self.server)

    def do_GET(self) -> None:
        """The page, or a sign of life."""
        match self._asked():
            case "":
                self._answer(200, "text/html; charset=utf-8", self._house.first.encode())
            case "alive":
                self._json({"alive": True})
            case _:
                self._refuse(404)

    def do_POST(self) -> None:
        """A question of the page."""
        length = self.headers.get("Content-Length", "")
        asked = self._asked()
        if asked not in QUESTIONS:
            self._refuse(404)
        elif not length.isdecimal() or len(length) > 9 or int(length) > MOST_BYTES:
            self._refuse(413)
        elif self.headers.get_content_type() != "application/json":
            self._refuse(415)
        else:
            self._json(self._answered(asked, self.rfile.read(int(length))))

    def _answered(self, asked: str, data: bytes) -> dict[str, Any]:
        try:
            top = parse_json(PAGE, data.decode("utf-8"))
            return self._house.asked(lambda: QUESTIONS[asked](self._house.workshop, top))
        except StrettoError as error:
            return {"errors": list(error.lines(self._house.workshop.file))}
        except UnicodeDecodeError:
            return {"errors": ["the question is not UTF-8"]}
        except (MemoryError, OverflowError, RecursionError):
            return {"errors": ["error: not enough memory; are the numbers this large?"]}

    # Who asks ---------------------------------------------------------------------------------

    def _asked(self) -> str | None:
        """What is asked for, of those who may; None: of nobody who may."""
        port = self._house.port
        hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in hosts:
            return None
        if origin is not None and origin not in {f"http://{host}" for host in hosts}:
            return None
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            return None
        _, token, *rest = [*self.path.split("/", 2), "", ""]
        if not compare_digest(token.encode(), self._house.token.encode()):
            return None
        return rest[0]

    # Answers ----------------------------------------------------------------------------------

    def _refuse(self, code: int) -> None:
        self.close_connection = True
        self._answer(code, "text/plain; charset=utf-8", b"")

    def _json(self, document: dict[str, Any]) -> None:
        data = json.dumps(document, separators=(",", ":")).encode()
        self._answer(200, "application/json", data)

    def _answer(self, code: int, kind: str, data: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in SAFE.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal belongs to its user."""


# Questions --------------------------------------------------------------------------------


def _about(workshop: Workshop, top: Cursor) -> tuple[str, Change]:
    name = top.get("loop").text()
    if all(loop.name != name for loop in workshop.source.loops):
        raise top.get("loop").fail(f"there is no loop `{name}`")
    return name, top.opt("change", read_change, Change())


def _solve(workshop: Workshop, top: Cursor) -> dict[str, Any]:
    name, change = _about(workshop, top)
    top.done()
    return workshop.solve(name, change)


def _check(workshop: Workshop, top: Cursor) -> dict[str, Any]:
    name, change = _about(workshop, top)
    ii = top.get("ii").positive()
    placed = [row.table() for row in top.get("ops").items()]
    top.done()
    return {"violations": workshop.check(name, change, ii, placed)}


def _save(workshop: Workshop, top: Cursor) -> dict[str, Any]:
    name, change = _about(workshop, top)
    kind = top.get("kind").choice(KINDS)
    top.done()
    saved = workshop.save(name, change, kind)
    return {"file": saved.file, "text": saved.text}


QUESTIONS = {"solve": _solve, "check": _check, "save": _save}

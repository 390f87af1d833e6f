"""Servers in threads, for tests whose Refract is another process: twenty pages and a slow model."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.library.http import GOOD, page

TOPICS = {
    "bread": (
        "Sourdough bread at home",
        "Flour, water and salt become bread in time. The sourdough needs a warm oven and patience.",
    ),
    "engines": (
        "How steam engines work",
        (
            "A steam engine burns coal to boil water. The steam pushes a piston, the condenser"
            " saves coal."
        ),
    ),
    "databases": (
        "Queues in a database",
        (
            "A job queue in a database needs a lease. Workers take a job and skip what others have"
            " locked."
        ),
    ),
    "gardens": (
        "Tomatoes in small gardens",
        "Tomatoes want sun and water. In small gardens they stand in pots along the warmest wall.",
    ),
}


def twenty_pages() -> dict[str, str]:
    """Return five pages on each of four topics, every topic with its keyword.

    Their numbers are words: a digit might begin the port in their URLs.
    """
    return {
        f"/{topic}/{number}": page(
            f"{title}, part {number}",
            f"{text} This is part {number} of the series. " * 3,
            head=f'<meta name="keywords" content="{topic}">',
        )
        for topic, (title, text) in TOPICS.items()
        for number in ("one", "two", "three", "four", "five")
    }


@contextmanager
def pages_by_thread(pages: dict[str, str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with _running(Handler) as url:
        yield url


class SlowModel:
    """Counts requests; answers none of them before `go` is set."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.go = threading.Event()


@contextmanager
def model_by_thread(model: SlowModel) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            model.asked.release()
            model.go.wait(60)
            body = json.dumps({"choices": [{"message": {"content": json.dumps(GOOD)}}]}).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # whoever asked was killed

        def log_message(self, *_: object) -> None:
            pass

    with _running(Handler) as url:
        yield f"{url}/v1"


@contextmanager
def _running(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

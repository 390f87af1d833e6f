"""The errors that the OpenAPI document lists, and a check that no other is sent."""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from httpx import Response

from refract.app import WebNode
from refract.server.node import ServerNode
from refract.web.hosts import create_accepted_hosts
from refract.web.openapi import METHODS
from refract.web.problems import MEDIA_TYPE

_documents: list[dict[str, Any]] = []
_known: list["DocumentedErrors"] = []


class DocumentedErrors:
    """The codes that each operation of a document lists, with their statuses."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.operations = {name: _codes(described) for name, described in operations_of(document)}
        paths = {name.split(" ")[1] for name in self.operations}
        literal_first = sorted(paths, key=lambda path: ("{" in path, path))
        self._patterns = {
            path: re.compile(re.sub(r"{[^}]+}", "[^/]+", path)) for path in literal_first
        }

    def operation_at(self, method: str, path: str) -> str | None:
        """Return the operation that answers a request; None where the document has none."""
        template = next(
            (
                path_template
                for path_template, pattern in self._patterns.items()
                if pattern.fullmatch(path)
            ),
            None,
        )
        name = f"{'GET' if method == 'HEAD' else method} {template}"
        return name if name in self.operations else None


def operations_of(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield `METHOD /path` and the description of each operation."""
    for path, methods in document["paths"].items():
        yield from (
            (f"{method.upper()} {path}", described)
            for method, described in methods.items()
            if method in METHODS
        )


def _codes(operation: dict[str, Any]) -> dict[str, int]:
    return {
        code: int(status)
        for status, response in operation["responses"].items()
        for code in response.get("content", {}).get(MEDIA_TYPE, {}).get("examples", {})
    }


def read_document(app: WebNode) -> dict[str, Any]:
    """Return the OpenAPI document.

    The routes of all applications are the same, so one document, which takes a second to build,
    does for a process.
    """
    if not _documents:
        _documents.append(app.api.openapi())
    return _documents[0]


def documented_errors(app: WebNode) -> DocumentedErrors:
    """Return what the document lists."""
    if not _known:
        _known.append(DocumentedErrors(read_document(app)))
    return _known[0]


def check_documented(app: ServerNode) -> Callable[[Response], Awaitable[None]]:
    """Return a hook for a client, which fails on an error of the API that the document does not
    list.
    """

    async def check(response: Response) -> None:
        if not isinstance(app, WebNode) or not response.headers.get("content-type", "").startswith(
            MEDIA_TYPE
        ):
            return
        host = response.request.headers["host"].encode()
        if app.rt.singleton(create_accepted_hosts).find_domain(host):
            return  # another domain has short links only
        listed = documented_errors(app)
        operation = listed.operation_at(response.request.method, response.request.url.path)
        if operation is None or response.request.method == "HEAD":
            return
        await response.aread()
        code, status = response.json()["code"], response.status_code
        assert listed.operations[operation].get(code) == status, (
            f"{operation} answered {status} {code}, which the document does not list"
        )

    return check

"""The format between server and extraction process: a request, then chunks and an outcome. Pure."""

import json
import struct
from typing import Any

REQUEST_HEADER = struct.Struct("!II")
"""Lengths of the JSON that names the task, and of the body after it."""

RESPONSE_HEADER = struct.Struct("!BI")
"""The kind of what follows (`CHUNK`, `DONE`, `REFUSED`, `FAILED`), and its length."""

CHUNK, DONE, REFUSED, FAILED = range(4)
MAX_CHUNK_BYTES = 256 * 1024
"""Bytes of one chunk, which the server's event loop handles without yielding."""


def pack_request(body: bytes, task: dict[str, Any]) -> bytes:
    head = json.dumps(task).encode()
    return REQUEST_HEADER.pack(len(head), len(body)) + head + body


def pack_response(kind: int, content: bytes = b"") -> bytes:
    return RESPONSE_HEADER.pack(kind, len(content)) + content

"""The bytes between server and extraction process: a question, then pieces of the result and how it ended. Pure."""

import json
import struct
from typing import Any

REQUEST_HEADER = struct.Struct("!II")
"""Lengths of the JSON that names the task, and of the body behind it."""

RESPONSE_HEADER = struct.Struct("!BI")
"""What follows (`PIECE`, `DONE`, `REFUSED`, `FAILED`), and its length."""

CHUNK, DONE, REFUSED, FAILED = range(4)
MAX_CHUNK_BYTES = 256 * 1024
"""Bytes of one piece: what the server's loop handles in one go."""


def pack_request(body: bytes, named: dict[str, Any]) -> bytes:
    head = json.dumps(named).encode()
    return REQUEST_HEADER.pack(len(head), len(body)) + head + body


def pack_response(kind: int, content: bytes = b"") -> bytes:
    return RESPONSE_HEADER.pack(kind, len(content)) + content

"""The bytes between server and extraction process: a question, then pieces of the result and how it ended. Pure."""

import json
import struct
from typing import Any

QUESTION = struct.Struct("!II")
"""Lengths of the JSON that names the task, and of the body behind it."""

ANSWER = struct.Struct("!BI")
"""What follows (`PIECE`, `DONE`, `REFUSED`, `FAILED`), and its length."""

PIECE, DONE, REFUSED, FAILED = range(4)
MAX_PIECE = 256 * 1024
"""Bytes of one piece: what the server's loop handles in one go."""


def pack_question(body: bytes, named: dict[str, Any]) -> bytes:
    head = json.dumps(named).encode()
    return QUESTION.pack(len(head), len(body)) + head + body


def pack_answer(kind: int, content: bytes = b"") -> bytes:
    return ANSWER.pack(kind, len(content)) + content

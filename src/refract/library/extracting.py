"""The extracting process: reads one page after the other from standard input, and ends with it.

Foreign HTML is parsed here and nowhere else: a page that takes too long or too much memory ends this process, not the program.
"""

import dataclasses
import json
import resource
import struct
import sys
from datetime import datetime
from typing import Any, BinaryIO

from refract.library.enrich.material import Extracted

MEMORY = 1024**3
HEAD = struct.Struct("!I")


def packed(value: dict[str, Any]) -> bytes:
    body = json.dumps(value, default=_plain).encode("utf-8", "surrogatepass")
    return HEAD.pack(len(body)) + body


def as_extracted(value: dict[str, Any]) -> Extracted:
    published = value.get("published_at")
    return Extracted(
        **{**value, "keywords": tuple(value["keywords"]), "published_at": datetime.fromisoformat(published) if published else None}
    )


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else list(value)


def serve(given: BinaryIO, answers: BinaryIO) -> None:
    from refract.library.extract import extract  # noqa: PLC0415 - heavy, and of use in this process alone

    while len(head := given.read(HEAD.size)) == HEAD.size:
        asked = json.loads(given.read(HEAD.unpack(head)[0]))
        try:
            answer: dict[str, Any] = {"page": dataclasses.asdict(extract(asked["html"], asked["url"]))}
        except Exception as error:  # noqa: BLE001 - whatever a page does to a parser is an answer
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        answers.write(packed(answer))
        answers.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    serve(sys.stdin.buffer, sys.stdout.buffer)

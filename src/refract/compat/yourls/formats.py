"""The formats of YOURLS' answers: JSON, JSONP, XML and bare text."""

import re
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from starlette.responses import Response

from refract.compat.pagination import dump_json

_CALLBACK = re.compile(r"[A-Za-z_$][\w.$]{0,127}", re.ASCII)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def make_answer(
    parameters: Mapping[str, Any], answer: Mapping[str, Any], simple: str, status: int | None = None
) -> Response:
    """Return an answer in the format that was asked for: XML unless named, text if misspelled."""
    code = status or int(answer.get("statusCode") or answer.get("errorCode") or 200)
    match parameters.get("format", "xml"):
        case "json":
            return Response(dump_json(answer), code, media_type="application/json")
        case "jsonp":
            return _make_jsonp(parameters, answer, code)
        case "xml":
            text = f'<?xml version="1.0" encoding="UTF-8"?>\n<root>{_build_xml(answer)}</root>'
            return Response(text, code, media_type="application/xml")
    return Response(simple, code, media_type="text/plain")


def _make_jsonp(parameters: Mapping[str, Any], answer: Mapping[str, Any], code: int) -> Response:
    """Return a script that calls a function; other sites load it, so its name is checked."""
    callback = str(parameters.get("callback") or parameters.get("jsonp") or "")
    if not _CALLBACK.fullmatch(callback):
        wrong = {"errorCode": "400", "error": "Invalid callback parameter"}
        return Response(dump_json(wrong), 400, media_type="application/json")
    document = dump_json(answer).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return Response(
        f"{callback}({document})",
        code,
        {"Cross-Origin-Resource-Policy": "cross-origin"},
        media_type="application/javascript",
    )


def _build_xml(answer: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for name, value in answer.items():
        inner = _build_xml(value) if isinstance(value, Mapping) else _escape(value)
        parts.append(f"<{name}>{inner}</{name}>")
    return "".join(parts)


def _escape(value: Any) -> str:
    return escape(_UNPRINTABLE.sub("", str(value)))

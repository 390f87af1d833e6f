"""YOURLS' API at `/yourls-api.php`: one address for all actions, by GET or POST."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from starlette.responses import Response

from refract.compat.dialect import Dialect, Operation
from refract.compat.pagination import dump_json
from refract.compat.request import DialectRequest, collect_parameters
from refract.compat.yourls.actions import ACTIONS
from refract.compat.yourls.errors import YourlsFailure
from refract.compat.yourls.signatures import authenticate_parameters
from refract.core.errors import RefractError, Unauthenticated
from refract.identity.errors import MissingScope
from refract.web.networks import client_network
from refract.web.routing import create_anonymous_body_limit

_CALLBACK = re.compile(r"[A-Za-z_$][\w.$]{0,127}", re.ASCII)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PARAMETERS = "yourls_parameters"


async def run_action(request: DialectRequest) -> Response:
    """Run the action that the parameters name. Those of a form take precedence."""
    parameters = collect_parameters(request.query_params.multi_items())
    request.scope[_PARAMETERS] = parameters
    if request.method == "POST":
        rt = request.rt
        await rt.singleton(create_anonymous_body_limit).charge(client_network(request, rt))
        parameters.update(await request.read_fields())
    request.caller = await authenticate_parameters(request, parameters)
    action = ACTIONS.get(str(parameters.get("action", "")))
    if action is None:
        message = 'Unknown or missing "action" parameter'
        raise YourlsFailure({"errorCode": "400", "message": message}, message)
    if action.scope not in request.caller.scopes:
        raise MissingScope(scope=action.scope)
    answer, simple = await action.run(request, parameters)
    return make_answer(parameters, answer, simple)


class YourlsDialect(Dialect):
    """YOURLS' API."""

    name = "yourls"
    roots = (("/yourls-api.php", "/yourls-api.php"),)

    def list_operations(self) -> Sequence[Operation]:
        """Return both methods. The scope depends on the action, which may be in the body."""
        return Operation("GET", "/", run_action, None), Operation("POST", "/", run_action, None)

    def get_key(self, request: DialectRequest) -> str | None:  # noqa: ARG002 - in the parameters
        return None

    def make_error_response(self, request: DialectRequest, error: RefractError) -> Response:
        parameters: dict[str, Any] = request.scope.get(_PARAMETERS, {})
        if isinstance(error, YourlsFailure):
            return make_answer(parameters, error.answer, error.simple)
        status, message = error.status, str(error.message)
        if isinstance(error, Unauthenticated):
            named = parameters.get("password")
            status, message = 403, "Invalid username or password" if named else "Please log in"
        answer = {"message": message, "errorCode": str(status), "callback": ""}
        return make_answer(parameters, answer, message, status)


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

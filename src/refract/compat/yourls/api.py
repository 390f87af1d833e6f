"""YOURLS' API at `/yourls-api.php`: one address for all actions, by GET or POST."""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from refract.compat.dialect import Dialect, Operation
from refract.compat.request import DialectRequest, collect_parameters
from refract.compat.yourls.actions import ACTIONS
from refract.compat.yourls.errors import YourlsFailure
from refract.compat.yourls.formats import make_answer
from refract.compat.yourls.signatures import authenticate_parameters
from refract.core.errors import RefractError, Unauthenticated
from refract.identity.errors import MissingScope
from refract.web.networks import client_network
from refract.web.routing import create_anonymous_body_limit

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

"""A dialect: the protocol of another system at the paths of the original."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Scope as AsgiScope

from refract.compat.request import DialectRequest
from refract.core.errors import RefractError
from refract.identity.authentication import Caller, authenticate_key
from refract.identity.errors import MissingScope, SignInRequired, TeamKeyForbidden
from refract.identity.models import Scope
from refract.web.problems import MethodNotAllowed, PageNotFound

DialectHandler = Callable[[DialectRequest], Awaitable[Response]]


@dataclass(frozen=True)
class Operation:
    """A call that a dialect answers. Without a `scope` it needs no key."""

    method: str
    path: str
    handle: DialectHandler
    scope: Scope | None = Scope.READ
    pattern: Any = field(init=False)
    convertors: Any = field(init=False)

    def __post_init__(self) -> None:
        pattern, _, convertors = compile_path(self.path)
        object.__setattr__(self, "pattern", pattern)
        object.__setattr__(self, "convertors", convertors)

    def match(self, path: str) -> dict[str, Any] | None:
        """Return the parameters in a path, or None if it is another operation's."""
        found = self.pattern.match(path)
        if found is None:
            return None
        return {
            name: self.convertors[name].convert(text) for name, text in found.groupdict().items()
        }


class Dialect(ABC):
    """The protocol of another system."""

    name: ClassVar[str]
    roots: ClassVar[Sequence[tuple[str, str]]]
    """The paths that belong to it, each with the part that its operations leave out."""
    is_personal: ClassVar[bool] = False
    """Whether it is about what belongs to a person, which keys of teams cannot use."""

    @abstractmethod
    def list_operations(self) -> Sequence[Operation]:
        """Return all operations; literal paths come before those with parameters."""

    @abstractmethod
    def get_key(self, request: DialectRequest) -> str | None:
        """Return the API key of a request, from where its clients send it."""

    @abstractmethod
    def make_error_response(self, request: DialectRequest, error: RefractError) -> Response:
        """Return an error in the shape that its clients expect."""

    @cached_property
    def operations(self) -> Sequence[Operation]:
        return self.list_operations()

    def find_path(
        self,
        scope: AsgiScope,
        headers: Headers,  # noqa: ARG002 - see linkding
    ) -> str | None:
        """Return the path of an operation, without a trailing slash; None if it is not ours."""
        path: str = scope["path"]
        for root, left_out in self.roots:
            if path == root or path.startswith(f"{root}/"):
                return path[len(left_out) :].rstrip("/") or "/"
        return None

    def list_methods(self, path: str) -> list[str]:
        return sorted(
            {operation.method for operation in self.operations if operation.match(path) is not None}
        )

    def find_operation(self, method: str, path: str) -> tuple[Operation, dict[str, Any]]:
        """Return the operation and the parameters in its path.

        Raises `PageNotFound` or `MethodNotAllowed`.
        """
        for operation in self.operations:
            if operation.method == method and (found := operation.match(path)) is not None:
                return operation, found
        if not (allowed := self.list_methods(path)):
            raise PageNotFound
        error = MethodNotAllowed(method=method[:20])
        error.headers = {"Allow": ", ".join(allowed)}
        raise error

    async def authenticate(self, request: DialectRequest) -> Caller:
        """Return the caller behind the key of a request. Cookies are never read.

        Raises `SignInRequired` without a key, `InvalidCredentials` for a wrong one.
        """
        key = self.get_key(request)
        if not key:
            raise SignInRequired
        return await authenticate_key(request, request.rt, key)

    async def respond(self, request: DialectRequest) -> Response:
        """Answer a request, or raise what is wrong with it."""
        operation, request.scope["path_params"] = self.find_operation(request.method, request.path)
        if operation.scope is not None:
            request.caller = await self.authenticate(request)
            if self.is_personal and request.caller.user.is_team_account:
                raise TeamKeyForbidden
            if operation.scope not in request.caller.scopes:
                raise MissingScope(scope=operation.scope)
        return await operation.handle(request)

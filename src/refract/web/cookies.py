"""The cookies of this product: their names and attributes."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from refract.core.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie for this host only that scripts cannot read."""

    base_name: str

    def get_name(self, rt: Runtime) -> str:
        """Return the name in browsers.

        `__Host-` makes browsers insist on Secure and on this host alone, so that no neighbouring
        subdomain can plant one; it cannot be used on plain http.
        """
        return f"__Host-{self.base_name}" if rt.settings.https else self.base_name

    def read(self, request: Request, rt: Runtime) -> str | None:
        """Return the value that the browser sent, or None."""
        return request.cookies.get(self.get_name(rt))

    def set(self, response: Response, rt: Runtime, value: str, *, max_age: int) -> None:
        """Make the browser keep `value` for `max_age` seconds."""
        response.set_cookie(
            self.get_name(rt),
            value,
            max_age=max_age,
            path="/",
            secure=rt.settings.https,
            httponly=True,
            samesite="lax",
        )

    def delete(self, response: Response, rt: Runtime) -> None:
        """Make the browser delete it, under the attributes that it was set with."""
        response.delete_cookie(
            self.get_name(rt),
            path="/",
            secure=rt.settings.https,
            httponly=True,
            samesite="lax",
        )

"""Asking as somebody: headers for each way of proving who one is, and the mark for tests that need
only SQLite.
"""

from http.cookiejar import CookieJar, DefaultCookiePolicy

import pytest
from httpx import ASGITransport, AsyncClient

from refract.core.runtime import Runtime
from refract.identity.authentication import SESSION_COOKIE
from refract.server.node import ServerNode
from tests.documented import check_documented

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
on_servers = pytest.mark.parametrize("database", ["postgresql", "mysql"], indirect=True)
"""For what does not depend on the database.

Above a test, or `pytestmark = on_sqlite` where every test of a file uses one.
"""


def by_key(clear: str) -> dict[str, str]:
    return {"X-API-Key": clear}


def by_cookie(rt: Runtime, cookie: str, *, proven: bool = True) -> dict[str, str]:
    """As a browser sends it; `proven` adds the Origin of our own pages."""
    headers = {"Cookie": f"{SESSION_COOKIE.get_name(rt)}={cookie}"}
    return headers | {"Origin": rt.settings.public_url} if proven else headers


def client_of(app: ServerNode) -> AsyncClient:
    """Return a client that shares this process with the application, and accepts only documented
    errors.

    It keeps no cookies, so an identity is exactly its headers.
    """
    forgetful = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    hooks = {"response": [check_documented(app)]}
    return AsyncClient(
        transport=ASGITransport(app),
        base_url=app.rt.settings.public_url,
        cookies=forgetful,
        event_hooks=hooks,
    )

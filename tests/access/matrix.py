"""The access matrix: a row for every route, saying what each identity gets.

To add a route, add `"METHOD /path": Row(PROFILE, json={…a body that succeeds…})` under its feature. Where one identity differs from the
profile, say so: `Row(OWNED_WRITE.but({Who.CO_OWNER: SEEN}), …)`. Path parameters are made by `tests/access/objects.py`.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.access.identities import Who


class Outcome(Enum):
    """What an identity gets. All but FINE and SEEN must be the same for an object that does not exist."""

    FINE = "2xx or 3xx"
    SIGN_IN = "401"
    FORBIDDEN = "403, whatever the path names"
    SEEN = "403: may look at it, but not do this"
    HIDDEN = "404, as if it were not there"


FINE, SIGN_IN, FORBIDDEN, SEEN, HIDDEN = Outcome


@dataclass(frozen=True)
class Profile:
    """An outcome for everybody."""

    outcomes: dict[Who, Outcome]

    def but(self, changes: dict[Who, Outcome]) -> "Profile":
        return Profile(self.outcomes | changes)


_DEAD = {Who.OWNER_REVOKED: SIGN_IN, Who.SUSPENDED: SIGN_IN}
_WEAK = {Who.OWNER_READ_ONLY: FORBIDDEN, Who.OWNER_UNPROVEN: FORBIDDEN}
_NOT_MINE = (Who.CO_OWNER, Who.RECIPIENT, Who.OTHER, Who.ADMIN, Who.ADMIN_WITHOUT_SCOPE)

OPEN = Profile(dict.fromkeys(Who, FINE))
"""Asks nobody who they are."""
OPEN_READ = OPEN.but(_DEAD)
"""For strangers too; but a credential that is sent must be good."""
OPEN_WRITE = OPEN_READ.but({Who.OWNER_UNPROVEN: FORBIDDEN})
SIGNED_IN_READ = OPEN_READ.but({Who.STRANGER: SIGN_IN})
"""About the person who asks: everybody signed in has their own."""
SIGNED_IN_WRITE = SIGNED_IN_READ.but(_WEAK)
PRIVATE_READ = SIGNED_IN_READ.but(dict.fromkeys(_NOT_MINE, HIDDEN))
"""An object that one person has to themselves; not even administrators reach it by this route."""
PRIVATE_WRITE = PRIVATE_READ.but(_WEAK)
OWNED_READ = SIGNED_IN_READ.but({Who.OTHER: HIDDEN, Who.ADMIN_WITHOUT_SCOPE: HIDDEN})
"""An object that has owners and is shared: all of them, and administrators."""
OWNED_WRITE = OWNED_READ.but({**_WEAK, Who.RECIPIENT: SEEN})
OWNED_TRANSFER = OWNED_WRITE.but({Who.CO_OWNER: SEEN})
"""The primary owner and administrators alone."""
ADMIN_READ = SIGNED_IN_READ.but({who: FORBIDDEN for who in Who if who not in (Who.STRANGER, *_DEAD, Who.ADMIN)})
"""Administrators with the scope for it. Unproven browsers of administrators have a test of their own."""
ADMIN_WRITE = ADMIN_READ


@dataclass(frozen=True)
class Row:
    """A profile, and what makes the request succeed for those who may."""

    profile: Profile
    json: Any = None
    form: dict[str, str] | None = None
    query: dict[str, str] | None = None


ROWS: dict[str, Row] = {
    # -- operations and what browsers ask for
    "GET /health": Row(OPEN),
    "GET /ready": Row(OPEN),
    "GET /metrics": Row(OPEN),
    "GET /favicon.ico": Row(OPEN),
    "GET /robots.txt": Row(OPEN),
    "GET /static/{digest}/{name}": Row(OPEN),
    "GET /api/openapi.json": Row(OPEN),
    "HEAD /api/openapi.json": Row(OPEN),
    # -- pages
    "GET /": Row(OPEN_READ),
    "GET /api/docs": Row(OPEN_READ),
    "GET /auth/sign-in": Row(OPEN_READ),
    "GET /auth/sign-in/{token}": Row(OPEN),
    "POST /auth/sign-in/{token}": Row(Profile(dict.fromkeys(Who, FORBIDDEN) | {Who.OWNER_IN_BROWSER: FINE})),  # the origin decides
    "POST /auth/sign-out": Row(OPEN_WRITE),
    "GET /app/settings": Row(SIGNED_IN_READ),
    "POST /app/settings/keys": Row(SIGNED_IN_WRITE, form={"name": "from a form"}),
    "POST /app/settings/keys/{key_id}/revoke": Row(PRIVATE_WRITE),
    # -- me
    "GET /api/v1/me": Row(SIGNED_IN_READ),
    "PATCH /api/v1/me": Row(SIGNED_IN_WRITE, json={"bio": "Hello."}),
    "GET /api/v1/me/sessions": Row(SIGNED_IN_READ),
    "DELETE /api/v1/me/sessions": Row(SIGNED_IN_WRITE),
    "DELETE /api/v1/me/sessions/{session_id}": Row(PRIVATE_WRITE),
    # -- keys
    "GET /api/v1/keys": Row(SIGNED_IN_READ),
    "POST /api/v1/keys": Row(SIGNED_IN_WRITE, json={"name": "from the matrix"}),
    "DELETE /api/v1/keys/{key_id}": Row(PRIVATE_WRITE),
    # -- administrators
    "GET /api/v1/admin/audit": Row(ADMIN_READ),
}

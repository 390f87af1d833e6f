"""The access matrix: a row for every route, saying what each identity gets.

To add a route, add `"METHOD /path": Row(PROFILE, json={…a body that succeeds…})` under its feature.
Where one identity differs from the profile, say so: `Row(OWNED_WRITE.but({Who.CO_OWNER: SEEN}),
…)`. Path parameters are made by `tests/access/objects.py`.
"""

from dataclasses import dataclass, replace
from enum import Enum
from secrets import token_hex
from typing import Any

from tests.access.identities import CHOIR, Who
from tests.conftest import START
from tests.identity.issuer import logout_token


class Outcome(Enum):
    """What an identity gets.

    All but FINE, SEEN and UNKNOWN must be the same for an object that does not exist.
    """

    FINE = "2xx or 3xx"
    SIGN_IN = "401"
    FORBIDDEN = "403, whatever the path names"
    SEEN = "403: may look at it, but not do this"
    HIDDEN = "404, as if it were not there"
    UNKNOWN = "404: may look at it, but not at what the body names"


FINE, SIGN_IN, FORBIDDEN, SEEN, HIDDEN, UNKNOWN = Outcome


@dataclass(frozen=True)
class Profile:
    """An outcome for everybody."""

    outcomes: dict[Who, Outcome]

    def but(self, changes: dict[Who, Outcome]) -> "Profile":
        return Profile(self.outcomes | changes)


_DEAD = {Who.OWNER_REVOKED: SIGN_IN, Who.SUSPENDED: SIGN_IN}
_WEAK = {Who.OWNER_READ_ONLY: FORBIDDEN, Who.OWNER_UNPROVEN: FORBIDDEN}
_OF_THE_TEAM = (Who.MANAGER, Who.MEMBER)
_NOT_MINE = (
    *(Who.CO_OWNER, Who.RECIPIENT, *_OF_THE_TEAM, Who.FORMER_MEMBER),
    *(Who.INVITED, Who.OTHER, Who.ADMIN, Who.ADMIN_WITHOUT_SCOPE),
)

OPEN = Profile(dict.fromkeys(Who, FINE))
"""Asks nobody who they are."""
OPEN_READ = OPEN.but(_DEAD | {Who.TEAM_KEY: FORBIDDEN})
"""For strangers too; but a credential that is sent must be good."""
OPEN_WRITE = OPEN_READ.but({Who.OWNER_UNPROVEN: FORBIDDEN})
PROVEN_WRITE = Profile(dict.fromkeys(Who, FORBIDDEN) | _DEAD | {Who.OWNER_IN_BROWSER: FINE})
"""A form for everybody, which must come from our own pages."""
SIGNED_IN_READ = OPEN_READ.but({Who.STRANGER: SIGN_IN})
"""About the person who asks: everybody signed in has their own."""
SIGNED_IN_WRITE = SIGNED_IN_READ.but(_WEAK)
PRIVATE_READ = SIGNED_IN_READ.but(dict.fromkeys(_NOT_MINE, HIDDEN))
"""An object that one person has to themselves; not even administrators reach it by this route."""
PRIVATE_WRITE = PRIVATE_READ.but(_WEAK)
ACCOUNT_READ = SIGNED_IN_READ.but(
    {
        who: FORBIDDEN
        for who in Who
        if who not in (Who.STRANGER, *_DEAD, Who.OWNER_IN_BROWSER, Who.OWNER_UNPROVEN, Who.ADMIN)
    }
)
"""The account itself: a browser, or a key with the scope `account`, which this world's
administrator has.
"""
ACCOUNT_WRITE = ACCOUNT_READ.but({Who.OWNER_UNPROVEN: FORBIDDEN})
OWN_ACCOUNT_WRITE = ACCOUNT_WRITE.but({Who.ADMIN: HIDDEN})
"""A key or session of the owner's."""
NOBODY_S_WRITE = SIGNED_IN_WRITE.but(
    {who: HIDDEN for who, outcome in SIGNED_IN_WRITE.outcomes.items() if outcome is FINE}
)
"""A body that names objects of nobody's."""
OWNED_READ = SIGNED_IN_READ.but(
    dict.fromkeys((Who.INVITED, Who.OTHER, Who.FORMER_MEMBER, Who.ADMIN_WITHOUT_SCOPE), HIDDEN)
)
"""An object that has owners and is shared: all of them, and administrators."""
OWNED_WRITE = OWNED_READ.but({**_WEAK, Who.RECIPIENT: SEEN})
OWNED_TRANSFER = OWNED_WRITE.but(dict.fromkeys((Who.CO_OWNER, *_OF_THE_TEAM), SEEN))
"""The primary owner and administrators alone."""
TEAM_READ = OWNED_READ.but(dict.fromkeys((Who.CO_OWNER, Who.RECIPIENT), HIDDEN))
"""A team: its members, and administrators."""
TEAM_WRITE = TEAM_READ.but({**_WEAK, Who.MEMBER: SEEN})
"""Its managers, and administrators."""
DOMAIN_READ = SIGNED_IN_READ.but(
    {
        who: HIDDEN
        for who, outcome in SIGNED_IN_READ.outcomes.items()
        if outcome is FINE and who not in (*_OF_THE_TEAM, Who.ADMIN)
    }
)
"""A domain for a team: its members, and administrators."""
NOWHERE = Profile(dict.fromkeys(Who, HIDDEN))
"""Nothing is there, for anyone."""
MADE_READ = PRIVATE_READ.but({Who.STRANGER: HIDDEN, Who.ADMIN: FINE})
"""A list: its maker's, and administrators'.

Strangers may be makers too, so nobody is asked to sign in for it.
"""
MADE_WRITE = MADE_READ.but(_WEAK)
LIST_TRANSFER = MADE_WRITE.but({Who.STRANGER: SIGN_IN})
"""Teams own lists of users, and strangers are in none."""
ADMIN_READ = SIGNED_IN_READ.but(
    {who: FORBIDDEN for who in Who if who not in (Who.STRANGER, *_DEAD, Who.ADMIN)}
)
"""Administrators with the scope for it.

Unproven browsers of administrators have a test of their own.
"""
ADMIN_WRITE = ADMIN_READ


@dataclass(frozen=True)
class Row:
    """A profile, and what makes the request succeed for those who may."""

    profile: Profile
    json: Any = None
    """The body, or a function that makes one where no two requests may send the same."""
    form: Any = None
    """The same for a form."""
    files: dict[str, tuple[str, bytes]] | None = None
    query: dict[str, str] | None = None
    last: bool = False
    """Whoever succeeds is gone afterwards, so everybody begins in a world of their own."""
    once: bool = False
    """Whoever succeeds can't do it again, so what was written is put back afterwards."""

    @property
    def body(self) -> Any:
        return self.json() if callable(self.json) else self.json

    @property
    def fields(self) -> Any:
        return self.form() if callable(self.form) else self.form


ROWS: dict[str, Row] = {
    # -- operations and what browsers ask for
    "GET /health": Row(OPEN),
    "GET /ready": Row(OPEN),
    "GET /metrics": Row(OPEN),
    "GET /favicon.ico": Row(OPEN),
    "GET /robots.txt": Row(OPEN),
    "GET /.well-known/security.txt": Row(OPEN),
    "GET /.well-known/gpc.json": Row(OPEN),
    "GET /static/{digest}/{name:path}": Row(OPEN),
    "GET /opensearch.xml": Row(OPEN),
    "GET /manifest.webmanifest": Row(OPEN),
    "GET /api/openapi.json": Row(OPEN),
    # -- pages
    "GET /": Row(OPEN_READ),
    "GET /api/docs": Row(OPEN_READ),
    "GET /api/docs/{section}": Row(OPEN_READ),
    "GET /auth/sign-in": Row(OPEN_READ),
    "GET /auth/sign-in/{token}": Row(OPEN),
    "POST /auth/sign-in/{token}": Row(
        Profile(dict.fromkeys(Who, FORBIDDEN) | {Who.OWNER_IN_BROWSER: FINE})
    ),  # the origin decides
    "GET /auth/invitation/{token}": Row(OPEN_READ),
    "POST /auth/invitation/{token}": Row(
        Profile(dict.fromkeys(Who, FORBIDDEN) | {Who.OWNER_IN_BROWSER: FINE}),
        form={"name": "From the matrix"},
    ),  # the origin decides
    "POST /auth/sign-out": Row(OPEN_WRITE),
    "GET /auth/oidc/{issuer_name}": Row(OPEN),
    "GET /auth/oidc/{issuer_name}/callback": Row(
        Profile(dict.fromkeys(Who, FORBIDDEN))
    ),  # only the answer to one's own question counts
    "POST /auth/oidc/{issuer_name}/backchannel-logout": Row(
        OPEN, form=lambda: {"logout_token": logout_token(START, jti=token_hex(8))}
    ),  # the provider's signature decides
    "GET /auth/signed-out": Row(OPEN),
    "GET /app/settings": Row(ACCOUNT_READ),
    "POST /app/settings/profile": Row(ACCOUNT_WRITE, form={"nickname": "Matrix"}),
    "POST /app/settings/sessions/end-others": Row(ACCOUNT_WRITE),
    "POST /app/settings/sessions/{session_id}/end": Row(OWN_ACCOUNT_WRITE),
    "POST /app/settings/delete": Row(ACCOUNT_WRITE, form={"confirm": "delete"}, last=True),
    "POST /app/settings/keys": Row(ACCOUNT_WRITE, form={"name": "from a form", "scopes": "read"}),
    "POST /app/settings/keys/{key_id}/revoke": Row(OWN_ACCOUNT_WRITE),
    # -- me
    "GET /api/v1/me": Row(SIGNED_IN_READ),
    "PATCH /api/v1/me": Row(SIGNED_IN_WRITE, json={"bio": "Hello."}),
    "DELETE /api/v1/me": Row(ACCOUNT_WRITE, last=True),
    "GET /api/v1/me/export": Row(SIGNED_IN_READ),
    "GET /api/v1/me/sessions": Row(ACCOUNT_READ),
    "DELETE /api/v1/me/sessions": Row(ACCOUNT_WRITE),
    "DELETE /api/v1/me/sessions/{session_id}": Row(OWN_ACCOUNT_WRITE),
    # -- keys
    "GET /api/v1/keys": Row(ACCOUNT_READ),
    "POST /api/v1/keys": Row(ACCOUNT_WRITE, json={"name": "from the matrix"}),
    "DELETE /api/v1/keys/{key_id}": Row(OWN_ACCOUNT_WRITE),
    # -- links
    "GET /api/v1/links": Row(SIGNED_IN_READ),
    "POST /api/v1/links": Row(SIGNED_IN_WRITE, json={"destination": "https://example.com/new"}),
    "POST /api/v1/links/bulk": Row(
        SIGNED_IN_WRITE, json={"links": [{"destination": "https://example.com/bulk"}]}
    ),
    "POST /api/v1/links/imports": Row(
        SIGNED_IN_WRITE, json=[{"destination": "https://example.com/from-a-file"}]
    ),
    "POST /api/v1/links/imports/remote": Row(
        SIGNED_IN_WRITE,
        json={"system": "kutt", "url": "https://kutt.example.com", "key": "k"},
        once=True,
    ),
    "GET /api/v1/links/imports": Row(SIGNED_IN_READ),
    "GET /api/v1/links/imports/{import_id}": Row(PRIVATE_READ),
    "GET /api/v1/links/imports/{import_id}/rows": Row(PRIVATE_READ),
    "POST /api/v1/links/imports/{import_id}/run": Row(PRIVATE_WRITE),
    "POST /api/v1/links/imports/{import_id}/stop": Row(PRIVATE_WRITE),
    "POST /api/v1/links/imports/{import_id}/rollback": Row(PRIVATE_WRITE),
    "GET /api/v1/links/{link_id}": Row(OWNED_READ),
    "PATCH /api/v1/links/{link_id}": Row(OWNED_WRITE, json={"title": "From the matrix"}),
    "DELETE /api/v1/links/{link_id}": Row(OWNED_WRITE),
    "GET /api/v1/links/{link_id}/rules": Row(OWNED_READ.but({Who.RECIPIENT: SEEN})),
    "PUT /api/v1/links/{link_id}/rules": Row(
        OWNED_WRITE,
        json={
            "rules": [{"destination": "https://example.com/", "conditions": {"countries": ["AT"]}}]
        },
    ),
    "GET /api/v1/me/qr-style": Row(SIGNED_IN_READ),
    "PUT /api/v1/me/qr-style": Row(SIGNED_IN_WRITE, json={"color": "#1d4ed8"}),
    "GET /app/links/{link_id}/qr": Row(OWNED_READ.but({Who.RECIPIENT: SEEN})),
    "POST /app/links/{link_id}/qr": Row(OWNED_WRITE, form={"color": "#1d4ed8"}),
    "GET /api/v1/utm-templates": Row(SIGNED_IN_READ),
    "POST /api/v1/utm-templates": Row(
        SIGNED_IN_WRITE, json=lambda: {"name": f"matrix {token_hex(6)}", "utm_source": "matrix"}
    ),
    "GET /api/v1/utm-templates/{template_id}": Row(PRIVATE_READ),
    "PATCH /api/v1/utm-templates/{template_id}": Row(PRIVATE_WRITE, json={"utm_term": "matrix"}),
    "DELETE /api/v1/utm-templates/{template_id}": Row(PRIVATE_WRITE),
    "GET /app/utm-templates": Row(SIGNED_IN_READ),
    "POST /app/utm-templates": Row(
        SIGNED_IN_WRITE, form=lambda: {"name": f"form {token_hex(6)}", "utm_source": "matrix"}
    ),
    "POST /app/utm-templates/{template_id}": Row(PRIVATE_WRITE, form={"utm_term": "matrix"}),
    "POST /app/utm-templates/{template_id}/delete": Row(PRIVATE_WRITE),
    "POST /api/v1/links/{link_id}/disable": Row(OWNED_WRITE),
    "POST /api/v1/links/{link_id}/enable": Row(OWNED_WRITE),
    "POST /api/v1/links/{link_id}/renew": Row(OWNED_WRITE),
    "POST /api/v1/links/{link_id}/undo": Row(OWNED_WRITE),
    "GET /api/v1/links/{link_id}/owners": Row(OWNED_READ),
    "POST /api/v1/links/{link_id}/owners": Row(OWNED_WRITE, json={"email": "otto@example.com"}),
    "DELETE /api/v1/links/{link_id}/owners/{user_id}": Row(OWNED_WRITE),
    "GET /api/v1/links/{link_id}/teams": Row(OWNED_READ),
    "POST /api/v1/links/{link_id}/teams": Row(OWNED_WRITE, json={"team": CHOIR}),
    "DELETE /api/v1/links/{link_id}/teams/{team_id}": Row(OWNED_WRITE),
    "POST /app/links/{link_id}/teams": Row(OWNED_WRITE, form={"team": CHOIR}),
    "POST /app/links/{link_id}/teams/transfer": Row(OWNED_TRANSFER, form={"team": CHOIR}),
    "POST /app/links/{link_id}/teams/{team_id}/remove": Row(OWNED_WRITE),
    "POST /api/v1/links/{link_id}/transfer": Row(
        OWNED_TRANSFER, json={"email": "otto@example.com"}
    ),
    "GET /api/v1/links/{link_id}/shares": Row(OWNED_READ.but({Who.RECIPIENT: SEEN})),
    "POST /api/v1/links/{link_id}/shares": Row(OWNED_WRITE, json={"email": "otto@example.com"}),
    "DELETE /api/v1/links/{link_id}/shares/{user_id}": Row(
        OWNED_WRITE.but({Who.RECIPIENT: FINE})
    ),  # one's own may be left
    "GET /api/v1/links/{link_id}/invitations": Row(OWNED_READ.but({Who.RECIPIENT: SEEN})),
    "DELETE /api/v1/links/{link_id}/invitations/{invitation_id}": Row(OWNED_WRITE),
    "GET /api/v1/me/invitations": Row(SIGNED_IN_READ),
    "POST /api/v1/me/invitations/{invitation_id}/accept": Row(PRIVATE_WRITE),
    "POST /api/v1/me/invitations/{invitation_id}/decline": Row(PRIVATE_WRITE),
    "GET /app/invitations": Row(SIGNED_IN_READ),
    "GET /app/invitations/waiting": Row(SIGNED_IN_READ),
    "POST /app/invitations/{invitation_id}/accept": Row(PRIVATE_WRITE),
    "POST /app/invitations/{invitation_id}/decline": Row(PRIVATE_WRITE),
    "POST /app/links/{link_id}/invitations/{invitation_id}/withdraw": Row(OWNED_WRITE),
    "GET /api/v1/links/{link_id}/history": Row(OWNED_READ.but({Who.RECIPIENT: SEEN})),
    "POST /api/v1/links/{link_id}/history/{version}/revert": Row(OWNED_WRITE),
    "POST /api/v1/links/{link_id}/names": Row(
        OWNED_WRITE, json=lambda: {"name": f"matrix-{token_hex(6)}"}
    ),
    "DELETE /api/v1/links/{link_id}/names/{name:path}": Row(OWNED_WRITE),
    "GET /api/v1/names/{name}": Row(OPEN_READ),
    "POST /api/v1/resolve": Row(
        SIGNED_IN_READ.but({Who.OWNER_UNPROVEN: FORBIDDEN}), json={"path": "/roadmap"}
    ),
    "GET /app/links": Row(SIGNED_IN_READ),
    "GET /app/links/export": Row(SIGNED_IN_READ),
    "POST /app/links/display": Row(SIGNED_IN_WRITE, form={"density": "compact"}),
    "POST /app/links/views": Row(SIGNED_IN_WRITE, form={"name": "Mine", "query": "q=x"}),
    "POST /app/links/views/rename": Row(
        SIGNED_IN_WRITE, form={"name": "Mine", "new_name": "Mine too"}
    ),
    "POST /app/links/views/delete": Row(SIGNED_IN_WRITE, form={"name": "Mine"}),
    "POST /app/links/views/restore": Row(SIGNED_IN_WRITE, query={"name": "Mine", "query": "q=x"}),
    "GET /app/qr": Row(SIGNED_IN_READ, query={"name": "roadmap"}),
    "GET /app": Row(OPEN),
    "GET /app/": Row(OPEN),
    "GET /app/analytics": Row(SIGNED_IN_READ),
    "GET /app/analytics/live": Row(SIGNED_IN_READ),
    "GET /app/analytics/export.csv": Row(SIGNED_IN_READ),
    "GET /app/analytics/chart.svg": Row(SIGNED_IN_READ),
    "GET /app/analytics/details/{dimension}": Row(SIGNED_IN_READ),
    "POST /app/links": Row(SIGNED_IN_WRITE, form={"destination": "https://example.com/form"}),
    "POST /app/links/bulk": Row(SIGNED_IN_WRITE, form={"act": "disable"}),
    "POST /app/links/undo": Row(SIGNED_IN_WRITE),
    "GET /app/links/new": Row(SIGNED_IN_READ.but({Who.OWNER_READ_ONLY: FORBIDDEN})),
    "GET /app/links/try": Row(
        SIGNED_IN_READ, query={"destination": "https://example.com/{1}", "path": "a"}
    ),
    "GET /app/share": Row(
        SIGNED_IN_READ.but({Who.OWNER_READ_ONLY: FORBIDDEN}),
        query={"url": "https://example.com/shared"},
    ),
    "GET /app/links/{link_id}": Row(OWNED_READ),
    "GET /app/links/{link_id}/edit": Row(
        OWNED_READ.but({Who.RECIPIENT: SEEN, Who.OWNER_READ_ONLY: FORBIDDEN})
    ),
    "POST /app/links/{link_id}/names": Row(
        OWNED_WRITE, form=lambda: {"name": f"matrix-{token_hex(6)}"}
    ),
    "POST /app/links/{link_id}/names/{name:path}/release": Row(OWNED_WRITE),
    "POST /app/links/{link_id}/owners": Row(OWNED_WRITE, form={"email": "otto@example.com"}),
    "POST /app/links/{link_id}/owners/{user_id}/remove": Row(OWNED_WRITE),
    "POST /app/links/{link_id}/shares": Row(OWNED_WRITE, form={"email": "otto@example.com"}),
    "POST /app/links/{link_id}/shares/{user_id}/remove": Row(
        OWNED_WRITE.but({Who.RECIPIENT: FINE})
    ),
    "POST /app/links/{link_id}/transfer": Row(OWNED_TRANSFER, form={"email": "otto@example.com"}),
    "POST /app/links/{link_id}/history/{version}/revert": Row(OWNED_WRITE),
    "POST /app/links/{link_id}": Row(
        OWNED_WRITE, form={"destination": "https://example.com/changed"}
    ),
    "POST /app/links/{link_id}/rules": Row(
        OWNED_WRITE, form={"destination": "https://example.com/rule", "share": "1"}
    ),
    "POST /app/links/{link_id}/rules/{number}": Row(
        OWNED_WRITE, form={"destination": "https://example.com/rule", "share": "2"}
    ),
    "POST /app/links/{link_id}/rules/{number}/move": Row(OWNED_WRITE, form={"by": "1"}),
    "POST /app/links/{link_id}/rules/{number}/remove": Row(OWNED_WRITE),
    "POST /app/links/{link_id}/{step}": Row(OWNED_WRITE),
    "GET /app/omnibox": Row(SIGNED_IN_READ, query={"q": "road"}),
    "POST /app/omnibox": Row(SIGNED_IN_WRITE, form={"q": "https://example.com/typed"}),
    "GET /app/links/look": Row(SIGNED_IN_READ.but({Who.OWNER_READ_ONLY: FORBIDDEN})),
    "GET /app/lists/add": Row(
        SIGNED_IN_READ.but({Who.OWNER_READ_ONLY: FORBIDDEN}),
        query={"url": "https://example.com/added"},
    ),
    "POST /app/lists/add": Row(SIGNED_IN_WRITE, form={"url": "https://example.com/added"}),
    # -- the library in the browser
    "GET /app/library": Row(SIGNED_IN_READ),
    "POST /app/library/bulk": Row(SIGNED_IN_WRITE, form={"act": "discard"}),
    "POST /app/library/undo": Row(SIGNED_IN_WRITE),
    "POST /app/library/display": Row(SIGNED_IN_WRITE, form={"density": "compact"}),
    "GET /app/links/imports": Row(SIGNED_IN_READ),
    "POST /app/links/imports": Row(
        SIGNED_IN_WRITE, files={"file": ("mine.csv", b"destination\nhttps://example.com/")}
    ),
    "POST /app/links/imports/remote": Row(
        SIGNED_IN_WRITE,
        form={"system": "kutt", "url": "https://kutt.example.com", "key": "k"},
        once=True,
    ),
    "GET /app/links/imports/{import_id}": Row(PRIVATE_READ),
    "POST /app/links/imports/{import_id}/run": Row(PRIVATE_WRITE),
    "POST /app/links/imports/{import_id}/stop": Row(PRIVATE_WRITE),
    "POST /app/links/imports/{import_id}/rollback": Row(PRIVATE_WRITE),
    "GET /app/library/imports": Row(SIGNED_IN_READ),
    "POST /app/library/imports": Row(
        SIGNED_IN_WRITE, files={"file": ("mine.json", b'[{"text": "A thought."}]')}
    ),
    "GET /app/library/imports/{import_id}": Row(PRIVATE_READ),
    "POST /app/library/imports/{import_id}/stop": Row(PRIVATE_WRITE),
    "POST /app/library/imports/{import_id}/rollback": Row(PRIVATE_WRITE),
    "GET /app/library/{item_id}": Row(PRIVATE_READ),
    "POST /app/library/{item_id}": Row(PRIVATE_WRITE, form={"title": "From the matrix"}),
    "POST /app/library/{item_id}/discard": Row(PRIVATE_WRITE),
    "POST /app/library/{item_id}/restore": Row(PRIVATE_WRITE),
    "POST /app/library/{item_id}/erase": Row(PRIVATE_WRITE),
    "GET /app/review": Row(SIGNED_IN_READ),
    "GET /app/review/waiting": Row(SIGNED_IN_READ),
    "POST /app/review/{item_id}": Row(PRIVATE_WRITE, form={"act": "discard"}),
    "POST /app/items": Row(SIGNED_IN_WRITE, form={"text": "A thought from the matrix."}),
    "POST /app/items/{item_id}/undo": Row(PRIVATE_WRITE),
    "GET /app/tags/mine": Row(SIGNED_IN_READ),
    "POST /app/tags/mine/merge": Row(SIGNED_IN_WRITE),
    "GET /app/tags/rules": Row(SIGNED_IN_READ),
    "POST /app/tags/rules": Row(SIGNED_IN_WRITE, form={"pattern": "github.com", "tags": "code"}),
    "POST /app/tags/rules/{rule_id}/delete": Row(PRIVATE_WRITE),
    "POST /app/tags/mine/{tag_id}": Row(PRIVATE_WRITE, form={"color": "#123456"}),
    "POST /app/tags/mine/{tag_id}/delete": Row(PRIVATE_WRITE),
    "POST /app/tags/mine/{tag_id}/undo": Row(PRIVATE_WRITE),
    "GET /app/search": Row(SIGNED_IN_READ, query={"q": "road"}),
    "GET /api/v1/search": Row(SIGNED_IN_READ, query={"q": "road"}),
    "GET /app/go": Row(SIGNED_IN_READ, query={"q": "roadmap"}),
    "GET /app/suggest": Row(OPEN_READ, query={"q": "road"}),
    # -- lists
    "GET /api/v1/lists": Row(OPEN_READ),
    "POST /api/v1/lists": Row(OPEN_WRITE.but(_WEAK)),
    "POST /api/v1/lists/claim": Row(SIGNED_IN_WRITE),
    "GET /api/v1/lists/{list_id}": Row(MADE_READ),
    "PATCH /api/v1/lists/{list_id}": Row(MADE_WRITE, json={"title": "From the matrix"}),
    "DELETE /api/v1/lists/{list_id}": Row(MADE_WRITE),
    "POST /api/v1/lists/{list_id}/entries": Row(
        MADE_WRITE, json={"url": "https://example.com/entry"}
    ),
    "PATCH /api/v1/lists/{list_id}/entries/{entry_id}": Row(
        MADE_WRITE, json={"title": "From the matrix"}
    ),
    "DELETE /api/v1/lists/{list_id}/entries/{entry_id}": Row(MADE_WRITE),
    "POST /api/v1/lists/{list_id}/entries/{entry_id}/restore": Row(MADE_WRITE),
    "POST /api/v1/lists/{list_id}/entries/{entry_id}/fetch": Row(MADE_WRITE),
    "POST /api/v1/lists/{list_id}/sections": Row(MADE_WRITE, json={"title": "Later"}),
    "PATCH /api/v1/lists/{list_id}/sections/{section_id}": Row(
        MADE_WRITE, json={"title": "From the matrix"}
    ),
    "DELETE /api/v1/lists/{list_id}/sections/{section_id}": Row(MADE_WRITE),
    "GET /api/v1/lists/{list_id}/actions": Row(MADE_READ),
    "PUT /api/v1/lists/{list_id}/order": Row(MADE_WRITE, json={"entry_ids": []}),
    "POST /api/v1/lists/{list_id}/slug": Row(MADE_WRITE, json={"slug": "wished-for"}),
    "POST /api/v1/lists/{list_id}/publish": Row(MADE_WRITE),
    "POST /api/v1/lists/{list_id}/editions": Row(MADE_WRITE),
    "POST /api/v1/lists/{list_id}/undo": Row(MADE_WRITE),
    "POST /api/v1/lists/{list_id}/release": Row(MADE_WRITE),
    "POST /api/v1/lists/{list_id}/transfer": Row(LIST_TRANSFER, json={"team": CHOIR}),
    "POST /app/lists/{list_id}/transfer": Row(LIST_TRANSFER, form={"team": CHOIR}),
    "GET /api/v1/public/lists/{slug}": Row(OPEN),
    "GET /app/lists": Row(OPEN_READ),
    "POST /app/lists": Row(OPEN_WRITE.but(_WEAK), form={"urls": "https://example.com/entry"}),
    "POST /app/lists/claim": Row(SIGNED_IN_WRITE),
    "GET /app/lists/availability": Row(OPEN_READ),
    "GET /app/lists/{list_id}": Row(MADE_READ),
    "POST /app/lists/{list_id}": Row(MADE_WRITE, form={"title": "From a form"}),
    "GET /app/lists/{list_id}/news": Row(MADE_READ),
    "GET /app/lists/{list_id}/views": Row(MADE_READ),
    "GET /app/lists/{list_id}/preview": Row(MADE_READ),
    "POST /app/lists/{list_id}/sections": Row(MADE_WRITE, form={"title": "Later"}),
    "POST /app/lists/{list_id}/sections/restore": Row(
        MADE_WRITE, query={"title": "Later", "position": "1"}
    ),
    "POST /app/lists/{list_id}/sections/{section_id}": Row(
        MADE_WRITE, form={"title": "From a form"}
    ),
    "POST /app/lists/{list_id}/sections/{section_id}/remove": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/sections/{section_id}/{step}": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/entries": Row(
        MADE_WRITE, form={"urls": "https://example.com/entry"}
    ),
    "POST /app/lists/{list_id}/entries/{entry_id}": Row(MADE_WRITE, form={"title": "From a form"}),
    "POST /app/lists/{list_id}/entries/{entry_id}/fetch": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/entries/{entry_id}/remove": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/entries/{entry_id}/restore": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/entries/{entry_id}/{step}": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/order": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/publish": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/editions": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/delete": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/undo": Row(MADE_WRITE),
    "POST /app/lists/{list_id}/release": Row(MADE_WRITE),
    # -- teams
    "GET /api/v1/teams/{team_id}/keys": Row(ACCOUNT_READ),
    "POST /api/v1/teams/{team_id}/keys": Row(ACCOUNT_WRITE, json={"name": "from the matrix"}),
    "DELETE /api/v1/teams/{team_id}/keys/{key_id}": Row(ACCOUNT_WRITE),
    "POST /app/teams/{team_id}/keys": Row(ACCOUNT_WRITE, form={"key_name": "from a form"}),
    "POST /app/teams/{team_id}/keys/{key_id}/revoke": Row(ACCOUNT_WRITE),
    "GET /api/v1/teams": Row(SIGNED_IN_READ),
    "POST /api/v1/teams": Row(ADMIN_WRITE, json=lambda: {"name": f"matrix {token_hex(6)}"}),
    "GET /api/v1/teams/{team_id}": Row(TEAM_READ),
    "PATCH /api/v1/teams/{team_id}": Row(TEAM_WRITE, json={"name": "From the matrix"}),
    "DELETE /api/v1/teams/{team_id}": Row(TEAM_WRITE),
    "PUT /api/v1/teams/{team_id}/defaults": Row(TEAM_WRITE, json={"tags": ["Plans"]}),
    "POST /app/teams/{team_id}/defaults": Row(TEAM_WRITE, form={"tags": "Plans"}),
    "PUT /api/v1/teams/{team_id}/group": Row(ADMIN_WRITE, json={"issuer": "work", "group": "crew"}),
    "DELETE /api/v1/teams/{team_id}/group": Row(ADMIN_WRITE),
    "POST /app/teams/{team_id}/group": Row(ADMIN_WRITE, form={"issuer": "work", "group": "crew"}),
    "GET /api/v1/teams/{team_id}/members": Row(TEAM_READ),
    "POST /api/v1/teams/{team_id}/members": Row(TEAM_WRITE, json={"email": "otto@example.com"}),
    "PATCH /api/v1/teams/{team_id}/members/{user_id}": Row(TEAM_WRITE, json={"role": "manager"}),
    "DELETE /api/v1/teams/{team_id}/members/{user_id}": Row(TEAM_WRITE),
    "GET /app/teams": Row(SIGNED_IN_READ),
    "POST /app/teams": Row(ADMIN_WRITE, form=lambda: {"name": f"matrix {token_hex(6)}"}),
    "GET /app/teams/{team_id}": Row(TEAM_READ),
    "POST /app/teams/{team_id}": Row(TEAM_WRITE, form={"name": "From a form"}),
    "POST /app/teams/{team_id}/delete": Row(TEAM_WRITE),
    "POST /app/teams/{team_id}/members": Row(TEAM_WRITE, form={"email": "otto@example.com"}),
    "POST /app/teams/{team_id}/members/{user_id}/role": Row(TEAM_WRITE, form={"role": "manager"}),
    "POST /app/teams/{team_id}/members/{user_id}/remove": Row(TEAM_WRITE),
    # -- domains
    # Who may follow what is in tests/domains/test_follow.py.
    "GET /auth/follow": Row(NOWHERE, query={"link": "absent.example/name"}),
    "GET /api/v1/domains": Row(SIGNED_IN_READ),
    "POST /api/v1/domains": Row(ADMIN_WRITE, json=lambda: {"host": f"{token_hex(6)}.example"}),
    "GET /api/v1/domains/tls": Row(OPEN, query={"domain": "go.test"}),
    "GET /api/v1/domains/{host}": Row(DOMAIN_READ),
    "PATCH /api/v1/domains/{host}": Row(ADMIN_WRITE, json={"title": "From the matrix"}),
    "DELETE /api/v1/domains/{host}": Row(ADMIN_WRITE),
    "GET /app/admin/domains": Row(ADMIN_READ),
    "POST /app/admin/domains": Row(ADMIN_WRITE, form=lambda: {"host": f"{token_hex(6)}.example"}),
    "GET /app/admin/domains/{host}": Row(ADMIN_READ),
    "POST /app/admin/domains/{host}": Row(ADMIN_WRITE, form={"title": "From a form"}),
    "POST /app/admin/domains/{host}/disable": Row(ADMIN_WRITE),
    "POST /app/admin/domains/{host}/enable": Row(ADMIN_WRITE),
    "POST /app/admin/domains/{host}/delete": Row(ADMIN_WRITE),
    # -- statistics
    "GET /api/v1/links/{link_id}/stats": Row(OWNED_READ),
    "GET /api/v1/links/{link_id}/stats/live": Row(OWNED_READ),
    "GET /api/v1/links/{link_id}/stats/export": Row(OWNED_READ),
    "GET /api/v1/links/{link_id}/stats/{dimension}": Row(OWNED_READ),
    "GET /api/v1/stats": Row(SIGNED_IN_READ),
    "GET /api/v1/stats/{dimension}": Row(SIGNED_IN_READ),
    # -- tags
    "GET /api/v1/tags": Row(SIGNED_IN_READ),
    "POST /api/v1/tags": Row(SIGNED_IN_WRITE, json={"name": "From the matrix"}),
    "PATCH /api/v1/tags/{tag_id}": Row(PRIVATE_WRITE, json={"color": "#123456"}),
    "DELETE /api/v1/tags/{tag_id}": Row(PRIVATE_WRITE),
    "POST /api/v1/tags/{tag_id}/undo": Row(PRIVATE_WRITE),
    "DELETE /api/v1/tags/{tag_id}/aliases": Row(PRIVATE_WRITE, query={"name": "merged"}),
    "POST /api/v1/tags/merge": Row(
        NOBODY_S_WRITE, json={"target": "1", "sources": ["2"]}
    ),  # success is tested with the tags
    # -- library
    "GET /api/v1/library": Row(SIGNED_IN_READ, query={"q": "thought"}),
    "GET /api/v1/library/filters": Row(SIGNED_IN_READ),
    "GET /api/v1/items/{item_id}/similar": Row(PRIVATE_READ),
    "GET /api/v1/items/{item_id}/reader": Row(PRIVATE_READ),
    "GET /api/v1/library/export": Row(SIGNED_IN_READ),
    "POST /api/v1/library/imports": Row(SIGNED_IN_WRITE, json=[{"text": "A thought from a file."}]),
    "GET /api/v1/library/imports": Row(SIGNED_IN_READ),
    "GET /api/v1/library/imports/{import_id}": Row(PRIVATE_READ),
    "GET /api/v1/library/imports/{import_id}/rows": Row(PRIVATE_READ),
    "POST /api/v1/library/imports/{import_id}/stop": Row(PRIVATE_WRITE),
    "POST /api/v1/library/imports/{import_id}/rollback": Row(PRIVATE_WRITE),
    # -- items
    "POST /api/v1/items": Row(SIGNED_IN_WRITE, json={"text": "A thought."}),
    "POST /api/v1/items/bulk": Row(SIGNED_IN_WRITE, json={"texts": ["One thought.", "Another."]}),
    "GET /api/v1/items/pending": Row(SIGNED_IN_READ),
    "GET /api/v1/items/{item_id}": Row(PRIVATE_READ),
    "PATCH /api/v1/items/{item_id}": Row(PRIVATE_WRITE, json={"title": "From the matrix"}),
    "DELETE /api/v1/items/{item_id}": Row(PRIVATE_WRITE),
    "POST /api/v1/items/{item_id}/confirm": Row(PRIVATE_WRITE, json={"new_tags": ["matrix"]}),
    "POST /api/v1/items/{item_id}/suggestions": Row(
        PRIVATE_WRITE, json={"accept": [], "reject": []}
    ),
    "POST /api/v1/items/{item_id}/discard": Row(PRIVATE_WRITE),
    "POST /api/v1/items/{item_id}/restore": Row(PRIVATE_WRITE),
    "POST /api/v1/items/{item_id}/erase": Row(PRIVATE_WRITE),
    "POST /api/v1/items/{item_id}/retry": Row(PRIVATE_WRITE),
    "POST /api/v1/items/{item_id}/undo": Row(PRIVATE_WRITE),
    "GET /api/v1/me/quota": Row(SIGNED_IN_READ),
    "GET /api/v1/me/usage": Row(SIGNED_IN_READ),
    "POST /app/admin/people/{user_id}/quota": Row(
        ADMIN_WRITE, form={"day": "2026-06-01", "limit": "5"}
    ),
    "GET /api/v1/me/tag-rules": Row(SIGNED_IN_READ),
    "PUT /api/v1/me/tag-rules": Row(
        SIGNED_IN_WRITE, json={"items": [{"pattern": "github.com", "tags": ["code"]}]}
    ),
    "GET /app/tags": Row(SIGNED_IN_READ),
    "POST /app/tags/{tag_id}": Row(ADMIN_WRITE, form={"color": "#123456"}),
    # -- administrators
    "PUT /api/v1/admin/users/{user_id}/quota": Row(
        ADMIN_WRITE, json={"day": "2026-06-01", "limit": 5}
    ),
    "GET /api/v1/admin/audit": Row(ADMIN_READ),
    "GET /api/v1/admin/users": Row(ADMIN_READ),
    "GET /api/v1/admin/users/{user_id}": Row(ADMIN_READ),
    "PATCH /api/v1/admin/users/{user_id}": Row(ADMIN_WRITE, json={"plan": "pro"}),
    "DELETE /api/v1/admin/users/{user_id}": Row(ADMIN_WRITE, query={"links": "delete"}),
    "GET /api/v1/admin/barred": Row(ADMIN_READ),
    "DELETE /api/v1/admin/barred/{barred_id}": Row(ADMIN_WRITE),
    "GET /app/admin/barred": Row(ADMIN_READ),
    "GET /api/v1/admin/invitations": Row(ADMIN_READ),
    "POST /api/v1/admin/invitations": Row(ADMIN_WRITE, json={"name": "From the matrix"}),
    "POST /api/v1/admin/invitations/{invitation_id}/link": Row(ADMIN_WRITE),
    "DELETE /api/v1/admin/invitations/{invitation_id}": Row(ADMIN_WRITE),
    "GET /app/admin/invitations": Row(ADMIN_READ),
    "POST /app/admin/invitations": Row(ADMIN_WRITE, form={"name": "From the matrix"}),
    "POST /app/admin/invitations/{invitation_id}/link": Row(ADMIN_WRITE),
    "POST /app/admin/invitations/{invitation_id}/revoke": Row(ADMIN_WRITE),
    "POST /app/admin/people/{user_id}/signin-link": Row(ADMIN_WRITE),
    "POST /app/admin/barred/{barred_id}/allow": Row(ADMIN_WRITE),
    "GET /api/v1/admin/jobs": Row(ADMIN_READ),
    "POST /api/v1/admin/jobs/{job_id}/retry": Row(ADMIN_WRITE),
    "GET /api/v1/admin/figures": Row(ADMIN_READ),
    "POST /api/v1/admin/figures/verify": Row(ADMIN_WRITE),
    "POST /app/admin/verify": Row(ADMIN_WRITE),
    "GET /api/v1/admin/links": Row(ADMIN_READ),
    "GET /api/v1/admin/lists": Row(ADMIN_READ),
    "DELETE /api/v1/admin/lists/{list_id}": Row(ADMIN_WRITE),
    "POST /api/v1/admin/lists/{list_id}/undo": Row(ADMIN_WRITE),
    "GET /app/admin/lists": Row(ADMIN_READ),
    "GET /api/v1/admin/reports": Row(ADMIN_READ),
    "POST /api/v1/admin/reports/{report_id}/{action}": Row(ADMIN_WRITE),
    "GET /app/admin/reports": Row(ADMIN_READ),
    "GET /app/admin/reports/waiting": Row(ADMIN_READ),
    "POST /app/admin/reports/{report_id}/{action}": Row(ADMIN_WRITE),
    "POST /api/v1/reports": Row(OPEN_WRITE, json={"target": "nothing-here", "reason": "spam"}),
    "GET /app/report": Row(OPEN_READ),
    "GET /app/report/thanks": Row(OPEN_READ),
    "POST /app/report": Row(PROVEN_WRITE, form={"target": "nothing-here", "reason": "spam"}),
    "POST /app/admin/lists/{list_id}/remove": Row(ADMIN_WRITE),
    "POST /app/admin/lists/{list_id}/undo": Row(ADMIN_WRITE),
    "GET /app/admin/people": Row(ADMIN_READ),
    "GET /app/admin/audit": Row(ADMIN_READ),
    "GET /app/admin/links": Row(ADMIN_READ),
    "POST /app/admin/people/{user_id}/delete": Row(ADMIN_WRITE, form={"links": "delete"}),
    "POST /app/admin/people/{user_id}/{step}": Row(ADMIN_WRITE),
    "GET /api/v1/admin/blocked-domains": Row(ADMIN_READ),
    "POST /api/v1/admin/blocked-domains": Row(ADMIN_WRITE, json={"domain": "bad.example"}),
    "DELETE /api/v1/admin/blocked-domains/{domain}": Row(ADMIN_WRITE),
    "GET /app/admin": Row(ADMIN_READ),
    "GET /app/admin/jobs": Row(ADMIN_READ),
    "POST /app/admin/jobs/{job_id}/retry": Row(ADMIN_WRITE),
    "GET /app/admin/blocked-domains": Row(ADMIN_READ),
    "POST /app/admin/blocked-domains": Row(ADMIN_WRITE, form={"domain": "bad.example"}),
    "POST /app/admin/blocked-domains/{domain}/remove": Row(ADMIN_WRITE),
}

_FOR_TEAM_KEYS = (
    *("/api/v1/links", "/api/v1/lists", "/api/v1/names"),
    *("/api/v1/stats", "/api/v1/resolve", "/api/v1/utm-templates"),
)
"""What keys of a team are for: there they get what its members get, and elsewhere nothing."""

for _route, _row in ROWS.items():
    if _route.split(" ")[1].startswith(_FOR_TEAM_KEYS):
        _as_member = {Who.TEAM_KEY: _row.profile.outcomes[Who.MEMBER]}
        ROWS[_route] = replace(_row, profile=_row.profile.but(_as_member))

_add_choir = ROWS["POST /api/v1/links/{link_id}/teams"]
ROWS["POST /api/v1/links/{link_id}/teams"] = replace(
    _add_choir, profile=_add_choir.profile.but({Who.TEAM_KEY: UNKNOWN})
)  # a key is of one team and of no choir

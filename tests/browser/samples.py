"""What the templates are shown with. Names, titles and addresses include the awkward ones: long, foreign, hostile."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from refract.web.reading import Chapter, Field, Operation, Refusal

NOW = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
HOSTILE = '"><script>alert(1)</script>'


@dataclass(frozen=True)
class Person:
    display: str
    email: str | None
    role: str


ADA = Person("Ada Lovelace", "ada@example.com", "admin")
SAM = Person("Sam", None, "user")


@dataclass(frozen=True)
class Page:
    template: str
    context: dict[str, Any]


def page(template: str, page_title: str, user: Person | None = None, path: str = "/somewhere", **more: Any) -> Page:
    """A page as the server renders it: what every template gets, and what this one needs."""
    common = {
        "user": user,
        "csrf": "sample-token",
        "request_path": path,
        "page_title": page_title,
        "base_url": "https://go.example.com",
        "version": "0.1.0",
    }
    return Page(template, common | more)


TAGS = {"roadmap": [("planning", "#2f4bd6"), ("platform", "#11703f")], "wiki": [(HOSTILE, "#b3261e")]}


def link(name: str, destination: str, title: str = "", *, state: str = "active", clicks: int = 0) -> dict[str, Any]:
    seed = sum(map(ord, name))
    return {
        "name": name,
        "href": f"/app/links/{seed}",
        "short_url": f"https://go.example.com/{name}",
        "destination": destination,
        "title": title,
        "tags": [{"name": tag, "color": color} for tag, color in TAGS.get(name, [])],
        "clicks": clicks,
        "spark": [10 + (seed * (day + 3) ** 2) % 9 + day * (seed % 3) for day in range(14)] if clicks else [0] * 14,
        "state": state,
        "created_at": NOW - timedelta(days=seed % 90),
    }


LINKS = [
    link(
        "roadmap",
        "https://docs.example.com/teams/platform/2026/planning/q3-roadmap-final-v7?tab=timeline&view=wide",
        "Q3 roadmap",
        clicks=1284,
    ),
    link("standup", "https://meet.example.com/platform-standup", "Daily stand-up", clicks=312),
    link("97qS0b7N2m", "https://example.org/", clicks=8),
    link("spring-offer", "https://shop.example.com/campaigns/spring?utm_source=poster", "Spring offer", state="expired", clicks=20417),
    link("wiki", "https://wiki.example.com/w/index.php", HOSTILE, state="disabled", clicks=77),
    link("読書会", "https://例え.テスト/読書会/2026", "読書会のお知らせ", clicks=3),
    link("a-name-as-long-as-a-name-may-be-which-is-fifty-char", "https://example.com/" + "long/" * 40, "Long " * 20, state="deleted"),
]

KEYS = [
    {
        "id": "1",
        "name": "Deploy script",
        "prefix": "refract_9hT2kQ7w",
        "scopes": ["read", "write"],
        "status": "active",
        "created_at": NOW - timedelta(days=40),
        "last_used_at": NOW,
        "usage_count": 18230,
    },
    {
        "id": "2",
        "name": "Spreadsheet " + HOSTILE,
        "prefix": "refract_Zk81mmPa",
        "scopes": ["read"],
        "status": "active",
        "created_at": NOW - timedelta(days=3),
        "last_used_at": None,
        "usage_count": 0,
    },
    {
        "id": "3",
        "name": "Old laptop",
        "prefix": "refract_11aaBB22",
        "scopes": ["read", "write", "admin"],
        "status": "revoked",
        "created_at": NOW - timedelta(days=400),
        "last_used_at": NOW - timedelta(days=200),
        "usage_count": 12,
    },
]
SETTINGS: dict[str, Any] = {
    "profile": {
        "nickname": "Ada",
        "bio": "I collect links about engines.",
        "avatar_url": None,
        "preferences": {"language": "en", "time_zone": "Europe/Berlin", "suggestions": True},
    },
    "time_zones": ["Asia/Shanghai", "Europe/Berlin", "UTC"],
    "sessions": [
        {"id": "1", "agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", "created_at": NOW, "last_seen_at": NOW, "current": True},
        {"id": "2", "agent": HOSTILE, "created_at": NOW - timedelta(days=9), "last_seen_at": NOW - timedelta(days=2), "current": False},
        {"id": "3", "agent": "", "created_at": NOW - timedelta(days=9), "last_seen_at": NOW - timedelta(days=2), "current": False},
    ],
    "confirm_word": "delete",
}


def person(number: int, name: str, email: str, **more: Any) -> dict[str, Any]:
    facts = {"email_verified": True, "issuer": "https://id.example.com", "plan": "free", "role": "user", "status": "active"}
    return {"id": str(number), "name": name, "email": email, "created_at": NOW, "last_sync_at": NOW, **facts, **more}


PEOPLE = [
    person(1, "Ada Lovelace", "ada@example.com", role="admin", issuer="local"),
    person(2, HOSTILE, "a-very-long-address-" + "x" * 60 + "@example.com", email_verified=False, plan="pro"),
    person(3, "", "", status="suspended"),
]
TURNING: dict[str, Any] = {"next_url": "/app/admin?cursor=x", "first_url": None}
DEAD_JOBS = [
    {
        "id": "1",
        "kind": "links.recheck",
        "last_error_code": "TIMEOUT",
        "last_error_message": HOSTILE,
        "attempt_count": 3,
        "finished_at": NOW,
    }
]
WRONG = {"name": "Give the key a name.", "confirm": "Type delete to show that you mean it."}
DEPTH = [("links.recheck", "PENDING", 1204)]
FIGURES: dict[str, Any] = {"accepted": 12045, "stored": 12000, "pending": 45, "not_kept": 0, "drift": []}
DRIFTING = FIGURES | {"drift": ["The totals of links add up to 7, but 8 clicks on links are stored."]}
AUDIT = [
    {"at": NOW, "actor_id": 361890234523648, "action": "key.created", "target": "refract_4fG7h2Kq", "detail": None},
    {"at": NOW, "actor_id": None, "action": "credentials.refused", "target": None, "detail": "14 attempts"},
]
HOURS = [0, 0, 1, 0, 0, 2, 5, 14, 31, 44, 39, 28, 22, 35, 41, 18] + [0] * 8
TODAY = {"clicks": 280, "yesterday": 241, "hours": HOURS, "hours_table": [(f"{hour:02}:00", clicks) for hour, clicks in enumerate(HOURS)]}
DRAFTS = [{"title": "Reading for new people", "href": "/app/lists/1", "entries": 12}, {"title": "", "href": "/app/lists/2", "entries": 1}]
NEW_KEY = {"name": "Deploy script", "key": "refract_9hT2kQ7wXv3LmN8pRs4TyU6zAb1CdE5fGh"}
PREVIEW: dict[str, Any] = {"link": LINKS[0], "qr_url": "/roadmap.qr", "qr_png_url": "/roadmap.qr?format=png&size=512"}

PROVIDERS = [{"name": name, "href": f"/auth/oidc/{number}"} for number, name in enumerate(["Zitadel", "Clerk", HOSTILE])]
ERROR: dict[str, Any] = {
    "status": 500,
    "title": "Something broke on our side",
    "detail": "Try again. If it happens again, tell whoever runs this server.",
    "request_id": "01J8Z3K4M5N6P7Q8R9S0T1U2V3",
    "retry_url": "/",
}
CONFIRM: dict[str, Any] = {"token": "sample", "action": "/auth/link", "account": ADA}
LIMITED: dict[str, Any] = {
    "status": 429,
    "title": "Too fast",
    "detail": "You have made 100 links in the last hour.",
    "request_id": None,
    "retry_after": 40,
}
SAID = [{"message": "Deleted /roadmap", "undo": "/app/links/1/undo"}, {"message": "Something is not right with that.", "kind": "wrong"}]
FIRST_ERRORS = {"destination": "That is not a web address. It should begin with https://", "name": "The name “roadmap” is already in use."}

API = [
    Chapter(
        "links",
        "Destinations with codes, names, owners and a life cycle.",
        [
            Operation(
                id="create_link",
                method="POST",
                path="/api/v1/links",
                summary="Create a short link",
                description="",
                scope="write",
                fields=[Field("destination", "body", "text", True, "Where it leads."), Field("names", "body", "list of text", False, "")],
                answers=[("201", "Made", '{"id": "361890234523648"}')],
                refusals=[Refusal("409", "SLUG_TAKEN", "The name “roadmap” is already in use.")],
                curl="curl https://go.example.com/api/v1/links -H 'X-API-Key: …'",
            )
        ],
    ),
    Chapter("admin", "For administrators.", []),
]
LINK: dict[str, Any] = {
    "link": {
        "id": "361890234523648", "code": "s5KqmO6usg", "short_url": "https://go.example.com/roadmap", "names": ["roadmap", "plans"],
        "destination": LINKS[0]["destination"], "title": "Plans", "notes": None, "tags": ["planning"], "redirect_status": 302,
        "visibility": "unlisted", "status": "active", "expires_at": NOW, "created_at": NOW, "total_clicks": 1284, "bot_clicks": 96,
        "owners": [{"name": "Ada", "primary": True}, {"name": "Sam", "primary": False}],
    },
    "name": "roadmap",
    "may_edit": True,
    "may_see_figures": True,
    "versions": [{"action": "edited", "changes": {"title": ["a", "b"]}, "at": NOW}, {"action": "created", "changes": {}, "at": NOW}],
    "qr_url": "/roadmap.qr",
}  # fmt: skip
LIST: dict[str, Any] = {"q": "", "next_url": "/app/links?cursor=x", "first_url": None}

PAGES: dict[str, Page] = {
    "landing": page("landing.html", "Refract", path="/"),
    "landing-links-only": page("landing.html", "Refract", path="/", areas=["links", "settings"]),
    "signin": page("signin.html", "Sign in", path="/auth/sign-in"),
    "signin-failed": page("signin.html", "Sign in", path="/auth/sign-in", reason="That link was used already. Make a new one."),
    "signin-provider": page("signin.html", "Sign in", providers=PROVIDERS[:1], links_enabled=False),
    "signin-providers": page("signin.html", "Sign in", providers=PROVIDERS, reason="The sign-in did not come to its end. Start again."),
    "signed-out": page("signed_out.html", "Signed out", path="/auth/signed-out"),
    "signin-confirm": page("signin_confirm.html", "Sign in", **CONFIRM),
    "error": page("error.html", "Something broke", **ERROR),
    "error-limited": page("error.html", "Too fast", SAM, **LIMITED),
    "not-found": page("not_found.html", "Not found", name="raodmap", suggestions=["roadmap", "road-trip", "roadshow"]),
    "not-found-create": page("not_found.html", "Not found", ADA, name="offsite", creatable=True, suggestions=["offers"]),
    "not-found-plain": page("not_found.html", "Not found", name="x" * 50),
    "gone-expired": page("gone.html", "Expired", name="spring-offer", state="expired", since=NOW),
    "gone-disabled": page("gone.html", "Disabled", ADA, name="wiki", state="disabled", manage_url="/app/links/1"),
    "gone-blocked": page("gone.html", "Blocked", name="free-prize", state="blocked"),
    "gone-deleted": page("gone.html", "Gone", name="old-news", state="deleted"),
    "preview": page("preview.html", "Preview", **PREVIEW),
    "preview-mine": page("preview.html", "Preview", SAM, manage_url="/app/links/1", **PREVIEW),
    "home": page("home.html", "Home", SAM, path="/"),
    "home-wrong": page("home.html", "Home", SAM, path="/", values={"destination": "exmaple", "name": "roadmap"}, errors=FIRST_ERRORS),
    "home-full": page(
        "home.html",
        "Home",
        ADA,
        path="/",
        links=LINKS,
        today=TODAY,
        waiting=14,
        review_waiting=14,
        drafts=DRAFTS,
        created=LINKS[0],
        toasts=SAID[:1],
    ),
    "home-links-only": page("home.html", "Home", SAM, path="/", links=LINKS[:3], areas=["links", "settings"]),
    "settings": page(
        "settings.html", "Settings", ADA, path="/app/settings", keys=KEYS, allowed_scopes=["read", "write", "admin"], **SETTINGS
    ),
    "settings-empty": page(
        "settings.html",
        "Settings",
        SAM,
        path="/app/settings",
        keys=[],
        errors={"name": "Give the key a name.", "confirm": "Type delete to show that you mean it."},
        **SETTINGS,
    ),
    "settings-new-key": page("settings.html", "Settings", SAM, path="/app/settings", keys=KEYS[:1], new_key=NEW_KEY, **SETTINGS),
    "admin-people": page("admin_people.html", "People", ADA, path="/app/admin", people=PEOPLE, q="", **TURNING),
    "admin-people-none": page("admin_people.html", "People", ADA, path="/app/admin", people=[], q="nobody", problem="No.", **TURNING),
    "admin-jobs": page("admin_jobs.html", "Work", ADA, "/app/admin/jobs", jobs=DEAD_JOBS, depth=DEPTH, figures=FIGURES, **TURNING),
    "admin-jobs-none": page("admin_jobs.html", "Work", ADA, "/app/admin/jobs", jobs=[], depth=[], figures=DRIFTING, **TURNING),
    "admin-audit": page("admin_audit.html", "Audit log", ADA, path="/app/admin/audit", lines=AUDIT, **TURNING),
    "admin-audit-none": page("admin_audit.html", "Audit log", ADA, path="/app/admin/audit", lines=[], **TURNING),
    "links": page("links.html", "Links", ADA, path="/app/links", links=LINKS, **LIST),
    "links-empty": page("links.html", "Links", SAM, path="/app/links", links=[], **LIST),
    "links-nothing-found": page("links.html", "Links", SAM, path="/app/links", links=[], **(LIST | {"q": "raodmap"})),
    "link": page("link.html", "/roadmap", ADA, path="/app/links/1", **LINK),
    "link-refused": page("link.html", "/roadmap", SAM, path="/app/links/1", errors={"step": "The link is expired."}, **LINK),
    "api-docs": page("api_docs.html", "API", path="/api/docs", chapters=API, paragraphs=["Everything the web app can do, for programs."]),
    "parts": page("gallery_parts.html", "Parts", ADA, path="/app/links", links=LINKS, hours=HOURS, toasts=SAID, now=NOW, omnibox_live=True),
}

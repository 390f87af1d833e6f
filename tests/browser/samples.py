"""Sample data of templates, including long, foreign and hostile texts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from refract.admin.overview import InstanceOverview
from refract.admin.pages.audit import AUDIT_LABELS
from refract.admin.pages.domains import CREATOR_LABELS
from refract.admin.pages.invitations import PATH as INVITE_PATH
from refract.admin.pages.invitations import ROLES, VALID_DAYS
from refract.admin.queries import ClickFigures
from refract.clicks.verify import ClickIntake, DayDifference, Reconciliation
from refract.domains.models import DomainCreators, DomainState
from refract.domains.schemas import DomainOut
from refract.home.search import SearchHit, SearchKind
from refract.identity.pages.settings import DEFAULT_KEY_LIFETIME, KEY_LIFETIMES
from refract.imports.models import ImportRun, RowOutcome
from refract.jobs.models import Job
from refract.library.imports import BookmarkFileFormat
from refract.library.imports.service import ImportPreview, PreviewRow
from refract.library.pages.browse import SORT_LABELS as LIBRARY_SORT_LABELS
from refract.library.queries.browse import LibraryFacets, LibrarySort, LibraryView
from refract.library.reader_view import ReaderView
from refract.links.campaigns.schemas import UtmTemplateOut
from refract.links.enums import LinkState, Visibility
from refract.links.imports.schemas import LinkImportOut
from refract.links.pages.editor import (
    REDIRECT_LABELS,
    REDIRECT_STATUS_CHOICES,
    VISIBILITY_LABELS,
)
from refract.links.pages.forms import CAMPAIGN_FIELDS
from refract.links.pages.history import ACTION_LABELS, FIELD_LABELS
from refract.links.pages.imports import FIELD_LABELS as IMPORT_LABELS
from refract.links.pages.imports import SOURCE_LABELS, SYSTEM_LABELS
from refract.links.pages.index import (
    OWNER_LABELS,
    SORT_LABELS,
    VISIBILITY_FILTER_CHOICES,
)
from refract.links.pages.qr import CORRECTIONS, SHAPES
from refract.links.pages.rule_forms import CHOICES, VISITOR_FIELDS
from refract.links.pages.rule_tab import EMPTY
from refract.links.pages.views import COLUMN_LABELS
from refract.links.qr_styles import QrStyle
from refract.links.queries import LinkCounts, LinkFilter, LinkTagCount
from refract.links.safety.models import BlockedDomain
from refract.lists.appearance import COVER_NAMES, LAYOUT_NAMES, PALETTE_NAMES
from refract.reports.models import ReportReason
from refract.tags.models import Tag
from refract.tags.pages import PALETTE
from refract.tags.pages import SORT_CHOICES as TAG_SORTS
from refract.teams.models import TeamRole
from refract.teams.pages.common import ROLE_LABELS
from refract.teams.schemas import TeamMemberOut, TeamOut
from refract.web.api_docs import ApiError, ApiField, ApiOperation, ApiSection
from refract.web.api_guides import load_guides
from refract.web.api_snippets import LANGUAGES, ApiCall
from refract.web.health import DependencyHealth, ReadinessDetail
from refract.web.tables import DENSITY_LABELS

NOW = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
HOSTILE = '"><script>alert(1)</script>'


@dataclass(frozen=True)
class Person:
    display: str
    email: str | None
    role: str
    id: int = 1


ADA = Person("Ada Lovelace", "ada@example.com", "admin")
SAM = Person("Sam", None, "user")


@dataclass(frozen=True)
class Page:
    template: str
    context: dict[str, Any]


def page(
    template: str,
    page_title: str,
    user: Person | None = None,
    path: str = "/somewhere",
    **more: Any,
) -> Page:
    """Return a sample page: the context of every template, and that of this one."""
    common = {
        "user": user,
        "csrf": "sample-token",
        "request_path": path,
        "page_title": page_title,
        "base_url": "https://go.example.com",
        "home": "",
        "version": "0.1.0",
    }
    return Page(template, common | more)


TAGS = {
    "roadmap": [("planning", "#2f4bd6"), ("platform", "#11703f")],
    "wiki": [(HOSTILE, "#b3261e")],
}


def link(
    name: str, destination: str, title: str = "", *, state: str = "active", clicks: int = 0
) -> dict[str, Any]:
    seed = sum(map(ord, name))
    return {
        "id": str(seed),
        "name": name,
        "address": f"sho.rt/{name}" if name == "standup" else f"/{name}",
        "more_names": 1 if name == "roadmap" else 0,
        "visibility": {"wiki": "secure", "standup": "signed-in"}.get(name, "unlisted"),
        "href": f"/app/links/{seed}",
        "short_url": f"https://go.example.com/{name}",
        "destination": destination,
        "title": title,
        "tags": [{"name": tag, "color": color} for tag, color in TAGS.get(name, [])],
        "clicks": clicks,
        "spark": (
            [10 + (seed * (day + 3) ** 2) % 9 + day * (seed % 3) for day in range(14)]
            if clicks
            else [0] * 14
        ),
        "state": state,
        "created_at": NOW - timedelta(days=seed % 90),
        "updated_at": NOW - timedelta(days=seed % 30),
        "last_click_at": NOW if clicks else None,
    }


LINKS = [
    link(
        "roadmap",
        "https://docs.example.com/teams/platform/2026/planning/q3-roadmap-final-v7"
        "?tab=timeline&view=wide",
        "Q3 roadmap",
        clicks=1284,
    ),
    link("standup", "https://meet.example.com/platform-standup", "Daily stand-up", clicks=312),
    link("97qS0b7N2m", "https://example.org/", clicks=8),
    link(
        "spring-offer",
        "https://shop.example.com/campaigns/spring?utm_source=poster",
        "Spring offer",
        state="expired",
        clicks=20417,
    ),
    link("wiki", "https://wiki.example.com/w/index.php", HOSTILE, state="disabled", clicks=77),
    link("読書会", "https://例え.テスト/読書会/2026", "読書会のお知らせ", clicks=3),
    link(
        "a-name-as-long-as-a-name-may-be-which-is-fifty-char",
        "https://example.com/" + "long/" * 40,
        "Long " * 20,
        state="deleted",
    ),
]

KEYS = [
    {
        "id": "1",
        "name": "Deploy script",
        "prefix": "refract_9hT2kQ7w",
        "scopes": ["read", "write"],
        "status": "active",
        "created_at": NOW - timedelta(days=40),
        "expires_at": NOW + timedelta(days=9),
        "parent_id": "2",
        "last_used_at": NOW,
        "last_used_network": "203.0.113.0/24",
        "usage_count": 18230,
    },
    {
        "id": "2",
        "name": "Spreadsheet " + HOSTILE,
        "prefix": "refract_Zk81mmPa",
        "scopes": ["read"],
        "status": "active",
        "created_at": NOW - timedelta(days=3),
        "expires_at": None,
        "parent_id": None,
        "last_used_at": None,
        "last_used_network": None,
        "usage_count": 0,
    },
    {
        "id": "3",
        "name": "Old laptop",
        "prefix": "refract_11aaBB22",
        "scopes": ["read", "write", "admin"],
        "status": "revoked",
        "created_at": NOW - timedelta(days=400),
        "expires_at": None,
        "parent_id": None,
        "last_used_at": NOW - timedelta(days=200),
        "last_used_network": None,
        "usage_count": 12,
    },
]
SETTINGS: dict[str, Any] = {
    "profile": {
        "nickname": "Ada",
        "bio": "I collect links about engines.",
        "avatar_url": None,
        "preferences": {
            "locale": None,
            "language": "en",
            "time_zone": "Europe/Berlin",
            "suggestions": True,
        },
    },
    "time_zones": ["Asia/Shanghai", "Europe/Berlin", "UTC"],
    "languages": [("en", "English"), ("de", "Deutsch"), ("zh-Hans", "简体中文")],
    "key_names": {"1": "Deploy script", "2": "Spreadsheet " + HOSTILE, "3": "Old laptop"},
    "ending_soon": {"1"},
    "key_days": KEY_LIFETIMES,
    "default_key_days": DEFAULT_KEY_LIFETIME,
    "sessions": [
        {
            "id": "1",
            "agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
            "created_at": NOW,
            "last_seen_at": NOW,
            "current": True,
        },
        {
            "id": "2",
            "agent": HOSTILE,
            "created_at": NOW - timedelta(days=9),
            "last_seen_at": NOW - timedelta(days=2),
            "current": False,
        },
        {
            "id": "3",
            "agent": "",
            "created_at": NOW - timedelta(days=9),
            "last_seen_at": NOW - timedelta(days=2),
            "current": False,
        },
    ],
    "confirm_word": "delete",
    "budget": {
        "model": True,
        "storage": {"items": "1,284 of 100,000", "bytes": "12.3 MB of 5 GB"},
        "standing": {
            "used": 37,
            "limit": 50,
            "remaining": 13,
            "resets_at": NOW + timedelta(hours=9),
        },
        "entries": [
            {
                "at": NOW,
                "back": False,
                "title": "How engines burn fuel",
                "href": "/app/library/1",
                "why": "",
            },
            {
                "at": NOW,
                "back": True,
                "title": HOSTILE,
                "href": "/app/library/2",
                "why": "the model did not respond",
            },
            {"at": NOW, "back": False, "title": "Deleted item", "href": None, "why": ""},
        ],
    },
}
SPENT: dict[str, Any] = {
    "model": True,
    "storage": {"items": "1", "bytes": "0 B"},
    "standing": {"used": 50, "limit": 50, "remaining": 0, "resets_at": NOW},
    "entries": [],
}
NO_MODEL = SPENT | {"model": False}


def person(number: int, name: str, email: str, **more: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "email_verified": True,
        "issuer": "https://id.example.com",
        "plan": "free",
        "role": "user",
        "status": "active",
    }
    facts |= {"quota": {"used": 12 * number, "limit": 50}, "held_at": None}
    return {
        "id": str(number),
        "is_local": more.get("issuer") == "local",
        "name": name,
        "email": email,
        "created_at": NOW,
        "last_sync_at": NOW,
        **facts,
        **more,
    }


PEOPLE = [
    person(1, "Ada Lovelace", "ada@example.com", role="admin", issuer="local"),
    person(
        2,
        HOSTILE,
        "a-very-long-address-" + "x" * 60 + "@example.com",
        email_verified=False,
        plan="pro",
    ),
    person(3, "", "", status="suspended", held_at=NOW),
]


def invitation(number: int, name: str, email: str, state: str, **more: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "name": name,
        "email": email,
        "role": "user",
        "note": "",
        "state": state,
        "delivery": None,
        "inviter": "Ada Lovelace",
        "user_id": None,
        "created_at": NOW,
        "expires_at": NOW + timedelta(days=7),
        "accepted_at": NOW,
        **more,
    }


ACCOUNT_INVITATIONS: dict[str, Any] = {
    "here": "people",
    "is_allowed": True,
    "sends_email": True,
    "valid_days": VALID_DAYS,
    "default_days": "7",
    "roles": ROLES,
    "invitations": [
        invitation(1, "Grace Hopper", "grace@example.com", "pending", delivery="queued"),
        invitation(2, HOSTILE, "x" * 60 + "@example.com", "pending", delivery="failed"),
        invitation(3, "", "ann@example.com", "pending", delivery="sent", role="admin"),
        invitation(4, "", "", "pending", inviter=HOSTILE),
        invitation(5, "Ben", "", "accepted"),
        invitation(6, "Cleo", "", "expired"),
        invitation(7, "Dan", "", "revoked", role="admin"),
    ],
}
NEW_LINK = {
    "name": "Grace Hopper",
    "url": "https://go.example.com/auth/invitation/" + "x" * 43,
    "expires_at": NOW,
}
INVITED: dict[str, Any] = {
    "action": "/auth/invitation/x",
    "host": "go.example.com",
    "inviter": "Ada Lovelace",
    "invitation": invitation(1, "Grace", "grace@example.com", "pending", note=HOSTILE),
    "name": "Grace",
}
BARRED = [{"id": "1", "reference": "4f3a0c11d2be", "user_id": "361890234523648", "created_at": NOW}]
LAST: dict[str, Any] = {"here": "people", "next_url": None, "first_url": "/app/admin/people"}
TURNING: dict[str, Any] = {
    "next_url": "/app/admin/people?cursor=x",
    "first_url": None,
    "today": "2026-03-14",
    "links_allowed": True,
}
WRONG = {"name": "Give the key a name.", "confirm": "Type “delete” to confirm."}
AUDIT = [
    {
        "at": NOW,
        "label": AUDIT_LABELS["key.created"],
        "action": "key.created",
        "target": "refract_4fG7h2Kq",
        "detail": None,
        "actor": HOSTILE,
    },
    {
        "at": NOW,
        "label": AUDIT_LABELS["credentials.refused"],
        "action": "credentials.refused",
        "target": None,
        "detail": "14 attempts",
        "actor": None,
    },
    {
        "at": NOW,
        "label": "unheard.of",
        "action": "unheard.of",
        "target": "1",
        "detail": None,
        "actor": 361890234523648,
    },
]
HOURS = [0, 0, 1, 0, 0, 2, 5, 14, 31, 44, 39, 28, 22, 35, 41, 18] + [0] * 8
TODAY: dict[str, Any] = {
    "clicks": 280,
    "yesterday": 241,
    "hours": HOURS,
    "now_hour": 15,
    "marks": [(0, "00:00"), (6, "06:00"), (12, "12:00"), (18, "18:00")],
    "zone": "Europe/Berlin",
}
TODAY["hours_table"] = [(f"{hour:02}:00", clicks) for hour, clicks in enumerate(HOURS)]
DRAFTS = [
    {"title": "Reading for new people", "href": "/app/lists/1", "entries": 12},
    {"title": "", "href": "/app/lists/2", "entries": 1},
]
NEW_KEY = {"name": "Deploy script", "key": "refract_9hT2kQ7wXv3LmN8pRs4TyU6zAb1CdE5fGh"}
PREVIEW: dict[str, Any] = {
    "link": LINKS[0],
    "qr_url": "/roadmap.qr",
    "qr_png_url": "/roadmap.qr?format=png&size=512",
}

PROVIDERS = [
    {"name": name, "href": f"/auth/oidc/{number}"}
    for number, name in enumerate(["Zitadel", "Clerk", HOSTILE])
]
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
    "title": "Too many requests",
    "detail": "You have made 100 links in the last hour.",
    "request_id": None,
    "retry_after": 40,
}
SAID = [
    {"message": "Deleted /roadmap", "undo": "/app/links/1/undo"},
    {"message": "Something is not right with that.", "kind": "wrong"},
]
FIRST_ERRORS = {
    "destination": "That is not a web address. It should begin with https://",
    "name": "The name “roadmap” is already in use.",
}

API = [
    ApiSection(
        "links",
        "Destinations with codes, names, owners and a life cycle.",
        [
            ApiOperation(
                id="create_link",
                method="POST",
                path="/api/v1/links",
                summary="Create a short link",
                description="",
                scope="write",
                is_open=False,
                fields=[
                    ApiField("destination", "body", "text", True, "Where it leads."),
                    ApiField("names", "body", "list of text", False, ""),
                ],
                answers=[("201", "Created.", '{"id": "361890234523648"}')],
                refusals=[ApiError("409", "SLUG_TAKEN", "The name “roadmap” is already in use.")],
                snippets=ApiCall(
                    "POST", "https://go.example.com/api/v1/links", True, {"destination": HOSTILE}
                ).to_snippets(),
            )
        ],
    ),
    ApiSection("admin", "For administrators.", []),
]
OWNERS = [
    {"user_id": "1", "name": "Ada", "email": "ada@example.com", "primary": True},
    {"user_id": "2", "name": HOSTILE, "email": "sam@example.com", "primary": False},
]
LINK_OUT: dict[str, Any] = {
    "id": "361890234523648",
    "code": "s5KqmO6usg",
    "domain": "go.example.com",
    "short_url": "https://go.example.com/roadmap",
    "names": ["roadmap", "plans"],
    "addresses": [
        {"domain": host, "name": name, "exact": exact, "url": f"https://{host}/{name}"}
        for host, name, exact in (
            ("go.example.com", "roadmap", False),
            ("go.example.com", "plans", False),
            ("go.example.com", "Q3/Re.port", True),
            ("xn--bcher-kva." + "long-" * 11 + "host.example", "w" * 50, False),
        )
    ],
    "destination": LINKS[0]["destination"],
    "title": "Plans",
    "notes": "Two\nlines " + HOSTILE,
    "tags": ["planning", HOSTILE],
    "redirect_status": 302,
    "visibility": "public",
    "status": "active",
    "expires_at": NOW,
    "expired_destination": "https://example.com/over",
    "starts_at": NOW,
    "before_destination": "https://example.com/soon",
    "qr_style": None,
    "preview_card": {
        "title": HOSTILE,
        "description": HOSTILE * 3,
        "image_url": "https://cdn.example.com/plans.png",
    },
    "click_limit": 500,
    "clicks_left": 120,
    "limit_destination": "https://example.com/sold-out",
    "created_at": NOW,
    "updated_at": NOW,
    "total_clicks": 1284,
    "bot_clicks": 96,
    "last_clicked_at": NOW,
    "flagged": True,
    "flag_reason": "unchecked",
    "forward_query": True,
    "noindex": True,
    "owners": OWNERS,
    "teams": [
        {"team_id": "5", "slug": "crew", "name": "Crew", "primary": True, "added_at": NOW},
        {"team_id": "6", "slug": "hostile", "name": HOSTILE, "primary": False, "added_at": NOW},
    ],
}
TEAMS = [
    TeamOut(
        id=5,
        slug="crew",
        name="Crew",
        role=TeamRole.MANAGER,
        members=2,
        group=HOSTILE,
        default_domain="sho.rt",
        default_tags=["Plans", HOSTILE],
        created_at=NOW,
    ),
    TeamOut(
        id=6,
        slug="x" * 50,
        name=HOSTILE + "W" * 50,
        role=None,
        members=1,
        group=None,
        default_domain=None,
        default_tags=[],
        created_at=NOW,
    ),
]
TEAM_MEMBERS = [
    TeamMemberOut(user_id=number, name=name, email=f"{number}@example.com", role=role, added_at=NOW)
    for number, (name, role) in enumerate(
        [("Ada", TeamRole.MANAGER), (HOSTILE, TeamRole.MEMBER), ("W" * 40, TeamRole.MEMBER)], 1
    )
]
DOMAINS = [
    DomainOut(
        host=host,
        url=f"https://{host}",
        state=state,
        title=title,
        root_destination="https://www.example.com/",
        unknown_destination=None,
        gone_destination=None,
        default_redirect_status=302,
        creators=creators,
        team=team,
        links=1204,
        lists=lists,
        created_at=NOW,
        version=1,
    )
    for host, state, title, creators, team, lists in (
        ("sho.rt", DomainState.ACTIVE, HOSTILE, DomainCreators.TEAM, "w" * 50, 2),
        (
            "a." * 100 + "example",
            DomainState.DISABLED,
            None,
            DomainCreators.ADMINISTRATORS,
            None,
            0,
        ),
    )
]
DOMAINS_PAGE: dict[str, Any] = {
    "default_host": "go.example.com",
    "has_base_url": True,
    "creators": CREATOR_LABELS,
    "first_url": None,
}
DOMAIN_PAGE: dict[str, Any] = {
    "here": "domains",
    "default_host": "go.example.com",
    "has_base_url": True,
    "creators": [*CREATOR_LABELS.items(), ("team:crew", HOSTILE)],
    "chosen_creators": "everyone",
    "statuses": [(str(status), label) for status, label in REDIRECT_LABELS.items()],
}
INVITATIONS = [
    {
        "id": str(number),
        "link_id": "361890234523648",
        "short_url": "https://go.example.com/roadmap",
        "title": HOSTILE,
        "destination": "https://example.com/" + "long/" * 20,
        "role": role,
        "inviter": HOSTILE,
        "invitee": "Ada",
        "email": None,
        "created_at": NOW,
        "expires_at": NOW,
    }
    for number, role in enumerate(["owner", "primary"])
]
VERSIONS = [
    {
        "version": 3,
        "action": ACTION_LABELS["edited"],
        "who": "Ada",
        "at": NOW,
        "may_revert": False,
        "changes": [
            (FIELD_LABELS["title"], "", HOSTILE),
            (FIELD_LABELS["notes"], HOSTILE, ""),
            (
                FIELD_LABELS["destination"],
                "https://example.com/" + "old/" * 20,
                "https://example.com/",
            ),
        ],
    },
    {
        "version": 2,
        "action": ACTION_LABELS["owner_added"],
        "who": HOSTILE,
        "at": NOW,
        "may_revert": True,
        "changes": [],
    },
    {
        "version": 1,
        "action": ACTION_LABELS["created"],
        "who": None,
        "at": NOW,
        "may_revert": True,
        "changes": [],
    },
]
RIGHTS = dict.fromkeys(["view", "stats", "edit", "manage", "transfer"], True)
LINK: dict[str, Any] = {
    "tab": "settings",
    "tabs": [
        ("analytics", "Analytics"),
        ("settings", "Settings"),
        ("people", "People"),
        ("history", "History"),
    ],
    "link": LINK_OUT,
    "name": "roadmap",
    "colors": {"planning": "#2f4bd6"},
    "rights": RIGHTS,
    "versions": VERSIONS,
    "shares": [{"id": "3", "name": "Cleo", "email": "cleo@example.com"}],
    "team_choices": [("crew", "Crew"), ("support", "Support")],
    "qr_url": "/roadmap.qr",
    "qr_png_url": "/roadmap.qr?format=png&size=1024",
    "preview_url": "/roadmap+",
    "code_url": "https://go.example.com/7kqj2m9xw4zr",
    "short_host": "go.example.com",
    "default_host": "go.example.com",
    "domains": ["sho.rt", "a-very-long-host-of-a-campaign.example"],
    "visibility_label": VISIBILITY_LABELS[Visibility.PUBLIC],
    "redirect_label": REDIRECT_LABELS[302],
    "dry_run": {
        "leads_to": "https://docs.example.com/teams/x",
        "problem": None,
        "usage": None,
        "path": "",
        "name": "roadmap",
    },
}


RULES_TAB: dict[str, Any] = LINK | {
    "tab": "rules",
    "tabs": [*LINK["tabs"][:-1], ("rules", "Rules"), LINK["tabs"][-1]],
    "opened": "",
    "is_full": False,
    "max_rules": 20,
    "choices": {name: list(labels.items()) for name, labels in CHOICES.items()},
    "rule_values": EMPTY,
    "visitor": dict.fromkeys(VISITOR_FIELDS, "") | {"at_zone": "0"},
    "visitor_errors": {},
    "visitor_query": "agent=iphone",
    "agents": [("", "Your browser"), ("iphone", "iPhone · Safari")],
    "countries": [("", "Unknown"), ("DE", "Germany")],
    "rules": [],
    "decision": None,
    "draft": False,
    "draft_problem": "",
}
A_RULE: dict[str, Any] = {
    "number": 3,
    "destination": "https://apps.example.com/ios",
    "conditions": [("System", "iOS"), ("Country", "Germany, Austria")],
}
HOSTILE_RULE: dict[str, Any] = {
    "number": 1,
    "destination": "https://example.com/" + "long-" * 30,
    "conditions": [("Query parameters", HOSTILE), ("Share of visitors", "50%")],
}
DECISION_RULES: list[dict[str, Any]] = [
    rule
    | {
        "place": place,
        "decides": decides,
        "matched": decides,
        "blocked": blocked,
        "conditions": [
            {"label": label, "matched": decides, "visitor": HOSTILE}
            for label, _ in rule["conditions"]
        ],
    }
    for place, rule, decides, blocked in ((1, A_RULE, True, False), (2, HOSTILE_RULE, False, True))
]


def stats_panel(title: str, *counts: tuple[str, str, int]) -> dict[str, Any]:
    total = sum(count for _, _, count in counts) or 1
    rows = [
        {
            "value": value,
            "label": label,
            "note": "www.example.com" if value == "site" else "",
            "clicks": count,
            "share": count / total,
            "href": f"/app/analytics?country={value}",
        }
        for value, label, count in counts
    ]
    return {
        "title": title,
        "rows": rows,
        "places": rows if title == "Countries" else None,
        "has_all_places": True,
        "other": total // 10 if counts else 0,
        "other_share": 0.1,
        "details": "/app/analytics/details/countries",
    }


DAYS = [12 + (day * 37) % 29 + day for day in range(30)]
RECENT: dict[str, Any] = {
    "count": 2,
    "refresh": "/app/analytics/live",
    "rows": [
        {
            "at": "15:04",
            "name": HOSTILE,
            "country": "Germany",
            "device": "Mobile",
            "source": HOSTILE,
        }
    ],
}
FIGURES: dict[str, Any] = {
    "template": "clicks/_analytics.html",
    "base": "/app/analytics",
    "presets": [
        ("Today", "/app/analytics?range=today", False),
        ("30 days", "/app/analytics?range=30d", True),
    ],
    "comparisons": [
        ("Previous period", "/app/analytics?compare=previous", True),
        ("No comparison", "/app/analytics?compare=none", False),
    ],
    "compare": "previous",
    "steps": [("hour", "Hourly"), ("day", "Daily")],
    "step": "day",
    "begin": "2026-02-13",
    "end": "2026-03-15",
    "error": None,
    "hidden": [("tag", "a b")],
    "zone": "UTC",
    "chips": [],
    "clear": "/app/analytics",
    "kept_from": None,
    "is_empty": False,
    "totals": {"clicks": 1284, "uniques": 611, "bots": 96},
    "previous": {"clicks": 1041, "uniques": 633, "bots": 80},
    "open": True,
    "all_time": 20417,
    "chart": {
        "at": [1771027200 + 86_400 * day for day in range(30)],
        "series": [
            {"label": "Clicks", "values": DAYS},
            {"label": "Previous period", "values": DAYS[::-1], "look": "dashed"},
        ],
        "zone": "UTC",
        "by": "day",
        "running": True,
    },
    "rows": [(f"{day + 1} Mar", clicks, clicks // 2, 3) for day, clicks in enumerate(DAYS)],
    "panels": {
        "countries": stats_panel(
            "Countries",
            ("DE", "Germany", 412),
            ("US", "United States", 330),
            ("IN", "India", 120),
            ("BR", "Brazil", 44),
            ("ZA", "South Africa", 3),
        ),
        "cities": stats_panel("Cities", ("Berlin, DE", "Berlin, DE", 40)),
        "referrers": stats_panel(
            "Sources", ("direct", "Direct", 700), ("site", "Example", 210), ("x", HOSTILE, 12)
        ),
        "devices": stats_panel("Devices", ("desktop", "Desktop", 800), ("mobile", "Mobile", 484)),
        "browsers": stats_panel("Browsers", ("chrome", "Chrome", 800)),
        "systems": stats_panel("Systems"),
        "languages": stats_panel("Languages", ("de", "German", 900), ("und", "Unknown", 30)),
        "rules": stats_panel("Rules", ("2", "Rule 1", 70), ("none", "No rule", 30)),
        "campaigns": stats_panel("Campaigns", ("spring", "spring", 90)),
        "domains": stats_panel(
            "Domains", ("go.example.com", "go.example.com", 90), ("sho.rt", "sho.rt", 7)
        ),
    },
    "live": None,
    "export": "/app/analytics/export.csv?range=30d",
    "chart_export": "/app/analytics/chart.svg?range=30d",
    "clicks_export": "/api/v1/links/1/stats/export?from=2026-02-13",
    "recent": RECENT,
}
ACCOUNT_FIGURES = FIGURES | {
    "panels": FIGURES["panels"]
    | {"links": stats_panel("Links", ("1", "/roadmap", 900), ("2", "/" + HOSTILE, 300))},
    "clicks_export": None,
}
SCOPES = [
    ("Teams", [("Crew", "/app/analytics?team=crew", True)]),
    (
        "Tags",
        [("planning", "/app/analytics?tag=planning", False), (HOSTILE, "/app/analytics", False)],
    ),
]
FILTERED_FIGURES = ACCOUNT_FIGURES | {
    "chips": [
        {"name": "Country", "value": "Germany", "href": "/app/analytics?device=mobile"},
        {"name": "Source", "value": HOSTILE, "href": "/app/analytics?country=DE"},
    ],
    "kept_from": NOW,
    "error": "The start date must not be after the end date.",
    "previous": None,
    "compare": "none",
}
NO_FIGURES = FIGURES | {"is_empty": True, "totals": {"clicks": 0, "uniques": 0, "bots": 0}}
SEEN: dict[str, Any] = LINK | {
    "rights": RIGHTS | {"edit": False, "manage": False, "transfer": False},
    "versions": [],
    "shares": [],
    "dry_run": {
        "leads_to": None,
        "problem": "This link needs a value for {1}.",
        "usage": "/roadmap/{1}",
        "path": "",
        "name": "roadmap",
    },
}
FORM: dict[str, Any] = {
    "statuses": REDIRECT_STATUS_CHOICES,
    "visibilities": [(value.value, label) for value, label in VISIBILITY_LABELS.items()],
    "owners": [("", "You"), ("marketing", "Marketing")],
    "team_defaults": {"marketing": {"tags": "Plans", "domain": "sho.rt"}},
    "campaign_fields": CAMPAIGN_FIELDS,
    "campaign_shown": "utm_source=news",
    "utm_templates": [("7", "Newsletter"), ("8", f"{HOSTILE} (Crew)")],
    "utm_values": {"7": {"utm_source": "newsletter"}, "8": {"utm_source": HOSTILE}},
    "destination_host": "e.com",
}


UTM_TEMPLATES = [
    UtmTemplateOut(
        id=number,
        name=name,
        team=team,
        utm_source=source,
        utm_medium="email",
        utm_campaign=None,
        utm_term=None,
        utm_content="footer" * 30,
        created_at=NOW,
        updated_at=NOW,
    )
    for number, name, team, source in (
        (7, "Newsletter", None, "newsletter"),
        (8, HOSTILE, "crew", HOSTILE),
    )
]
UTM_PAGE: dict[str, Any] = {
    "campaign_fields": CAMPAIGN_FIELDS,
    "team_names": {"crew": "Crew"},
    "owners": [("", "You"), ("crew", "Crew")],
}


def table(links: list[dict[str, Any]], q: str = "", **asked: Any) -> dict[str, Any]:
    """The table of links with its filters."""
    return {
        "links": links,
        "filters": LinkFilter(q=q or None, **asked),
        "filtered": bool(q or asked),
        "q": q,
        "states": [("active", 5), ("disabled", 1), ("expired", 1), ("deleted", 1_001)],
        "counts": LinkCounts(
            {"active": 5, "disabled": 1, "expired": 1, "deleted": 1_001, "on_hold": 0}, []
        ),
        "total": 7,
        "max_counted": 1_000,
        "tags": (
            [
                LinkTagCount("planning", "planning", "#2f4bd6", 12),
                LinkTagCount(HOSTILE, "hostile", "#b3261e", 3),
            ]
            if links
            else []
        ),
        "since": "",
        "until": "",
        "query": "q=x",
        "views": [{"name": HOSTILE, "query": "q=x"}],
        "density": "compact",
        "densities": DENSITY_LABELS,
        "columns": list(COLUMN_LABELS),
        "column_choices": COLUMN_LABELS,
        "sort_url": lambda key: f"/app/links?sort={key}",
        "sorts": [(sort.value, label) for sort, label in SORT_LABELS.items()],
        "visibilities": VISIBILITY_FILTER_CHOICES,
        "owners": [(owner.value, label) for owner, label in OWNER_LABELS.items()],
        "teams": [("", VISIBILITY_FILTER_CHOICES[0][1]), ("crew", "Crew")] if links else [],
        "domains": [("", VISIBILITY_FILTER_CHOICES[0][1]), ("sho.rt", "sho.rt")] if links else [],
        "chosen_domain": "",
        "utm_templates": [(7, "Newsletter"), (8, HOSTILE)] if links else [],
        "filter_url": lambda **changes: (
            "/app/links?" + "&".join(f"{name}={value}" for name, value in changes.items())
        ),
        "tag_url": lambda slug: f"/app/links?tag={slug}",
        "may_act": True,
        "next_url": "/app/links?cursor=x" if links else None,
        "first_url": None,
    }


TAG_ROWS = [
    Tag(id=1, name="planning", key="planning", color="#2F4BD6", usage_count=1284, last_used_at=NOW),
    Tag(id=2, name=HOSTILE, key="hostile", color="#B3261E", usage_count=1, last_used_at=None),
]
TAGS_PAGE: dict[str, Any] = {
    "sort": "usage",
    "sorts": TAG_SORTS,
    "palette": PALETTE,
    "may_change": True,
    "wrong": None,
    "next_url": None,
}
READY = ReadinessDetail(
    status="degraded",
    version="0.1.0",
    dependencies={
        "database": DependencyHealth(status="ok", latency_ms=0.4),
        "redis": DependencyHealth(status="down", latency_ms=None, detail="refused"),
    },
)
ADMIN: dict[str, Any] = {
    "readiness": READY,
    "overview": InstanceOverview(
        new_links=[3, 9, 4, 0, 12, 8, 7, 2, 6, 11, 5, 1, 9, 4],
        new_people=[0] * 13 + [1],
        database_bytes=48_300_000,
        archive_bytes=1_240_000_000,
        disk_free=62_000_000_000,
        disk_size=80_000_000_000,
        versions=["Refract 1.0.0", "Python 3.13.1", "SQLite 3.46.1"],
    ),
    "waiting": 12,
    "dead": 2,
    "oldest": 40,
    "here": "overview",
}
DEAD = Job(
    id=7,
    kind="links.check_safety",
    attempt_count=3,
    finished_at=NOW,
    last_error_code="UNAVAILABLE",
    last_error_message="The service did not answer. " * 8 + HOSTILE,
)
FAILED_JOBS = [(DEAD, (DEAD.last_error_message or "")[:300])]
JOBS: dict[str, Any] = {"here": "jobs", "next_url": "/app/admin/jobs?cursor=x"}
KINDS = [("links.check_safety", {"PENDING": 3, "IN_PROGRESS": 1, "FAILED": 0, "DEAD": 2})]
BLOCKED = [
    BlockedDomain(domain="bad.example", reason=HOSTILE, blocked_at=NOW),
    BlockedDomain(domain="worse.example", reason="", blocked_at=NOW),
]


def entry(
    position: int, title: str | None, url: str, description: str | None = None, **more: Any
) -> dict[str, Any]:
    given = {
        "fetch_status": "success",
        "duplicate": False,
        "link_id": None,
        "state": "live",
        "clicks": 12 * position,
    }
    return {
        "id": str(1000 + position),
        "position": position,
        "title": title,
        "url": url,
        "description": description,
        **given,
        **more,
    }


ENTRIES = [
    entry(
        1,
        "How we plan",
        LINKS[0]["destination"],
        "The one page to read before your first planning week.",
    ),
    entry(2, None, "https://example.org/still/loading", fetch_status="pending"),
    entry(3, HOSTILE, "https://wiki.example.com/w/index.php", HOSTILE, duplicate=True),
    entry(4, None, "https://example.net/down", fetch_status="failed", state="blocked"),
    entry(5, "読書会のお知らせ", "https://例え.テスト/読書会/2026", link_id="7", state="gone"),
    entry(6, "Long " * 40, "https://example.com/" + "long/" * 40, "Long " * 100),
]
A_LIST: dict[str, Any] = {
    "id": "361890234523648",
    "title": "Reading for new people",
    "description": "Start at the top.\nThen go on.",
    "slug": "reading",
    "palette": "cobalt",
    "layout": "list",
    "cover": "hills",
    "shows_author": True,
    "team": None,
    "version": 3,
    "author": "Ada",
    "sections": [
        {"id": "91", "title": "Start here", "position": 1},
        {"id": "92", "title": HOSTILE, "position": 4},
        {"id": "93", "title": "Empty", "position": 7},
    ],
    "status": "draft",
    "replaces": None,
    "edition": None,
    "created_at": NOW,
    "updated_at": NOW,
    "published_at": None,
    "url": None,
    "views": 0,
    "entry_count": len(ENTRIES),
    "entries": ENTRIES,
}
PUBLISHED = A_LIST | {
    "id": "2",
    "status": "published",
    "replaces": None,
    "edition": 3,
    "published_at": NOW,
    "url": "https://go.example.com/reading",
    "views": 1284,
}
UNTITLED = A_LIST | {
    "id": "3",
    "title": None,
    "slug": None,
    "cover": "none",
    "entry_count": 0,
    "entries": [],
    "sections": [],
}
ALL_LISTS = [
    A_LIST
    | {
        "owner_id": "1",
        "owner_email": "ada@example.com",
        "hosts": ["example.com"],
        "removed_at": None,
    },
    PUBLISHED
    | {
        "title": HOSTILE,
        "owner_id": None,
        "owner_email": None,
        "hosts": ["a.example"] * 5,
        "removed_at": None,
    },
    PUBLISHED | {"owner_id": None, "owner_email": None, "hosts": [], "removed_at": NOW},
]
ALL_LINKS = [
    {
        "id": str(number),
        "names": [link["name"]] if number != 2 else [],
        "code": "x7Kq",
        "title": link["title"],
        "destination": link["destination"],
        "status": link["state"],
        "owners": [{"email": "ada@example.com"}] if number > 1 else [],
        "teams": [{"name": HOSTILE}] if number == 1 else [],
        "total_clicks": link["clicks"],
        "created_at": NOW,
    }
    for number, link in enumerate(LINKS)
]
DELETED_LISTS = [
    {"id": "1", "title": "Books", "slug": "books", "held": True},
    {"id": "2", "title": HOSTILE, "slug": None, "held": False},
]
REPORT: dict[str, Any] = {
    "reasons": list(ReportReason),
    "max_details": 1_000,
    "values": {},
    "errors": {},
}
REPORT_WRONG = {"reason": "Choose one.", "target": "Enter a short link or name."}
REPORTS: list[dict[str, Any]] = [
    {
        "id": "1",
        "kind": "link",
        "name": "roadmap",
        "domain": "a-very-long-host-of-a-campaign.example",
        "url": "https://a-very-long-host-of-a-campaign.example/roadmap",
        "count": 3,
        "reasons": {"phishing": 2, "spam": 1},
        "details": ["It asks for my password.", HOSTILE],
        "last_at": NOW,
        "outcome": None,
        "title": "Q3 roadmap",
        "state": "active",
        "destination": "https://xn--e1awd7f.com/" + "long/" * 40,
        "hosts": ["xn--e1awd7f.com"],
        "owner_id": "1",
        "owner_email": "ada@example.com",
        "owner_status": "active",
        "owner_team": None,
    },
    {
        "id": "2",
        "kind": "list",
        "name": "reading",
        "domain": None,
        "url": "https://go.example.com/reading",
        "count": 1,
        "reasons": {"other": 1},
        "details": [],
        "last_at": NOW,
        "outcome": None,
        "title": None,
        "state": "published",
        "destination": None,
        "hosts": ["a.example", "b.example"],
        "owner_id": None,
        "owner_email": None,
        "owner_status": None,
        "owner_team": "marketing",
    },
]
CLOSED_REPORTS = [
    REPORTS[0] | {"outcome": "suspend-owner", "state": "disabled", "owner_status": "suspended"},
    REPORTS[1] | {"outcome": "dismiss", "state": "gone", "hosts": []},
]
BUILDER: dict[str, Any] = {
    "settled": False,
    "waiting": [],
    "host": "go.example.com",
    "domain": "",
    "domains": [("", "go.example.com"), ("sho.rt", "sho.rt")],
    "palettes": PALETTE_NAMES,
    "layouts": LAYOUT_NAMES,
    "covers": COVER_NAMES,
    "may_publish": True,
    "may_name": True,
    "heirs": [],
    "edits": [],
}
TEAM_OF_LIST = {"team_id": "5", "slug": "crew", "name": "Crew"}
LIST_OF_A_TEAM: dict[str, Any] = {
    "heirs": [("", "You"), ("hostile", HOSTILE)],
    "edits": [
        ("Bob", "Added links", NOW - timedelta(minutes=2)),
        (HOSTILE, "Edited details", NOW - timedelta(days=1)),
    ],
}
OWNED_LIST: dict[str, Any] = {
    "heirs": [("marketing", "Marketing")],
    "edits": [],
    "domain": "",
    "actions": [{"event": "publish", "edition": 3, "created_at": NOW}],
    "embed_code": '<iframe src="https://go.example.com/reading?embed"></iframe>',
    "sharing": False,
}
LISTS: dict[str, Any] = {
    "q": "",
    "team": "",
    "owners": [],
    "titles": {PUBLISHED["id"]: ["How we plan", HOSTILE, "example.org"]},
    "next_url": None,
    "first_url": None,
    "claimable": [],
    "may_publish": True,
    "deleted": [],
}
WRONG = {
    "slug": "The name “reading” is already in use.",
    "urls": "exmaple: That doesn't look like a valid URL.",
}
TYPED, CLAIM, QR = {"urls": "exmaple"}, {"claimable": ["Books", "Music"]}, {"slug": "roadmap"}
PUBLIC_ENTRIES = [
    one | {"href": f"/reading/{one['position']}", "monogram": "HP", "ray": one["position"] % 4 + 1}
    for one in ENTRIES
]
SHELF: dict[str, Any] = {
    "list": PUBLISHED | {"latest_edition": 4},
    "heading": "Reading for new people",
    "author_bio": "Mathematician. Keeps lists of what was worth reading.",
    "size": len(ENTRIES),
    "groups": [
        {"title": None, "entries": PUBLIC_ENTRIES[:2]},
        {"title": HOSTILE, "entries": PUBLIC_ENTRIES[2:]},
    ],
    "address": "https://go.example.com/reading",
    "feeds": {"rss": "/reading.rss", "json": "/reading.json", "md": "/reading.md"},
    "qr_url": "/roadmap.qr",
    "card_url": "https://go.example.com/reading.png",
    "all_addresses": "\n".join(one["url"] for one in ENTRIES),
    "older": 2,
    "newer": 4,
    "indexed": True,
}
DRAFT_SHELF = {
    name: SHELF[name]
    for name in ("heading", "author_bio", "groups", "size", "address", "all_addresses")
} | {
    "list": A_LIST | {"latest_edition": 1, "edition": 1},
    "older": None,
    "newer": None,
    "draft": "1",
}

HITS: list[dict[str, Any]] = [
    {
        "heading": "Links",
        "icon": "link",
        "href": "/app/links?q=roadmap",
        "count": 12,
        "hits": [
            SearchHit(SearchKind.LINK, 1, "/roadmap", "Q3 roadmap " * 20, "/app/links/1", None)
        ],
    },
    {
        "heading": "Library",
        "icon": "file-text",
        "href": "/app/library?q=roadmap",
        "count": 1,
        "hits": [SearchHit(SearchKind.ITEM, 2, HOSTILE, HOSTILE, "/app/library/2", None)],
    },
]
AREAS = ["links", "lists", "library", "tags", "settings", "admin"]
ITEM_TAGS = [
    {"id": "1", "name": "databases", "color": "#2F4BD6"},
    {"id": "2", "name": HOSTILE, "color": "#B3261E"},
]


def item(number: int, title: str, **given: Any) -> dict[str, Any]:
    """An item as the library shows it."""
    fields: dict[str, Any] = {
        "id": str(number),
        "text": f"{title}\n{HOSTILE}",
        "url": "https://www.example.com/articles/" + "engines/" * number,
        "title": title,
        "summary": "What it is about, in a sentence or two that somebody wrote. " * 2,
        "notes": None,
        "type": "ARTICLE",
        "status": "READY_TO_CONFIRM",
        "unread": False,
        "favorite": False,
        "archived": False,
        "enrichment": "AI",
        "created_at": NOW,
        "updated_at": NOW,
        "confirmed_at": None,
        "tags": ITEM_TAGS,
        "suggestions": [],
        "duplicate_of": None,
        "note": None,
        "failure": None,
        "version": 1,
    }
    return fields | given


ITEMS = [
    item(1, "How queues in PostgreSQL work", status="ARCHIVED", confirmed_at=NOW, unread=True),
    item(2, HOSTILE, status="ARCHIVED", url=None, summary=None, type="NOTE", favorite=True),
    item(3, "A title as long as a title may be " * 7, status="ARCHIVED", tags=[], archived=True),
]
QUEUE = [
    item(4, "How queues in PostgreSQL work", duplicate_of="1"),
    item(5, "", text="https://example.com/being-read", status="ENRICHING", summary=None),
    item(
        6,
        HOSTILE,
        status="FAILED",
        failure="The page couldn't be reached. " + HOSTILE,
        url=None,
    ),
]
CHIPS = [
    {
        "id": "1",
        "name": "databases",
        "existing": True,
        "share": 0.92,
        "reason": "On 3 similar items",
        "chosen": True,
    },
    {
        "id": "2",
        "name": HOSTILE,
        "existing": False,
        "share": 0.41,
        "reason": HOSTILE,
        "chosen": False,
    },
]
VIEWS = dict(zip(LibraryView, (3, 2, 1, 12), strict=True))
FACETS = LibraryFacets(
    3, {"ARTICLE": 2, "NOTE": 1}, 1, [(TAG_ROWS[0], 12), (TAG_ROWS[1], 1)], VIEWS
)
LIBRARY: dict[str, Any] = {
    "facets": FACETS,
    "tags": [
        {"slug": tag.name, "name": tag.name, "color": tag.color, "links": number}
        for tag, number in FACETS.tags
    ],
    "chosen_tags": (),
    "tag_url": lambda name: "/app/library?tag=" + name,
    "kind": "",
    "untagged": False,
    "discarded": False,
    "view": LibraryView.LIBRARY,
    "q": "",
    "typed": "",
    "words": (),
    "filters": {},
    "filtered": False,
    "sort": LibrarySort.NEWEST,
    "sorts": LIBRARY_SORT_LABELS,
    "density": "compact",
    "densities": DENSITY_LABELS,
    "approximate": False,
    "waiting": 3,
    "review_waiting": 3,
    "address": lambda **changes: "/app/library?" + "&".join(changes),
    "next_url": None,
    "first_url": None,
}
NO_FACETS = LibraryFacets(0, {"ARTICLE": 0, "NOTE": 0}, 0, [], dict.fromkeys(LibraryView, 0))
READING = ReaderView(
    "How queues work",
    "A. Writer",
    "example.com",
    "https://example.com/",
    "en",
    NOW,
    "<h2>Heading</h2><p><a href='https://e.com/'>Link</a>.</p><pre>"
    + "code " * 50
    + "</pre><ul><li>One</li></ul>",
    900,
    4,
)
MINE: dict[str, Any] = TAGS_PAGE | {"scope": "mine", "aliases": {"1": ["plans", "plan"]}}

RULES = [
    SimpleNamespace(id=1, pattern="github.com", tags=["code", HOSTILE]),
    SimpleNamespace(id=2, pattern='"' + "espresso " * 25 + '"', tags=["coffee"]),
]
IMPORTS = [
    ImportRun(
        id=number,
        name=name,
        status=status,
        total=6000,
        created=1798,
        existing=1,
        skipped=0,
        refused=1,
        kept=0,
        dry_run=False,
        created_at=NOW,
        finished_at=ended,
    )
    for number, (name, status, ended) in enumerate(
        [
            ("bookmarks.html", "RUNNING", None),
            (HOSTILE, "DONE", NOW),
            ("x" * 255, "ROLLED_BACK", NOW),
            (None, "ROLLING_BACK", None),
            ("a", "STOPPED", NOW),
        ]
    )
]
LINK_IMPORTS = [
    ImportRun(
        id=number,
        kind="columns",
        name=name,
        status=status,
        total=6000,
        created=5990,
        existing=1,
        skipped=3,
        refused=6,
        kept=kept,
        dry_run=dry_run,
        options={
            "conflict": "skip",
            "columns": {"destination": "long url", "title": HOSTILE},
            "unread": ["owner", "x" * 100],
        },
        created_at=NOW,
        finished_at=None if status == "RUNNING" else NOW,
    )
    for number, (name, status, dry_run, kept) in enumerate(
        [
            ("links.csv", "RUNNING", False, 0),
            (HOSTILE, "DONE", True, 0),
            ("x" * 255, "ROLLED_BACK", False, 2),
            (None, "RUNNING", True, 0),
        ]
    )
]
LINK_IMPORT_ROWS = [
    {"place": f"line {number}", "shown": shown, "outcome": outcome, "why": why, "item_id": item_id}
    for number, (shown, outcome, why, item_id) in enumerate(
        [
            ("aB → https://example.com/", "CREATED", None, 1),
            (HOSTILE, "SKIPPED", HOSTILE, None),
            ("x" * 200, "REFUSED", "No URL.", None),
            ("b", "KEPT", "Changed here since.", 2),
        ]
    )
]


def link_import(number: int, *, under_way: bool = False) -> dict[str, Any]:
    shown = LINK_IMPORTS[number]
    return {
        "import_run": shown,
        "facts": LinkImportOut.from_import(shown),
        "source": "Shlink (CSV, JSON)",
        "field_labels": IMPORT_LABELS,
        "under_way": under_way,
        "rows": LINK_IMPORT_ROWS,
        "outcome": "",
        "address": lambda **_: f"/app/links/imports/{number}",
        "next_url": "/app/links/imports/1?cursor=x",
        "first_url": None,
    }


TRIAL = ImportPreview(
    BookmarkFileFormat.NETSCAPE,
    3,
    1,
    1,
    1,
    [
        PreviewRow(1, "bookmark 1", "https://example.com/", RowOutcome.CREATED, None, None),
        PreviewRow(
            2,
            "bookmark 2",
            "https://example.com/" + "long" * 40,
            RowOutcome.EXISTS,
            "Duplicate in file.",
            1,
        ),
        PreviewRow(
            3,
            "bookmark 3",
            HOSTILE,
            RowOutcome.REFUSED,
            "Only http and https links are supported, not javascript:.",
            None,
        ),
    ],
)
IMPORT: dict[str, Any] = {
    "under_way": False,
    "done": 1800,
    "rows": TRIAL.rows,
    "outcome": "",
    "address": lambda **_: "/app/library/imports/1",
    **TURNING,
}


PAGES: dict[str, Page] = {
    "landing": page("home/landing.html", "Refract", path="/", anonymous_lists="publish"),
    "landing-off": page("home/landing.html", "Refract", path="/", anonymous_lists="off"),
    "landing-links-only": page(
        "home/landing.html", "Refract", path="/", anonymous_lists="off", areas=["links", "settings"]
    ),
    "signin": page("identity/sign_in.html", "Sign in", path="/auth/sign-in"),
    "signin-failed": page(
        "identity/sign_in.html",
        "Sign in",
        path="/auth/sign-in",
        reason="That link was used already. Make a new one.",
    ),
    "signin-provider": page(
        "identity/sign_in.html", "Sign in", providers=PROVIDERS[:1], links_enabled=False
    ),
    "signin-providers": page(
        "identity/sign_in.html",
        "Sign in",
        providers=PROVIDERS,
        reason="Sign-in failed: it took too long. Start again.",
    ),
    "signin-restricted": page(
        "identity/sign_in.html",
        "Sign in",
        path="/auth/sign-in",
        purpose="/roadmap is restricted. Sign in to open it.",
    ),
    "signed-out": page("identity/signed_out.html", "Signed out", path="/auth/signed-out"),
    "signin-confirm": page("identity/sign_in_confirm.html", "Sign in", **CONFIRM),
    "invitation": page("identity/invitation.html", "Invitation", **INVITED),
    "invitation-wrong": page(
        "identity/invitation.html",
        "Invitation",
        **INVITED | {"name": HOSTILE, "error": "Enter a name.", "inviter": ""},
    ),
    "invitation-signed-in": page(
        "identity/invitation.html", "Invitation", signed_in=ADA, is_own=False, **INVITED
    ),
    "invitation-own": page(
        "identity/invitation.html", "Invitation", signed_in=ADA, is_own=True, **INVITED
    ),
    "invitation-expired": page("identity/invitation_expired.html", "Invitation"),
    "onward": page("onward.html", "Opening /roadmap…", onward="#main"),
    "error": page("error.html", "Something broke", **ERROR),
    "error-limited": page("error.html", "Too many requests", SAM, **LIMITED),
    "not-found": page(
        "redirect/not_found.html",
        "Not found",
        name="raodmap",
        suggestions=["roadmap", "road-trip", "roadshow"],
    ),
    "not-found-create": page(
        "redirect/not_found.html",
        "Not found",
        ADA,
        name="offsite",
        creatable=True,
        suggestions=["offers"],
    ),
    "not-found-plain": page("redirect/not_found.html", "Not found", name="x" * 50),
    "gone-expired": page(
        "redirect/gone.html", "Expired", name="spring-offer", state="expired", since=NOW
    ),
    "gone-scheduled": page(
        "redirect/gone.html", "Not yet", name="spring-offer", state="scheduled", starts_at=NOW
    ),
    "gone-limit-reached": page(
        "redirect/gone.html", "Limit", name="voucher", state="limit_reached"
    ),
    "limited": page(
        *("redirect/limited.html", "/voucher"),
        name="voucher",
        limit=1,
        action="/voucher",
        by_button=True,
    ),
    "limited-flagged": page(
        *("redirect/limited.html", "/voucher", ADA),
        name="voucher",
        limit=500,
        action="/voucher",
        by_button=False,
        warning="The address mixes letters of several alphabets.",
        manage_url="/app/links/1",
    ),
    "password": page("redirect/password.html", "/plans", name="plans", action="/plans"),
    "password-wrong": page(
        "redirect/password.html",
        "/plans",
        name="plans",
        action="/plans",
        error="That isn't the password of this link.",
    ),
    "gone-disabled": page(
        "redirect/gone.html",
        "Disabled",
        ADA,
        name="wiki",
        state="disabled",
        manage_url="/app/links/1",
    ),
    "gone-blocked": page("redirect/gone.html", "Blocked", name="free-prize", state="blocked"),
    "gone-on-hold": page("redirect/gone.html", "Not available", name="x" * 50, state="on_hold"),
    "gone-deleted": page("redirect/gone.html", "Gone", name="old-news", state="deleted"),
    "preview": page("redirect/preview.html", "Preview", **PREVIEW),
    "preview-flagged": page(
        "redirect/preview.html",
        "Preview",
        warning="The address mixes letters of several alphabets.",
        continue_url="/x",
        **PREVIEW,
    ),
    "preview-mine": page(
        "redirect/preview.html", "Preview", SAM, manage_url="/app/links/1", **PREVIEW
    ),
    "home": page("home/index.html", "Home", SAM, path="/", review_waiting=0, invitations_waiting=0),
    "home-invited": page(
        "home/index.html", "Home", SAM, path="/", links=LINKS[:2], invitations_waiting=1
    ),
    "home-wrong": page(
        "home/index.html",
        "Home",
        SAM,
        path="/",
        values={"destination": "exmaple", "name": "roadmap"},
        errors=FIRST_ERRORS,
    ),
    "home-full": page(
        "home/index.html",
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
    "home-links-only": page(
        "home/index.html", "Home", SAM, path="/", links=LINKS[:3], areas=["links", "settings"]
    ),
    "settings": page(
        "identity/settings.html",
        "Settings",
        ADA,
        path="/app/settings",
        keys=KEYS,
        allowed_scopes=["read", "write", "admin"],
        **SETTINGS,
    ),
    "settings-empty": page(
        "identity/settings.html",
        "Settings",
        SAM,
        path="/app/settings",
        keys=[],
        errors={"name": "Give the key a name.", "confirm": "Type “delete” to confirm."},
        **(SETTINGS | {"budget": NO_MODEL}),
    ),
    "settings-new-key": page(
        "identity/settings.html",
        "Settings",
        SAM,
        path="/app/settings",
        keys=KEYS[:1],
        new_key=NEW_KEY,
        **(SETTINGS | {"budget": SPENT}),
    ),
    "invitations": page(
        "links/invitations.html",
        "Invitations",
        ADA,
        path="/app/invitations",
        invitations=INVITATIONS,
        **TURNING,
    ),
    "invitations-none": page(
        "links/invitations.html",
        "Invitations",
        ADA,
        path="/app/invitations",
        invitations=[],
        **TURNING,
    ),
    "link-qr": page(
        "links/qr.html",
        "QR code of /roadmap",
        SAM,
        path="/app/links/1/qr",
        link=LINK_OUT,
        name="roadmap",
        image_url="/roadmap.qr",
        address="name=roadmap",
        values=asdict(QrStyle("#1d4ed8", shape="dots")),
        errors={},
        shapes=SHAPES,
        corrections=CORRECTIONS,
        max_margin=10,
        has_own=True,
    ),
    "link-qr-wrong": page(
        "links/qr.html",
        "QR code of /roadmap",
        SAM,
        path="/app/links/1/qr",
        link=LINK_OUT,
        name="roadmap",
        image_url="/roadmap.qr",
        address="name=roadmap",
        values=asdict(QrStyle("#ffd400")),
        errors={"background": "Scanners can’t tell the code from its background."},
        shapes=SHAPES,
        corrections=CORRECTIONS,
        max_margin=10,
        has_own=False,
    ),
    "utm-templates": page(
        "links/utm_templates.html",
        "UTM templates",
        ADA,
        path="/app/utm-templates",
        templates=UTM_TEMPLATES,
        edited=None,
        values={},
        errors={},
        **UTM_PAGE,
    ),
    "utm-template": page(
        "links/utm_templates.html",
        "UTM templates",
        ADA,
        path="/app/utm-templates",
        templates=UTM_TEMPLATES,
        edited=UTM_TEMPLATES[1],
        values={"name": HOSTILE, "utm_source": HOSTILE},
        errors={"name": "There is already a template with that name."},
        **UTM_PAGE,
    ),
    "utm-templates-none": page(
        "links/utm_templates.html",
        "UTM templates",
        ADA,
        path="/app/utm-templates",
        templates=[],
        edited=None,
        values={},
        errors={},
        **UTM_PAGE,
    ),
    "teams": page(
        "teams/index.html",
        "Teams",
        ADA,
        path="/app/teams",
        teams=TEAMS,
        roles=ROLE_LABELS,
        may_create=True,
        show="all",
        sees_all=True,
        **TURNING,
    ),
    "teams-none": page(
        "teams/index.html",
        "Teams",
        SAM,
        path="/app/teams",
        teams=[],
        roles=ROLE_LABELS,
        may_create=False,
        show="mine",
        sees_all=False,
        **TURNING,
    ),
    "teams-refused": page(
        "teams/index.html",
        "Teams",
        SAM,
        path="/app/teams",
        teams=[],
        roles=ROLE_LABELS,
        may_create=True,
        show="mine",
        sees_all=False,
        values={"name": "Crew", "slug": "crew"},
        errors={"slug": "There is already a team with that handle."},
        **TURNING,
    ),
    "team": page(
        "teams/detail.html",
        "Crew",
        ADA,
        path="/app/teams/5",
        team=TEAMS[0],
        members=TEAM_MEMBERS,
        manages=True,
        roles=ROLE_LABELS,
        issuers=[("work", "Example ID")],
        keys=KEYS[:3],
        ending_soon={"1"},
        key_days=KEY_LIFETIMES,
        default_key_days=DEFAULT_KEY_LIFETIME,
        errors={"delete": "This team still owns links.", "email": "Nobody has that address."},
    ),
    "team-member": page(
        "teams/detail.html",
        "Crew",
        SAM,
        path="/app/teams/5",
        team=TEAMS[0],
        members=TEAM_MEMBERS,
        manages=False,
        roles=ROLE_LABELS,
        issuers=[],
        keys=None,
        errors={"members": "A team needs a manager."},
    ),
    "admin-people": page(
        "admin/people.html",
        "People",
        ADA,
        path="/app/admin/people",
        here="people",
        people=PEOPLE,
        q="",
        **TURNING,
    ),
    "admin-people-link": page(
        "admin/people.html",
        "People",
        ADA,
        path="/app/admin/people",
        here="people",
        people=PEOPLE,
        q="",
        signin_link=NEW_LINK,
        **TURNING,
    ),
    "admin-invitations": page(
        "admin/invitations.html",
        "Invitations",
        ADA,
        path=INVITE_PATH,
        **TURNING | ACCOUNT_INVITATIONS,
    ),
    "admin-invitations-new": page(
        "admin/invitations.html",
        "Invitations",
        ADA,
        path=INVITE_PATH,
        new_link=NEW_LINK,
        **TURNING | ACCOUNT_INVITATIONS,
    ),
    "admin-invitations-wrong": page(
        "admin/invitations.html",
        "Invitations",
        ADA,
        path=INVITE_PATH,
        values={"name": HOSTILE, "email": "nonsense", "role": "admin", "valid_days": "1"},
        errors={"email": "Enter an email address, like ada@example.com."},
        problem="No.",
        **TURNING | ACCOUNT_INVITATIONS | {"invitations": [], "sends_email": False},
    ),
    "admin-invitations-off": page(
        "admin/invitations.html",
        "Invitations",
        ADA,
        path=INVITE_PATH,
        **TURNING | ACCOUNT_INVITATIONS | {"invitations": [], "is_allowed": False},
    ),
    "admin-barred": page(
        "admin/deleted_accounts.html",
        "Deleted accounts",
        ADA,
        path="/app/admin/barred",
        here="people",
        barred=BARRED,
        **TURNING,
    ),
    "admin-barred-none": page(
        "admin/deleted_accounts.html",
        "Deleted accounts",
        ADA,
        path="/app/admin/barred",
        here="people",
        barred=[],
        **TURNING,
    ),
    "admin-people-none": page(
        "admin/people.html",
        "People",
        ADA,
        path="/app/admin/people",
        here="people",
        people=[],
        q="nobody",
        problem="No.",
        **TURNING,
    ),
    "report": page(
        "reports/form.html",
        "Report abuse",
        path="/app/report",
        **(REPORT | {"values": {"target": "roadmap"}}),
    ),
    "report-wrong": page(
        "reports/form.html",
        "Report abuse",
        ADA,
        path="/app/report",
        **(REPORT | {"errors": REPORT_WRONG}),
    ),
    "report-thanks": page("reports/received.html", "Thank you", path="/app/report/thanks"),
    "admin-reports": page(
        "admin/reports.html",
        "Reports",
        ADA,
        path="/app/admin/reports",
        here="reports",
        groups=REPORTS,
        shown="open",
        reports_waiting=7,
        **TURNING,
    ),
    "admin-reports-closed": page(
        "admin/reports.html",
        "Reports",
        ADA,
        path="/app/admin/reports",
        here="reports",
        groups=CLOSED_REPORTS,
        shown="closed",
        reports_waiting=0,
        **TURNING,
    ),
    "admin-reports-none": page(
        "admin/reports.html",
        "Reports",
        ADA,
        path="/app/admin/reports",
        here="reports",
        groups=[],
        shown="open",
        reports_waiting=0,
        **TURNING,
    ),
    "admin-lists": page(
        "admin/lists.html",
        "Lists",
        ADA,
        path="/app/admin/lists",
        here="lists",
        lists=ALL_LISTS,
        q="",
        show="",
        **TURNING,
    ),
    "admin-lists-none": page(
        "admin/lists.html",
        "Lists",
        ADA,
        path="/app/admin/lists",
        here="lists",
        lists=[],
        q="x",
        show="",
        **TURNING,
    ),
    "admin-links": page(
        "admin/links.html",
        "Links",
        ADA,
        path="/app/admin/links",
        here="links",
        links=ALL_LINKS,
        q="",
        chosen_status="",
        **TURNING,
    ),
    "admin-links-none": page(
        "admin/links.html",
        "Links",
        ADA,
        path="/app/admin/links",
        here="links",
        links=[],
        q="x",
        chosen_status="disabled",
        **TURNING,
    ),
    "admin-links-empty": page(
        "admin/links.html",
        "Links",
        ADA,
        path="/app/admin/links",
        here="links",
        links=[],
        q="",
        chosen_status="",
        **TURNING,
    ),
    "lists-deleted": page(
        "lists/index.html",
        "Lists",
        ADA,
        path="/app/lists",
        lists=[A_LIST],
        **(LISTS | {"deleted": DELETED_LISTS}),
    ),
    "admin-audit": page(
        "admin/audit_log.html",
        "Audit log",
        ADA,
        path="/app/admin/audit",
        here="audit",
        entries=AUDIT,
        actions=[("signed_in", "Signed in")],
        action="",
        person="",
        days=90,
        **TURNING,
    ),
    "admin-audit-none": page(
        "admin/audit_log.html",
        "Audit log",
        ADA,
        path="/app/admin/audit",
        here="audit",
        entries=[],
        actions=[("signed_in", "Signed in")],
        action="",
        person="",
        days=90,
        **TURNING,
    ),
    "links": page("links/index.html", "Links", ADA, path="/app/links", **table(LINKS)),
    "links-filtered": page(
        "links/index.html",
        "Links",
        ADA,
        path="/app/links",
        **table(LINKS[:2], tags=("planning",), status=LinkState.ACTIVE),
    ),
    "links-empty": page("links/index.html", "Links", SAM, path="/app/links", **table([])),
    "links-nothing-found": page(
        "links/index.html", "Links", SAM, path="/app/links", **table([], "raodmap")
    ),
    "link": page("links/detail.html", "/roadmap", ADA, path="/app/links/1", **LINK),
    "link-on-hold": page(
        "links/detail.html",
        "/roadmap",
        ADA,
        path="/app/links/1",
        **LINK
        | {
            "link": LINK_OUT | {"status": "on_hold", "visibility": "secure"},
            "tab": "people",
            "invitations": INVITATIONS,
            "leaves": True,
        },
    ),
    "link-people": page(
        "links/detail.html", "/roadmap", ADA, path="/app/links/1", **LINK | {"tab": "people"}
    ),
    "link-history": page(
        "links/detail.html", "/roadmap", ADA, path="/app/links/1", **LINK | {"tab": "history"}
    ),
    "link-rules": page(
        "links/detail.html",
        "/roadmap",
        ADA,
        path="/app/links/1",
        **RULES_TAB
        | {
            "rules": [A_RULE, HOSTILE_RULE],
            "rule_clicks": {
                "1": {"clicks": 1284, "share": 0.41, "low": 0.39, "high": 0.43},
                "3": {"clicks": 0, "share": 0, "low": 0, "high": 0.001},
            },
            "other_clicks": {"clicks": 1, "share": 0.001, "low": 0, "high": 0.002},
            "decision": {"rules": DECISION_RULES, "chosen": DECISION_RULES[0]},
            "draft": True,
        },
    ),
    "link-rules-wrong": page(
        "links/detail.html",
        "/roadmap",
        ADA,
        path="/app/links/1",
        rule_errors=dict.fromkeys(("destination", "countries", "zone", "days", "share"), "No."),
        rules_error="The link was changed meanwhile.",
        **RULES_TAB
        | {
            "rules": [A_RULE, HOSTILE_RULE],
            "opened": "3",
            "rule_values": EMPTY | {"systems": ["ios"], "days": ["mon"], "countries": HOSTILE},
            "is_full": True,
            "visitor_errors": {"at": "No.", "country": "No."},
        },
    ),
    "link-rules-new": page(
        "links/detail.html",
        "/roadmap",
        ADA,
        path="/app/links/1",
        **RULES_TAB | {"opened": "new"},
    ),
    "link-rules-empty": page(
        "links/detail.html", "/roadmap", SAM, path="/app/links/1", **RULES_TAB
    ),
    "link-figures": page(
        "links/detail.html",
        "/roadmap",
        ADA,
        path="/app/links/1",
        shown=FIGURES,
        **LINK | {"tab": "analytics"},
    ),
    "link-figures-empty": page(
        "links/detail.html",
        "/roadmap",
        ADA,
        path="/app/links/1",
        shown=NO_FIGURES,
        **LINK | {"tab": "analytics"},
    ),
    "analytics": page(
        "clicks/analytics.html",
        "Analytics",
        ADA,
        path="/app/analytics",
        shown=ACCOUNT_FIGURES,
        scopes=SCOPES,
    ),
    "analytics-filtered": page(
        "clicks/analytics.html",
        "Analytics",
        SAM,
        path="/app/analytics",
        shown=FILTERED_FIGURES,
        scopes=[],
    ),
    "analytics-live": page(
        "clicks/live.html",
        "Live",
        ADA,
        path="/app/analytics/live",
        recent=RECENT,
        back="/app/analytics",
    ),
    "analytics-details": page(
        "clicks/details.html",
        "Countries",
        ADA,
        path="/app/analytics/details/countries",
        panel=FIGURES["panels"]["countries"],
        back="/app/analytics",
    ),
    "lists": page(
        "lists/index.html",
        "Lists",
        ADA,
        path="/app/lists",
        lists=[A_LIST, PUBLISHED, UNTITLED],
        **(LISTS | CLAIM),
    ),
    "lists-team": page(
        "lists/index.html",
        "Lists",
        ADA,
        path="/app/lists",
        lists=[A_LIST | {"team": TEAM_OF_LIST}, PUBLISHED],
        **(LISTS | {"owners": [("", "You"), ("crew", "Crew")]}),
    ),
    "lists-team-empty": page(
        "lists/index.html",
        "Lists",
        ADA,
        path="/app/lists",
        lists=[],
        **(LISTS | {"owners": [("", "You"), ("crew", "Crew")], "team": "crew"}),
    ),
    "lists-empty": page("lists/index.html", "Lists", SAM, path="/app/lists", lists=[], **LISTS),
    "lists-stranger": page(
        "lists/index.html",
        "Lists",
        path="/app/lists",
        lists=[A_LIST],
        errors=WRONG,
        values=TYPED,
        **LISTS,
    ),
    "list-add": page(
        "lists/add.html",
        "Add to a list",
        ADA,
        path="/app/lists/add",
        url="https://example.com/",
        drafts=[A_LIST, UNTITLED],
    ),
    "list-add-wrong": page(
        "lists/add.html",
        "Add to a list",
        SAM,
        path="/app/lists/add",
        url="x",
        drafts=[],
        problem="That doesn't look like a valid URL.",
    ),
    "list": page(
        "lists/builder.html",
        "Reading for new people",
        ADA,
        path="/app/lists/1",
        list=A_LIST,
        **(BUILDER | CLAIM),
    ),
    "list-team": page(
        "lists/builder.html",
        "Reading for new people",
        ADA,
        path="/app/lists/1",
        list=A_LIST | {"team": TEAM_OF_LIST},
        errors={"team": "Team not found."},
        **(BUILDER | LIST_OF_A_TEAM),
    ),
    "list-stranger": page(
        "lists/builder.html",
        "Untitled list",
        path="/app/lists/1",
        list=UNTITLED,
        errors=WRONG,
        values=TYPED,
        **BUILDER,
    ),
    "list-stranger-draft": page(
        "lists/builder.html",
        "Reading",
        path="/app/lists/1",
        list=A_LIST,
        **(BUILDER | {"domains": [], "may_publish": False, "may_name": False}),
    ),
    "list-stranger-generated": page(
        "lists/builder.html",
        "Reading",
        path="/app/lists/1",
        list=A_LIST,
        **(BUILDER | {"may_name": False}),
    ),
    "list-edition": page(
        "lists/builder.html",
        "Reading for new people",
        SAM,
        path="/app/lists/1",
        list=A_LIST,
        **(BUILDER | {"settled": True}),
    ),
    "list-published": page(
        "lists/published.html",
        "Reading for new people",
        ADA,
        path="/app/lists/2",
        list=PUBLISHED | QR,
        **OWNED_LIST,
    ),
    "list-share": page(
        "lists/published.html",
        "Reading for new people",
        ADA,
        path="/app/lists/2",
        list=PUBLISHED | QR,
        **(OWNED_LIST | {"sharing": True}),
    ),
    "list-public": page("lists/public.html", "Reading for new people", path="/reading", **SHELF),
    "list-preview": page(
        "lists/public.html", "Reading for new people", path="/app/lists/1/preview", **DRAFT_SHELF
    ),
    **{
        f"list-public-{name}": page(
            "lists/public.html",
            "Reading",
            path="/reading",
            **(SHELF | {"list": SHELF["list"] | {"palette": name}}),
        )
        for name in PALETTE_NAMES[1:]
    },
    **{
        f"list-public-{layout}": page(
            "lists/public.html",
            "Reading",
            path="/reading",
            **(SHELF | {"list": SHELF["list"] | {"layout": layout, "cover": cover}}),
        )
        for layout, cover in (("cards", "tiles"), ("compact", "orbits"))
    },
    "list-preview-framed": page(
        "lists/public.html",
        "Reading",
        path="/app/lists/1/preview",
        **(DRAFT_SHELF | {"framed": True}),
    ),
    "list-embed": page("lists/embed.html", "Reading", path="/reading", **SHELF),
    "link-seen": page("links/detail.html", "/roadmap", SAM, path="/app/links/1", **SEEN),
    "link-form-new": page(
        "links/form.html",
        "New link",
        SAM,
        path="/app/links/new",
        link=None,
        name="",
        values={"domain": "sho.rt"},
        errors=FIRST_ERRORS,
        short_host="sho.rt",
        domains=[("", "go.example.com"), ("sho.rt", "sho.rt")],
        **FORM,
    ),
    "link-form": page(
        "links/form.html",
        "Edit",
        SAM,
        path="/app/links/1/edit",
        link=LINK_OUT,
        name="roadmap",
        values=LINK_OUT | {"destination": "https://e.com/{1}", "utm_source": "news"},
        errors={},
        short_host="go.example.com",
        domains=[],
        **FORM,
    ),
    "tags": page(
        "tags/index.html",
        "Tags",
        ADA,
        path="/app/tags",
        tags=TAG_ROWS,
        q="",
        **TAGS_PAGE,
    ),
    "tags-wrong": page(
        "tags/index.html",
        "Tags",
        ADA,
        path="/app/tags",
        tags=TAG_ROWS,
        q="",
        **(TAGS_PAGE | {"wrong": ("2", "x", "That tag exists.")}),
    ),
    "rules": page("library/rules.html", "Tags", ADA, path="/app/tags/rules", rules=RULES),
    "rules-wrong": page(
        "library/rules.html",
        "Tags",
        SAM,
        path="/app/tags/rules",
        rules=[],
        values={"pattern": "x"},
        errors={"pattern": "No.", "tags": "No."},
    ),
    "imports": page(
        "library/imports.html",
        "Import and export",
        ADA,
        path="/app/library/imports",
        imports=IMPORTS,
        most=4_000_000,
        **TURNING,
    ),
    "link-imports": page(
        "links/imports.html",
        "Moving in",
        ADA,
        path="/app/links/imports",
        imports=LINK_IMPORTS,
        sources=list(SOURCE_LABELS.items()),
        systems=list(SYSTEM_LABELS.items()),
        field_labels=IMPORT_LABELS,
        max_bytes=4_000_000,
        **TURNING,
    ),
    "link-imports-wrong": page(
        "links/imports.html",
        "Moving in",
        SAM,
        path="/app/links/imports",
        imports=[],
        sources=list(SOURCE_LABELS.items()),
        systems=list(SYSTEM_LABELS.items()),
        field_labels=IMPORT_LABELS,
        max_bytes=4_000_000,
        error="No such column.",
        columns={"title": HOSTILE},
        **TURNING,
    ),
    "link-import-running": page(
        "links/import.html",
        "links.csv",
        ADA,
        path="/app/links/imports/0",
        **link_import(0, under_way=True),
    ),
    "link-import-tried": page(
        "links/import.html", HOSTILE, ADA, path="/app/links/imports/1", **link_import(1)
    ),
    "link-import-undone": page(
        "links/import.html", "x", SAM, path="/app/links/imports/2", **link_import(2)
    ),
    "imports-tried": page(
        "library/imports.html",
        "Import and export",
        SAM,
        path="/app/library/imports",
        imports=[],
        most=4_000_000,
        trial=TRIAL,
        trial_name=HOSTILE,
        trial_rows=TRIAL.rows[1:],
        **TURNING,
    ),
    "imports-wrong": page(
        "library/imports.html",
        "Import and export",
        SAM,
        path="/app/library/imports",
        imports=[],
        most=4_000_000,
        error="No such file.",
        **TURNING,
    ),
    "import-running": page(
        "library/import.html",
        "bookmarks.html",
        ADA,
        path="/app/library/imports/1",
        one=IMPORTS[0],
        **(IMPORT | {"under_way": True}),
    ),
    "import-done": page(
        "library/import.html", HOSTILE, ADA, path="/app/library/imports/2", one=IMPORTS[1], **IMPORT
    ),
    "import-refused": page(
        "library/import.html",
        "x",
        SAM,
        path="/app/library/imports/2",
        one=IMPORTS[1],
        **(IMPORT | {"rows": [], "outcome": "REFUSED"}),
    ),
    "import-gone": page(
        "library/import.html",
        "x",
        SAM,
        path="/app/library/imports/3",
        one=IMPORTS[2],
        **(IMPORT | {"rows": []}),
    ),
    "share": page(
        "home/share.html",
        "Save to Refract",
        ADA,
        path="/app/share",
        text="https://example.com/" + "long" * 40,
        title=HOSTILE,
        shorten="/app/links/new",
    ),
    "share-thought": page(
        "home/share.html",
        "Save to Refract",
        SAM,
        path="/app/share",
        text=HOSTILE,
        title="",
        shorten=None,
    ),
    "tags-mine": page(
        "tags/index.html",
        "Tags",
        SAM,
        path="/app/tags/mine",
        areas=AREAS,
        tags=TAG_ROWS,
        q="",
        **MINE,
    ),
    "library": page(
        "library/index.html", "Library", ADA, path="/app/library", items=ITEMS, **LIBRARY
    ),
    "library-filtered": page(
        "library/index.html",
        "Library",
        SAM,
        path="/app/library",
        items=ITEMS[:1],
        **(
            LIBRARY
            | {
                "chosen_tags": ("planning",),
                "filters": {"tag": ("planning",), "q": "x"},
                "q": "x",
                "typed": "x",
                "approximate": True,
                "density": "comfortable",
            }
        ),
    ),
    "library-empty": page(
        "library/index.html",
        "Library",
        SAM,
        path="/app/library",
        items=[],
        errors={"text": "Nothing."},
        **(LIBRARY | {"facets": NO_FACETS, "waiting": 0}),
    ),
    "library-nothing-found": page(
        "library/index.html",
        "Library",
        SAM,
        path="/app/library",
        items=[],
        **(LIBRARY | {"filtered": True, "q": "x", "typed": "x"}),
    ),
    **{
        f"library-no-{view}": page(
            "library/index.html",
            "Library",
            SAM,
            path="/app/library",
            items=[],
            **(LIBRARY | {"view": view}),
        )
        for view in LibraryView
    },
    "library-discarded": page(
        "library/index.html",
        "Library",
        ADA,
        path="/app/library",
        items=ITEMS,
        **(LIBRARY | {"discarded": True, "filtered": True}),
    ),
    "library-none-discarded": page(
        "library/index.html",
        "Library",
        SAM,
        path="/app/library",
        items=[],
        **(LIBRARY | {"facets": NO_FACETS, "discarded": True, "filtered": True}),
    ),
    "library-waiting": page(
        "library/index.html",
        "Library",
        SAM,
        path="/app/library",
        items=[],
        **(LIBRARY | {"facets": NO_FACETS}),
    ),
    "review": page(
        "library/review.html",
        "Review",
        ADA,
        path="/app/review",
        queue=QUEUE,
        item=QUEUE[0],
        chips=CHIPS,
        waiting=3,
        busy=False,
    ),
    "review-reading": page(
        "library/review.html",
        "Review",
        SAM,
        path="/app/review",
        queue=QUEUE,
        item=QUEUE[1],
        chips=[],
        waiting=3,
        busy=True,
    ),
    "review-failed": page(
        "library/review.html",
        "Review",
        SAM,
        path="/app/review",
        queue=QUEUE,
        item=QUEUE[2],
        chips=[],
        waiting=100,
        busy=False,
        problem="No.",
    ),
    "review-done": page(
        "library/review.html",
        "Review",
        SAM,
        path="/app/review",
        queue=[],
        item=None,
        chips=[],
        waiting=0,
        busy=False,
    ),
    "item": page(
        "library/item.html",
        "How queues work",
        ADA,
        path="/app/library/1",
        areas=AREAS,
        item=ITEMS[0],
        reading=READING,
        similar=[{"id": "3", "title": "Another", "site": "example.org"}],
    ),
    "item-note": page(
        "library/item.html",
        "Note",
        SAM,
        path="/app/library/2",
        item=ITEMS[1],
        reading=READING,
        similar=[],
        errors={"tags": "Too many."},
    ),
    "search": page(
        "home/search.html",
        "Search",
        ADA,
        path="/app/search",
        q="roadmap",
        words=("roadmap",),
        groups=HITS,
        reasons={(SearchKind.ITEM, 2): ("Page text", "…what the roadmap said…" + HOSTILE)},
    ),
    "search-nothing": page(
        "home/search.html",
        "Search",
        SAM,
        path="/app/search",
        q="x",
        words=("x",),
        groups=[],
        reasons={},
    ),
    "tags-empty": page(
        "tags/index.html", "Tags", SAM, path="/app/tags", tags=[], q="", **TAGS_PAGE
    ),
    "tags-nothing-found": page(
        "tags/index.html", "Tags", SAM, path="/app/tags", tags=[], q="x", **TAGS_PAGE
    ),
    "admin": page(
        "admin/index.html",
        "Admin",
        ADA,
        path="/app/admin",
        figures=ClickFigures(
            ClickIntake(9, 1, 0), Reconciliation(9, 1, 0, 9, 9, 9, 9, ()), NOW, verifying=False
        ),
        **ADMIN,
    ),
    "admin-unverified": page(
        "admin/index.html",
        "Admin",
        ADA,
        path="/app/admin",
        figures=ClickFigures(ClickIntake(9, 1, 0), None, None, verifying=False),
        **ADMIN,
    ),
    "admin-drift": page(
        "admin/index.html",
        "Admin",
        ADA,
        path="/app/admin",
        figures=ClickFigures(
            ClickIntake(9, 1, 3),
            Reconciliation(
                9,
                1,
                3,
                8,
                9,
                1,
                1,
                ("x.bad",),
                days=(DayDifference("2026-06-01", 1284, 1),),
                links=1,
                absent=("2026-05-20-1-abcd1234.parquet",),
            ),
            NOW,
            verifying=True,
        ),
        **ADMIN
        | {"readiness": READY.model_copy(update={"problems": ["The disk is nearly full."]})},
    ),
    "admin-jobs": page(
        "admin/jobs.html",
        "Jobs",
        ADA,
        path="/app/admin/jobs",
        kinds=KINDS,
        dead=FAILED_JOBS,
        **JOBS,
    ),
    "admin-jobs-none": page(
        "admin/jobs.html",
        "Jobs",
        ADA,
        path="/app/admin/jobs",
        kinds=[],
        dead=[],
        **(JOBS | {"next_url": None}),
    ),
    "admin-domains": page(
        "admin/domains.html",
        "Domains",
        ADA,
        path="/app/admin/domains",
        here="domains",
        domains=DOMAINS,
        errors={"host": "The host can't be a domain."},
        next_url="/app/admin/domains?cursor=x",
        **DOMAINS_PAGE,
    ),
    "admin-domains-none": page(
        "admin/domains.html",
        "Domains",
        ADA,
        path="/app/admin/domains",
        here="domains",
        domains=[],
        next_url=None,
        **DOMAINS_PAGE | {"has_base_url": False},
    ),
    "admin-domain": page(
        "admin/domain.html",
        "sho.rt",
        ADA,
        path="/app/admin/domains/sho.rt",
        domain=DOMAINS[0],
        errors={"unknown_destination": "Only http:// and https:// URLs.", "delete": "Not empty."},
        **DOMAIN_PAGE,
    ),
    "admin-domain-disabled": page(
        "admin/domain.html",
        "Disabled",
        ADA,
        path="/app/admin/domains/x",
        domain=DOMAINS[1],
        **DOMAIN_PAGE,
    ),
    "admin-blocked": page(
        "admin/blocked_domains.html",
        "Blocked domains",
        ADA,
        path="/app/admin/blocked-domains",
        here="blocked",
        domains=BLOCKED,
    ),
    "admin-blocked-none": page(
        "admin/blocked_domains.html",
        "Blocked domains",
        ADA,
        path="/app/admin/x",
        here="blocked",
        domains=[],
        errors={"domain": "That is not a domain."},
    ),
    "link-refused": page(
        "links/detail.html",
        "/roadmap",
        SAM,
        path="/app/links/1",
        errors={"step": "The link is expired.", "owner": "Nobody has that address."},
        **LINK | {"tab": "people"},
    ),
    "api-docs": page(
        "home/api_docs.html",
        "API",
        path="/api/docs",
        chapters=API,
        common=[ApiError("429", "RATE_LIMITED", "Too many requests.")],
        guides=load_guides("https://go.example.com"),
        languages=LANGUAGES,
        lead="Everything that the web app can do, for programs.",
        q="",
        section=None,
    ),
    "api-docs-section": page(
        "home/api_docs.html",
        "Links · API",
        path="/api/docs/links",
        chapters=API,
        common=[],
        guides=load_guides("https://go.example.com"),
        languages=LANGUAGES,
        lead="",
        q="",
        section=API[0],
    ),
    "parts": page(
        "gallery_parts.html",
        "Parts",
        ADA,
        path="/app/links",
        links=LINKS,
        hours=HOURS,
        toasts=SAID,
        now=NOW,
        omnibox_live=True,
    ),
}

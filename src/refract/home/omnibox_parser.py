"""Parsing of omnibox input. Pure."""

from dataclasses import dataclass
from typing import Literal

from refract.core.urls import BadUrl, complete_url, parse_web_url
from refract.web.i18n import LazyText, lazy_gettext

IntentKind = Literal["shorten", "open", "tag", "search", "nothing"]


@dataclass(frozen=True, slots=True)
class OmniboxCommand:
    """A page or action that can be found by its label."""

    label: LazyText
    href: str
    icon: str
    area: str = ""
    """The area of the app it belongs to; empty if it is always available."""


COMMANDS = (
    OmniboxCommand(lazy_gettext("New link"), "/app/links/new", "plus", "links"),
    OmniboxCommand(lazy_gettext("Home"), "/", "house"),
    OmniboxCommand(lazy_gettext("Links"), "/app/links", "link", "links"),
    OmniboxCommand(lazy_gettext("Lists"), "/app/lists", "list-ordered", "lists"),
    OmniboxCommand(lazy_gettext("Library"), "/app/library", "library", "library"),
    OmniboxCommand(lazy_gettext("Review"), "/app/review", "inbox", "library"),
    OmniboxCommand(
        lazy_gettext("Import and export bookmarks"),
        "/app/library/imports",
        "bookmark-plus",
        "library",
    ),
    OmniboxCommand(lazy_gettext("Tags"), "/app/tags", "tag", "tags"),
    OmniboxCommand(lazy_gettext("Tag rules"), "/app/tags/rules", "tag", "library"),
    OmniboxCommand(lazy_gettext("Settings"), "/app/settings", "settings", "settings"),
    OmniboxCommand(lazy_gettext("API keys"), "/app/settings#keys-section", "key-round", "settings"),
    OmniboxCommand(
        lazy_gettext("Browser & shortcuts"), "/app/settings#browser-section", "globe", "settings"
    ),
    OmniboxCommand(lazy_gettext("API docs"), "/api/docs", "terminal"),
    OmniboxCommand(lazy_gettext("Admin: jobs"), "/app/admin/jobs", "activity", "admin"),
    OmniboxCommand(
        lazy_gettext("Admin: blocked domains"), "/app/admin/blocked-domains", "ban", "admin"
    ),
    OmniboxCommand(lazy_gettext("Admin: overview"), "/app/admin", "heart-pulse", "admin"),
)


@dataclass(frozen=True, slots=True)
class OmniboxIntent:
    """What Enter will do. `text` is the URL, the path without its slash, the tag or the words."""

    kind: IntentKind
    text: str


def parse_input(typed: str) -> OmniboxIntent:
    """Return what the input means.

    A URL is shortened, `/name` is opened, `#tag` is a filter; anything else is a name to open or
    words to search for.
    """
    text = typed.strip()
    if not text:
        return OmniboxIntent("nothing", "")
    if (address := parse_address(text)) is not None:
        return OmniboxIntent("shorten", address)
    path = text.lstrip("/")  # a browser would read `//host/` as another site
    if text.startswith("/") and path and not any(character.isspace() for character in text):
        return OmniboxIntent("open", path)
    if text.startswith("#") and len(text) > 1:
        return OmniboxIntent("tag", text[1:].strip())
    return OmniboxIntent("search", text)


def parse_address(typed: str) -> str | None:
    """Return the input as a URL if it looks like one, as `example.com/page` does."""
    if (
        any(character.isspace() for character in typed)
        or ("." not in typed and "://" not in typed)
        or typed.startswith("/")
    ):
        return None
    url = complete_url(typed)
    try:
        parse_web_url(url)
    except BadUrl:
        return typed if "://" in typed else None
    return url


def find_commands(typed: str, areas: list[str], limit: int = 4) -> list[OmniboxCommand]:
    """Return the commands whose words begin with the typed words."""
    prefixes = typed.casefold().split()
    found = []
    for command in COMMANDS:
        words = str(command.label).casefold().replace(":", "").split()
        if (
            (not command.area or command.area in areas)
            and prefixes
            and all(any(word.startswith(prefix) for word in words) for prefix in prefixes)
        ):
            found.append(command)
    return found[:limit]


def parse_go_path(typed: str) -> str:
    """Return the path of a browser keyword: `jira/PROJ-1` of `jira PROJ-1` or `go/jira/PROJ-1`."""
    bare = typed.strip().removeprefix("go/")
    return "/".join(bare.split()).lstrip("/")  # last: a browser would read `//host` as another site

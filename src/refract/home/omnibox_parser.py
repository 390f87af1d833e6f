"""What somebody means by what they typed into the omnibox: pure."""

from dataclasses import dataclass
from typing import Literal

from refract.core.urls import BadUrl, parse_web_url
from refract.web.i18n import LazyText, lazy_gettext

IntentKind = Literal["shorten", "open", "tag", "search", "nothing"]


@dataclass(frozen=True, slots=True)
class OmniboxCommand:
    """A place or a deed that can be called by its words."""

    label: LazyText
    href: str
    icon: str
    area: str = ""
    """The part of the program it belongs to; empty when it is always there."""


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
    """What Enter will do. `text` is the address, the path without its slash, the tag or the words."""

    kind: IntentKind
    text: str


def parse_input(typed: str) -> OmniboxIntent:
    """An address is shortened, `/name` is opened, `#tag` is looked up; anything else is a name to open or words to search for."""
    text = typed.strip()
    if not text:
        return OmniboxIntent("nothing", "")
    if (address := parse_address(text)) is not None:
        return OmniboxIntent("shorten", address)
    path = text.lstrip("/")  # of `//host/` a browser would make another site
    if text.startswith("/") and path and not any(character.isspace() for character in text):
        return OmniboxIntent("open", path)
    if text.startswith("#") and len(text) > 1:
        return OmniboxIntent("tag", text[1:].strip())
    return OmniboxIntent("search", text)


def parse_address(typed: str) -> str | None:
    """What was typed as an address, if it looks like one: `example.com/page` does, `roadmap` does not."""
    if (
        any(character.isspace() for character in typed)
        or ("." not in typed and "://" not in typed)
        or typed.startswith("/")
    ):
        return None
    try:
        parse_web_url(typed, assume_https=True)
    except BadUrl:
        return typed if "://" in typed else None
    return typed if "://" in typed else f"https://{typed}"


def find_commands(typed: str, areas: list[str], limit: int = 4) -> list[OmniboxCommand]:
    """The commands that have a word which begins with what was typed."""
    wanted = typed.casefold().split()
    found = []
    for command in COMMANDS:
        words = str(command.label).casefold().replace(":", "").split()
        if (
            (not command.area or command.area in areas)
            and wanted
            and all(any(word.startswith(one) for word in words) for one in wanted)
        ):
            found.append(command)
    return found[:limit]


def parse_go_path(typed: str) -> str:
    """The path behind a browser's keyword: `jira PROJ-1` and `go/jira/PROJ-1` are both `jira/PROJ-1`."""
    bare = typed.strip().removeprefix("go/")
    return "/".join(bare.split()).lstrip("/")  # last: of `//host` a browser would make another site

"""Parsing of omnibox input. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from refract.core.urls import BadUrl, complete_url, parse_web_url
from refract.web.i18n import LazyText, lazy_gettext

IntentKind = Literal["shorten", "open", "tag", "search", "nothing"]


@dataclass(frozen=True, slots=True)
class OmniboxCommand:
    """A page or an action that can be found by its label and keywords."""

    label: LazyText
    icon: str
    href: str | None = None
    area: str = ""
    """The area of the app it belongs to; empty if it is always available."""
    keywords: LazyText | None = None
    """Other words for it, separated by commas."""
    is_action: bool = False
    post: str | None = None
    """Path that is posted to."""
    script: tuple[str, str] | None = None
    """A data attribute and its value, which a script handles."""

    def list_names(self) -> list[str]:
        """Return the label and the keywords, as they are compared with what is typed."""
        words = [str(self.label), *str(self.keywords or "").split(",")]
        return [" ".join(word.casefold().replace(":", "").split()) for word in words if word]


COMMANDS = (
    OmniboxCommand(
        lazy_gettext("New link"),
        "plus",
        "/app/links/new",
        "links",
        lazy_gettext("create link, shorten"),
        is_action=True,
    ),
    OmniboxCommand(
        lazy_gettext("New list"),
        "list-plus",
        "/app/lists#field-urls",
        "lists",
        lazy_gettext("create list"),
        is_action=True,
    ),
    OmniboxCommand(
        lazy_gettext("New note"),
        "bookmark-plus",
        "/app/library#capture",
        "library",
        lazy_gettext("write a note, save a page"),
        is_action=True,
    ),
    OmniboxCommand(
        lazy_gettext("Import and export bookmarks"),
        "download",
        "/app/library/imports",
        "library",
        lazy_gettext("import, export"),
        is_action=True,
    ),
    OmniboxCommand(
        lazy_gettext("Move in: import links"),
        "bookmark-plus",
        "/app/links/imports",
        "links",
        lazy_gettext("import, shlink, yourls, kutt, bitly, dub, golink"),
        is_action=True,
    ),
    OmniboxCommand(
        lazy_gettext("Theme: Light"),
        "sun",
        keywords=lazy_gettext("light, light theme"),
        is_action=True,
        script=("theme-set", "light"),
    ),
    OmniboxCommand(
        lazy_gettext("Theme: Dark"),
        "moon",
        keywords=lazy_gettext("dark, dark theme"),
        is_action=True,
        script=("theme-set", "dark"),
    ),
    OmniboxCommand(
        lazy_gettext("Theme: System"),
        "monitor",
        keywords=lazy_gettext("system theme"),
        is_action=True,
        script=("theme-set", "system"),
    ),
    OmniboxCommand(
        lazy_gettext("Keyboard shortcuts"),
        "keyboard",
        keywords=lazy_gettext("help, shortcuts"),
        is_action=True,
        script=("dialog-open", "shortcuts"),
    ),
    OmniboxCommand(
        lazy_gettext("Sign out"),
        "log-out",
        keywords=lazy_gettext("log out"),
        is_action=True,
        post="/auth/sign-out",
    ),
    OmniboxCommand(lazy_gettext("Home"), "house", "/"),
    OmniboxCommand(lazy_gettext("Links"), "link", "/app/links", "links"),
    OmniboxCommand(lazy_gettext("Analytics"), "chart-column", "/app/analytics", "analytics"),
    OmniboxCommand(lazy_gettext("Lists"), "list-ordered", "/app/lists", "lists"),
    OmniboxCommand(lazy_gettext("Library"), "library", "/app/library", "library"),
    OmniboxCommand(lazy_gettext("Review"), "inbox", "/app/review", "library"),
    OmniboxCommand(lazy_gettext("Tags"), "tag", "/app/tags", "tags"),
    OmniboxCommand(lazy_gettext("Tag rules"), "tag", "/app/tags/rules", "library"),
    OmniboxCommand(lazy_gettext("UTM templates"), "chart-column", "/app/utm-templates", "links"),
    OmniboxCommand(lazy_gettext("Teams"), "users-round", "/app/teams", "teams"),
    OmniboxCommand(lazy_gettext("Invitations"), "user-plus", "/app/invitations", "links"),
    OmniboxCommand(lazy_gettext("Settings"), "settings", "/app/settings", "settings"),
    OmniboxCommand(lazy_gettext("API keys"), "key-round", "/app/settings#keys-section", "settings"),
    OmniboxCommand(
        lazy_gettext("Browser & shortcuts"), "globe", "/app/settings#browser-section", "settings"
    ),
    OmniboxCommand(lazy_gettext("API docs"), "terminal", "/api/docs"),
    OmniboxCommand(lazy_gettext("Admin: overview"), "heart-pulse", "/app/admin", "admin"),
    OmniboxCommand(lazy_gettext("Admin: people"), "users-round", "/app/admin/people", "admin"),
    OmniboxCommand(lazy_gettext("Admin: jobs"), "activity", "/app/admin/jobs", "admin"),
    OmniboxCommand(
        lazy_gettext("Admin: blocked domains"), "ban", "/app/admin/blocked-domains", "admin"
    ),
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


def find_commands(typed: str, areas: Collection[str], limit: int = 6) -> list[OmniboxCommand]:
    """Return the commands with a name whose words begin with the typed words. Exact ones first."""
    prefixes = typed.casefold().replace(":", "").split()
    whole = " ".join(prefixes)
    found = [
        command
        for command in COMMANDS
        if (not command.area or command.area in areas)
        and prefixes
        and any(matches_prefixes(name, prefixes) for name in command.list_names())
    ]
    return sorted(found, key=lambda command: whole not in command.list_names())[:limit]


def matches_prefixes(name: str, prefixes: Collection[str]) -> bool:
    """Return whether each prefix begins a word of the name."""
    words = name.split()
    return all(any(word.startswith(prefix) for word in words) for prefix in prefixes)


def find_exact_command(typed: str, areas: Collection[str]) -> OmniboxCommand | None:
    """Return the command with exactly this name."""
    whole = " ".join(typed.casefold().replace(":", "").split())
    found = find_commands(typed, areas, limit=1)
    return found[0] if found and whole in found[0].list_names() else None


def parse_go_path(typed: str) -> str:
    """Return the path of a browser keyword: `jira/PROJ-1` of `jira PROJ-1` or `go/jira/PROJ-1`."""
    bare = typed.strip().removeprefix("go/")
    return "/".join(bare.split()).lstrip("/")  # last: a browser would read `//host` as another site

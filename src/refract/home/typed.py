"""What somebody means by what they typed into the omnibox: pure."""

from dataclasses import dataclass
from typing import Literal

from refract.core.urls import BadUrl, parse_web_url

Kind = Literal["shorten", "open", "tag", "search", "nothing"]


@dataclass(frozen=True, slots=True)
class Command:
    """A place or a deed that can be called by its words."""

    words: str
    href: str
    icon: str
    area: str = ""
    """The part of the program it belongs to; empty when it is always there."""


COMMANDS = (
    Command("New link", "/app/links/new", "plus", "links"),
    Command("Home", "/", "house"),
    Command("Links", "/app/links", "link", "links"),
    Command("Lists", "/app/lists", "list-ordered", "lists"),
    Command("Library", "/app/library", "library", "library"),
    Command("Review", "/app/review", "inbox", "library"),
    Command("Import and export bookmarks", "/app/library/imports", "bookmark-plus", "library"),
    Command("Tags", "/app/tags", "tag", "tags"),
    Command("Rules for tags", "/app/tags/rules", "tag", "library"),
    Command("Settings", "/app/settings", "settings", "settings"),
    Command("API keys", "/app/settings#keys-section", "key-round", "settings"),
    Command("Browser: bookmarklet and keyword", "/app/settings#browser-section", "globe", "settings"),
    Command("API documentation", "/api/docs", "terminal"),
    Command("Admin: jobs", "/app/admin/jobs", "activity", "admin"),
    Command("Admin: blocked domains", "/app/admin/blocked-domains", "ban", "admin"),
    Command("Admin: health and figures", "/app/admin", "heart-pulse", "admin"),
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What Enter will do. `text` is the address, the path without its slash, the tag or the words."""

    kind: Kind
    text: str


def read(typed: str) -> Meaning:
    """An address is shortened, `/name` is opened, `#tag` is looked up; anything else is a name to open or words to search for."""
    text = typed.strip()
    if not text:
        return Meaning("nothing", "")
    if (address := address_of(text)) is not None:
        return Meaning("shorten", address)
    path = text.lstrip("/")  # of `//host/` a browser would make another site
    if text.startswith("/") and path and not any(character.isspace() for character in text):
        return Meaning("open", path)
    if text.startswith("#") and len(text) > 1:
        return Meaning("tag", text[1:].strip())
    return Meaning("search", text)


def address_of(typed: str) -> str | None:
    """What was typed as an address, if it looks like one: `example.com/page` does, `roadmap` does not."""
    if any(character.isspace() for character in typed) or ("." not in typed and "://" not in typed) or typed.startswith("/"):
        return None
    try:
        parse_web_url(typed, assume_https=True)
    except BadUrl:
        return typed if "://" in typed else None
    return typed if "://" in typed else f"https://{typed}"


def commands_for(typed: str, areas: list[str], most: int = 4) -> list[Command]:
    """The commands that have a word which begins with what was typed."""
    wanted = typed.casefold().split()
    found = []
    for command in COMMANDS:
        words = command.words.casefold().replace(":", "").split()
        if (not command.area or command.area in areas) and wanted and all(any(word.startswith(one) for word in words) for one in wanted):
            found.append(command)
    return found[:most]


def go_path(typed: str) -> str:
    """The path behind a browser's keyword: `jira PROJ-1` and `go/jira/PROJ-1` are both `jira/PROJ-1`."""
    bare = typed.strip().removeprefix("go/")
    return "/".join(bare.split()).lstrip("/")  # last: of `//host` a browser would make another site

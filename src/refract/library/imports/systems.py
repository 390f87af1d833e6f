"""Records of other systems and of Refract as bookmarks."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from refract.library.imports.rows import BookmarkFields
from refract.records.errors import BadRecord
from refract.records.reader import Fields
from refract.records.values import guess_moment, to_plain_text

BookmarkReader = Callable[[Fields], BookmarkFields]
NOTE_URL_PREFIX = "data:text/plain;charset=utf-8,"
"""The URL of a note in a bookmark file: browsers show its text."""
_WEB = re.compile(r"\s*https?://", re.IGNORECASE)
_ROOTS = frozenset(
    {
        "bookmarks",
        "bookmarks bar",
        "bookmarks toolbar",
        "bookmarks menu",
        "other bookmarks",
        "mobile bookmarks",
        "favorites",
        "favourites",
        "favorites bar",
        "reading list",
        "unsorted",
        "pocket",
        "read archive",
        "unread",
    }
)
"""Folders whose name is no tag."""


def read_netscape(record: Fields) -> BookmarkFields:
    """Read a bookmark of a browser, as `netscape.NetscapeReader` finds it."""
    attributes = record["attributes"]
    bookmark = BookmarkFields(own="created_at" in attributes)
    href = attributes.get("href", "").strip()
    if href.lower().startswith(NOTE_URL_PREFIX):
        bookmark.own = True  # no other system writes notes
        bookmark.set_note(unquote(href[len(NOTE_URL_PREFIX) :]))
    else:
        bookmark.text = _parse_url(href)
    bookmark.set_title(record["title"])
    bookmark.set_summary(record["description"])
    bookmark.add_tags(attributes.get("tags", "").split(","))
    bookmark.add_tags(_drop_root_folders(record["folders"]))
    bookmark.created_at = guess_moment(
        attributes.get("created_at") or attributes.get("add_date") or attributes.get("time_added")
    )
    bookmark.confirmed_at = guess_moment(attributes.get("confirmed_at")) or bookmark.created_at
    bookmark.waiting = attributes.get("waiting") == "1"
    return bookmark


def read_pocket(record: Fields) -> BookmarkFields:
    """Read `title,url,time_added,tags,status`.

    Tags are separated by `|`, in older files by commas.
    """
    bookmark = BookmarkFields(text=_parse_url(record.get("url")))
    bookmark.set_title(record.get("title"))
    tags = to_plain_text(record.get("tags"))
    bookmark.add_tags(tags.split("|" if "|" in tags else ","))
    bookmark.created_at = bookmark.confirmed_at = guess_moment(record.get("time_added"))
    return bookmark


def read_raindrop(record: Fields) -> BookmarkFields:
    """Read `id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite`."""
    bookmark = BookmarkFields(text=_parse_url(record.get("url")))
    bookmark.set_title(record.get("title"))
    bookmark.set_summary(record.get("note"), record.get("excerpt"))
    bookmark.add_tags(to_plain_text(record.get("tags")).split(","))
    bookmark.add_tags(
        _drop_root_folders(
            [part.strip() for part in to_plain_text(record.get("folder")).split("/")]
        )
    )
    bookmark.created_at = bookmark.confirmed_at = guess_moment(record.get("created"))
    if to_plain_text(record.get("highlights")).strip():
        bookmark.remarks.append("highlights are not imported")
    return bookmark


def read_linkding(record: Fields) -> BookmarkFields:
    """Read a bookmark of the REST API."""
    bookmark = BookmarkFields(text=_parse_url(record.get("url")))
    bookmark.set_title(record.get("title") or record.get("website_title"))
    bookmark.set_summary(
        record.get("notes"), record.get("description") or record.get("website_description")
    )
    bookmark.add_tags(_to_list(record.get("tag_names")))
    bookmark.created_at = bookmark.confirmed_at = guess_moment(record.get("date_added"))
    return bookmark


def read_karakeep(record: Fields) -> BookmarkFields:
    """Read a bookmark of the export: a link or a text; files are refused."""
    content = record.get("content")
    content = content if isinstance(content, Mapping) else {}
    bookmark = BookmarkFields()
    if content.get("type") == "text":
        bookmark.set_note(content.get("text"))
    elif content.get("type") == "asset":
        raise BadRecord("Files are not supported, only links and text.")
    else:
        bookmark.text = _parse_url(content.get("url") or record.get("url"))
    bookmark.set_title(record.get("title") or content.get("title"))
    bookmark.set_summary(record.get("note"), record.get("summary"))
    bookmark.add_tags(_to_list(record.get("tags")))
    bookmark.created_at = bookmark.confirmed_at = guess_moment(
        record.get("createdat") or record.get("createdAt")
    )
    return bookmark


def read_refract(record: Fields) -> BookmarkFields:
    """Read a record of Refract's own export."""
    bookmark = BookmarkFields(own=True)
    bookmark.set_note(record.get("text") or record.get("url"))
    bookmark.set_title(record.get("title"))
    bookmark.set_summary(record.get("summary"))
    bookmark.add_tags(_to_list(record.get("tags")))
    bookmark.created_at, bookmark.confirmed_at = (
        guess_moment(record.get("created_at")),
        guess_moment(record.get("confirmed_at")),
    )
    bookmark.waiting = record.get("status") in ("ENRICHING", "READY_TO_CONFIRM", "FAILED")
    page = record.get("page")
    bookmark.page = page if isinstance(page, Mapping) else None
    return bookmark


def _parse_url(value: Any) -> str:
    text = to_plain_text(value).strip()
    if not text:
        raise BadRecord("No URL.")
    if not _WEB.match(text):
        problem = (
            f"Only http and https links are supported, not {text.split(':', 1)[0][:20]}:."
            if ":" in text
            else "Not a URL."
        )
        raise BadRecord(problem)
    return text


def _to_list(value: Any) -> list[str]:
    if not isinstance(value, list):
        return [to_plain_text(value)] if value else []
    return [
        to_plain_text(member.get("name")) if isinstance(member, Mapping) else to_plain_text(member)
        for member in value
    ]


def _drop_root_folders(names: Any) -> list[str]:
    return [name for name in names if name.lower() not in _ROOTS]

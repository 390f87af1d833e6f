"""Records of other systems, and of ours, as bookmarks."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from refract.library.importing.netscape import Entry
from refract.library.importing.rows import BadRow, Reading, moment, plain

Record = Mapping[str, Any]
Reader = Callable[[Record], Reading]
NOTE = "data:text/plain;charset=utf-8,"
"""How a note stands in a file of addresses: browsers show its text."""
_WEB = re.compile(r"\s*https?://", re.IGNORECASE)
_ROOTS = frozenset(
    {
        "bookmarks", "bookmarks bar", "bookmarks toolbar", "bookmarks menu", "other bookmarks", "mobile bookmarks", "favorites",
        "favourites",        "favorites bar", "reading list", "unsorted", "pocket", "read archive", "unread",
    }
)  # fmt: skip
"""Folders that say nothing about what is in them."""


def read_netscape(entry: Entry) -> Reading:
    named = entry.attributes
    reading = Reading(own="created_at" in named)
    href = named.get("href", "").strip()
    if href.lower().startswith(NOTE):
        reading.own = True  # no other system writes one
        reading.noted(unquote(href[len(NOTE) :]))
    else:
        reading.text = _address(href)
    reading.titled(entry.title)
    reading.summed_up(entry.description)
    reading.tagged(named.get("tags", "").split(","))
    reading.tagged(_folders(entry.folders))
    reading.created_at = moment(named.get("created_at") or named.get("add_date") or named.get("time_added"))
    reading.confirmed_at = moment(named.get("confirmed_at")) or reading.created_at
    reading.waiting = named.get("waiting") == "1"
    return reading


def read_pocket(record: Record) -> Reading:
    """`title,url,time_added,tags,status`; tags are apart by `|`, in older files by commas."""
    reading = Reading(text=_address(record.get("url")))
    reading.titled(record.get("title"))
    tags = plain(record.get("tags"))
    reading.tagged(tags.split("|" if "|" in tags else ","))
    reading.created_at = reading.confirmed_at = moment(record.get("time_added"))
    return reading


def read_raindrop(record: Record) -> Reading:
    """`id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite`."""
    reading = Reading(text=_address(record.get("url")))
    reading.titled(record.get("title"))
    reading.summed_up(record.get("note"), record.get("excerpt"))
    reading.tagged(plain(record.get("tags")).split(","))
    reading.tagged(_folders([part.strip() for part in plain(record.get("folder")).split("/")]))
    reading.created_at = reading.confirmed_at = moment(record.get("created"))
    if plain(record.get("highlights")).strip():
        reading.remarks.append("highlights are not kept")
    return reading


def read_linkding(record: Record) -> Reading:
    """A bookmark of the REST API."""
    reading = Reading(text=_address(record.get("url")))
    reading.titled(record.get("title") or record.get("website_title"))
    reading.summed_up(record.get("notes"), record.get("description") or record.get("website_description"))
    reading.tagged(_list(record.get("tag_names")))
    reading.created_at = reading.confirmed_at = moment(record.get("date_added"))
    return reading


def read_karakeep(record: Record) -> Reading:
    """A bookmark of the export: a link or a text; files are not taken."""
    content = record.get("content")
    content = content if isinstance(content, Mapping) else {}
    reading = Reading()
    if content.get("type") == "text":
        reading.noted(content.get("text"))
    elif content.get("type") == "asset":
        problem = "It is a file, not an address or a text."
        raise BadRow(problem)
    else:
        reading.text = _address(content.get("url") or record.get("url"))
    reading.titled(record.get("title") or content.get("title"))
    reading.summed_up(record.get("note"), record.get("summary"))
    reading.tagged(_list(record.get("tags")))
    reading.created_at = reading.confirmed_at = moment(record.get("createdat") or record.get("createdAt"))
    return reading


def read_ours(record: Record) -> Reading:
    """What our own export writes."""
    reading = Reading(own=True)
    reading.noted(record.get("text") or record.get("url"))
    reading.titled(record.get("title"))
    reading.summed_up(record.get("summary"))
    reading.tagged(_list(record.get("tags")))
    reading.created_at, reading.confirmed_at = moment(record.get("created_at")), moment(record.get("confirmed_at"))
    reading.waiting = record.get("status") in ("ENRICHING", "READY_TO_CONFIRM", "FAILED")
    page = record.get("page")
    reading.page = page if isinstance(page, Mapping) else None
    return reading


def _address(value: Any) -> str:
    text = plain(value).strip()
    if not text:
        problem = "It has no address."
        raise BadRow(problem)
    if not _WEB.match(text):
        problem = f"Only http and https addresses can be kept, not {text.split(':', 1)[0][:20]}:." if ":" in text else "This is no address."
        raise BadRow(problem)
    return text


def _list(value: Any) -> list[str]:
    if not isinstance(value, list):
        return [plain(value)] if value else []
    return [plain(one.get("name")) if isinstance(one, Mapping) else plain(one) for one in value]


def _folders(names: Any) -> list[str]:
    return [name for name in names if name.lower() not in _ROOTS]

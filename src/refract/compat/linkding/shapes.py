"""Our objects in linkding's words. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from refract.library.models import Item
from refract.tags.models import Tag

LINKDING_VERSION = "1.46.2"
"""The version whose protocol is spoken; clients refuse old ones."""

PROFILE: dict[str, Any] = {
    "theme": "auto",
    "bookmark_date_display": "relative",
    "bookmark_link_target": "_blank",
    "web_archive_integration": "disabled",
    "tag_search": "strict",
    "enable_sharing": False,
    "enable_public_sharing": False,
    "enable_favicons": False,
    "display_url": False,
    "permanent_notes": False,
    "search_preferences": {"sort": "added_desc", "shared": "off", "unread": "off"},
    "version": LINKDING_VERSION,
}


def format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def build_bookmark(item: Item, number: int, tag_names: Sequence[str]) -> dict[str, Any]:
    """Return an item. What is unwritten is an empty text: clients expect no null there."""
    return {
        "id": number,
        "url": item.url or "",
        "title": item.title or "",
        "description": item.summary or "",
        "notes": item.notes or "",
        "web_archive_snapshot_url": "",
        "favicon_url": None,
        "preview_image_url": None,
        "is_archived": item.archived,
        "unread": item.unread,
        "shared": False,
        "tag_names": list(tag_names),
        "date_added": format_time(item.created_at),
        "date_modified": format_time(item.updated_at),
        "website_title": None,
        "website_description": None,
    }


def build_tag(tag: Tag, number: int) -> dict[str, Any]:
    return {"id": number, "name": tag.name, "date_added": format_time(tag.created_at)}


def build_metadata(url: str, item: Item | None) -> dict[str, Any]:
    """Return what is known about a page. It is not fetched for this."""
    return {
        "url": url,
        "title": None if item is None else item.title,
        "description": None if item is None else item.summary,
        "preview_image": None,
    }

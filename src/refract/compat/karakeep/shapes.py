"""Our objects in Karakeep's words. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from refract.identity.models import User
from refract.library.models import FieldSource, Item, ItemStatus, ItemType, SavedPage
from refract.library.queries.totals import LibraryTotals
from refract.tags.models import Tag

_PROGRESS = {ItemStatus.ENRICHING: "pending", ItemStatus.FAILED: "failure"}
KARAKEEP_VERSION = "0.33.0"
"""The version whose protocol is spoken."""


def format_time(moment: datetime) -> str:
    utc = moment.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def _format_optional_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)


def build_bookmark(
    item: Item, tags: Sequence[Tag], page: SavedPage | None, *, with_html: bool = False
) -> dict[str, Any]:
    """Return an item. `title` is the user's, `content.title` what the page calls itself."""
    progress = _PROGRESS.get(ItemStatus(item.status), "success")
    added = format_time(item.created_at)
    is_own_title = item.title_source == FieldSource.USER
    return {
        "id": str(item.id),
        "createdAt": added,
        "firstCreatedAt": added,
        "modifiedAt": format_time(item.updated_at),
        "title": item.title if is_own_title or item.type == ItemType.NOTE else None,
        "archived": item.archived,
        "favourited": item.favorite,
        "taggingStatus": progress,
        "summarizationStatus": progress,
        "embeddingStatus": None,
        "note": item.notes,
        "summary": item.summary,
        "source": "import" if item.import_id is not None else None,
        "userId": str(item.user_id),
        "tags": [{"id": str(tag.id), "name": tag.name, "attachedBy": "human"} for tag in tags],
        "content": _build_content(item, page, with_html=with_html),
        "assets": [],
    }


def _build_content(item: Item, page: SavedPage | None, *, with_html: bool) -> dict[str, Any]:
    if item.type == ItemType.NOTE:
        return {"type": "text", "text": item.text, "sourceUrl": None}
    found: dict[str, Any] = {
        "type": "link",
        "url": item.url or "",
        "title": item.title,
        "description": None,
        "imageUrl": None,
        "favicon": None,
        "htmlContent": None,
        "crawledAt": None,
        "crawlStatus": "pending" if item.status == ItemStatus.ENRICHING else None,
        "author": None,
        "publisher": None,
        "datePublished": None,
        "dateModified": None,
    }
    if page is not None:
        found |= {
            "title": page.title or item.title,
            "description": page.description,
            "imageUrl": page.image_url,
            "htmlContent": page.html if with_html else None,
            "crawledAt": format_time(page.fetched_at),
            "crawlStatus": "success",
            "author": page.author,
            "publisher": page.site,
            "datePublished": _format_optional_time(page.published_at),
        }
    return found


def build_tag(tag: Tag) -> dict[str, Any]:
    return {
        "id": str(tag.id),
        "name": tag.name,
        "numBookmarks": tag.usage_count,
        "numBookmarksByAttachedType": {"human": tag.usage_count},
    }


def build_user(user: User) -> dict[str, Any]:
    return {
        "id": str(user.id),
        "name": user.display_name or user.email,
        "email": user.email,
        "image": None,
        "localUser": True,
    }


def build_stats(totals: LibraryTotals) -> dict[str, Any]:
    """Return the totals of a library. Times of day and days of the week are not counted."""
    return {
        "numBookmarks": totals.links + totals.notes,
        "numFavorites": totals.favorites,
        "numArchived": totals.archived,
        "numTags": totals.tags,
        "numLists": 0,
        "numHighlights": 0,
        "bookmarksByType": {"link": totals.links, "text": totals.notes, "asset": 0},
        "topDomains": [{"domain": site, "count": count} for site, count in totals.sites],
        "totalAssetSize": 0,
        "assetsByType": [],
        "bookmarkingActivity": {
            "thisWeek": totals.added_in_week,
            "thisMonth": totals.added_in_month,
            "thisYear": totals.added_in_year,
            "byHour": [],
            "byDayOfWeek": [],
        },
        "tagUsage": [{"name": name, "count": count} for name, count in totals.top_tags],
        "bookmarksBySource": [
            {"source": source, "count": count}
            for source, count in (
                ("import", totals.imported),
                (None, totals.links + totals.notes - totals.imported),
            )
            if count
        ],
    }

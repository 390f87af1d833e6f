"""Pages of the admin tables."""

from typing import Any
from urllib.parse import urlencode

PER_PAGE = 25


def build_pager(
    path: str, params: dict[str, str], cursor: str | None, next_cursor: str | None
) -> dict[str, Any]:
    """Return the URLs of the next and the first page, for the pager."""
    kept = {name: value for name, value in params.items() if value}
    return {
        "next_url": f"{path}?{urlencode({**kept, 'cursor': next_cursor})}" if next_cursor else None,
        "first_url": f"{path}?{urlencode(kept)}".rstrip("?") if cursor else None,
    }

"""Values of records as text and times. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from refract.core.clock import EPOCH
from refract.records.errors import BadRecord

INVALID_TEXT = "\uffff"
"""Stands for bytes that are not text. Unicode guarantees that it is not a character."""

_EPOCH_SECONDS = re.compile(r"\d{1,17}(\.\d{1,9})?")
_MAX_SECONDS = 1e11
"""The year 5138: a larger number has a smaller unit."""


def to_plain_text(value: Any) -> str:
    """Return a value as text. JSON may have numbers where text is meant, such as a code `123`.

    Raises `BadRecord` for booleans, lists and objects.
    """
    if value is None:
        return ""
    if isinstance(value, bool | Mapping | list):
        raise BadRecord(f"Expected text, found {str(value)[:40]}.")
    return str(value)


def clip_text(name: str, text: str, limit: int, remarks: list[str]) -> str:
    """Return at most `limit` characters; add a remark to `remarks` if there were more."""
    if len(text) > limit:
        remarks.append(f"{name} shortened to {limit} characters")
    return text[:limit]


def parse_moment(value: Any, name: str) -> datetime | None:
    """Return the time that RFC 3339 or a plain date and time (in UTC) names; None for no text.

    Raises `BadRecord` for any other text.
    """
    text = to_plain_text(value).strip()
    if not text or text.startswith("0000-00-00"):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as exc:
        raise BadRecord(
            f'{name}: "{text[:40]}" is not a time such as 2026-12-31T18:00:00Z.'
        ) from exc


def guess_moment(value: Any) -> datetime | None:
    """Return the time that RFC 3339, or a number of seconds since 1970, names; otherwise None.

    The number may also count milliseconds or microseconds.
    """
    text = to_plain_text(value).strip()
    if not _EPOCH_SECONDS.fullmatch(text):
        try:
            moment = parse_moment(text, "")
        except BadRecord:
            return None
        return moment if moment and moment >= EPOCH else None
    seconds = float(text)
    while seconds > _MAX_SECONDS:
        seconds /= 1000
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def check_text(values: Any) -> None:
    """Raise `BadRecord` if any of these values has U+0000 or bytes that were not text."""
    if isinstance(values, str):
        if "\0" in values:
            raise BadRecord("Contains the character U+0000.")
        if INVALID_TEXT in values or not _is_valid(values):
            raise BadRecord(
                "Not valid text in the encoding of the file. Save the file as UTF-8, or name its"
                " encoding."
            )
    elif isinstance(values, Mapping):
        for key, value in values.items():
            check_text(key)
            check_text(value)
    elif isinstance(values, list):
        for value in values:
            check_text(value)


def _is_valid(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

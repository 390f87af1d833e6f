"""How each system writes down a link. Keys are compared in lower case; what is not named here is not read.

docs/how-to/import.md tells people the same.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from refract.core.cells import restored
from refract.core.schema import read_id
from refract.links.importing.rows import LONGEST_NOTES, LONGEST_TITLE, BadRow, Reading, moment, plain
from refract.links.models import LinkState
from refract.links.schemas import MOST_TAGS
from refract.names.grammar import is_random_code
from refract.tags.errors import InvalidTag
from refract.tags.grammar import check_shared

Fields = Mapping[str, Any]
Reader = Callable[[Fields, datetime], Reading]

YOURLS_TABLE = ("keyword", "url", "title", "timestamp", "ip", "clicks")
_YES = frozenset({"true", "yes", "1", "on"})
_NO = frozenset({"false", "no", "0", "off", ""})
_SAME = ("title", "notes", "visibility", "redirect_status", "forward_query")


def read_ours(fields: Fields, _now: datetime) -> Reading:
    """A record of our own JSON, or of the API. Values are checked where links are made."""
    reading = Reading({"destination": _first(fields, "destination", "url")})
    reading.given |= {name: fields[name] for name in _SAME if fields.get(name) is not None}
    for name, single in (("names", "name"), ("tags", "tag")):
        value = _first(fields, name, single)
        if value not in (None, ""):
            reading.given[name] = [value] if isinstance(value, str) else value
    reading.given["expires_at"] = moment(fields.get("expires_at"), "expires_at")
    reading.number = _number(fields.get("id"))
    reading.code = code if is_random_code(code := plain(fields.get("code")).strip()) else None
    _take_state(reading, fields.get("status"))
    return reading


def read_our_cells(fields: Fields, now: datetime) -> Reading:
    """The same from the cells of a table, all of them text."""
    cells: dict[str, Any] = {name: restored(plain(value)) for name, value in fields.items()}
    cells = {name: value for name, value in cells.items() if value.strip()}
    for name in ("names", "name", "tags", "tag"):
        if name in cells:
            cells[name] = _parts(cells[name])
    if "redirect_status" in cells:
        cells["redirect_status"] = _whole(cells["redirect_status"], "redirect_status")
    if "forward_query" in cells:
        cells["forward_query"] = _truth(cells["forward_query"], "forward_query")
    for name in ("visibility", "status"):
        if name in cells:
            cells[name] = cells[name].strip().lower()
    return read_ours(cells, now)


def read_yourls(fields: Fields, _now: datetime) -> Reading:
    """A row of its table, a line of its export plug-in (`source,target,hits`), or a link of its API."""
    keyword = _first(fields, "keyword", "source")
    name = plain(keyword).strip().strip("/") if keyword is not None else _last_segment(fields.get("shorturl"))
    reading = _foreign(_first(fields, "url", "target"), name)
    title = plain(fields.get("title"))
    reading.words("title", "" if title == "NULL" else title, LONGEST_TITLE)
    return reading


def read_shlink(fields: Fields, now: datetime) -> Reading:
    """A short URL of its REST API, or a line of the web client's export."""
    code = plain(fields.get("shortcode")).strip()
    reading = _foreign(fields.get("longurl"), code or _path(fields.get("shorturl")))
    reading.words("title", fields.get("title"), LONGEST_TITLE)
    tags = fields.get("tags")
    _take_tags(reading, _parts(tags) if isinstance(tags, str) else tags or [])
    if fields.get("forwardquery") is not None:
        reading.given["forward_query"] = bool(fields["forwardquery"])
    meta = _lower(fields.get("meta") or {})
    reading.given["expires_at"] = moment(meta.get("validuntil"), "validUntil")
    since = moment(meta.get("validsince"), "validSince")
    if since is not None and since > now:
        reading.disabled = True
        reading.remarks.append(f"begins on {since:%Y-%m-%d}: disabled until you enable it")
    if meta.get("maxvisits") is not None:
        reading.remarks.append("its limit of visits is not kept")
    if fields.get("hasredirectrules") or any((fields.get("devicelongurls") or {}).values()):
        reading.remarks.append("its redirect rules are not kept")
    return reading


def read_kutt(fields: Fields, _now: datetime) -> Reading:
    """A link of its API. The description becomes the title, or notes when it is too long for one."""
    reading = _foreign(fields.get("target"), plain(fields.get("address")).strip())
    description = plain(fields.get("description")).strip()
    if len(description) <= LONGEST_TITLE and "\n" not in description:
        reading.words("title", description, LONGEST_TITLE)
    else:
        reading.words("notes", description, LONGEST_NOTES)
    reading.given["expires_at"] = moment(fields.get("expire_in"), "expire_in")
    if fields.get("password"):
        reading.given["visibility"] = "secure"
        reading.remarks.append("had a password: now it asks for sign-in")
    if fields.get("banned"):
        reading.disabled = True
        reading.remarks.append("was banned: disabled")
    return reading


def _foreign(destination: Any, name: str) -> Reading:
    if not name:
        problem = "It has no short code."
        raise BadRow(problem)
    literal = plain(destination).strip().replace("{", "%7B").replace("}", "%7D")  # braces are placeholders here, and were not there
    return Reading({"destination": literal, "names": [name]})


def _first(fields: Fields, *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _take_state(reading: Reading, status: Any) -> None:
    """Expired is no state to be brought along: it follows from the expiry."""
    if status == LinkState.DELETED:
        problem = "It is deleted."
        raise BadRow(problem)
    if status not in (None, "", *LinkState):
        problem = f'status: "{str(status)[:40]}" is none of active, disabled and expired.'
        raise BadRow(problem)
    reading.disabled = status == LinkState.DISABLED


def _take_tags(reading: Reading, tags: Any) -> None:
    """The tags of another system, without those that could not be tags here."""
    good: list[str] = []
    for tag in tags:
        try:
            good.append(check_shared(plain(tag)))
        except InvalidTag as wrong:
            reading.remarks.append(wrong.message.rstrip("."))
    if len(good) > MOST_TAGS:
        reading.remarks.append(f"only the first {MOST_TAGS} tags are kept")
    reading.given["tags"] = good[:MOST_TAGS]


def _number(value: Any) -> int | None:
    if value in (None, ""):
        return None
    try:
        return read_id(value)
    except ValueError as wrong:
        problem = f"id: {wrong}"
        raise BadRow(problem) from wrong


def _whole(text: str, name: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit() and len(text) < 10):
        problem = f'{name}: "{text[:40]}" is not a whole number.'
        raise BadRow(problem)
    return int(text)


def _truth(text: str, name: str) -> bool:
    word = text.strip().lower()
    if word not in _YES | _NO:
        problem = f'{name}: "{text[:40]}" is neither true nor false.'
        raise BadRow(problem)
    return word in _YES


def _parts(text: str) -> list[str]:
    """Neither names nor tags contain any of these characters."""
    for separator in ",;":
        text = text.replace(separator, "|")
    return [part.strip() for part in text.split("|") if part.strip()]


def _path(address: Any) -> str:
    try:
        return unquote(urlsplit(plain(address).strip()).path).strip("/")
    except ValueError as wrong:
        problem = f'"{plain(address)[:60]}" is not a short URL.'
        raise BadRow(problem) from wrong


def _last_segment(address: Any) -> str:
    """The code of a short URL whose system may live below a path."""
    return _path(address).rpartition("/")[2]


def _lower(record: Fields) -> dict[str, Any]:
    return {str(name).strip().lower(): value for name, value in record.items()}

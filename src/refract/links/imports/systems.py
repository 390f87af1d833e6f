"""The record formats of each system. Keys are compared in lower case; others are ignored.

docs/how-to/import.md describes the same for users.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from refract.core.schemas import parse_id
from refract.core.text import unescape_formula
from refract.links.enums import LinkState, Visibility
from refract.links.imports.rows import MAX_NOTES, MAX_TITLE, LinkFields
from refract.links.rules.document import MAX_RULES
from refract.links.rules.shlink import UnsupportedCondition, parse_conditions
from refract.links.schemas import MAX_TAGS
from refract.names.grammar import is_random_code
from refract.records.errors import BadRecord
from refract.records.reader import Fields
from refract.records.values import guess_moment, parse_moment, to_plain_text
from refract.tags.errors import InvalidTag
from refract.tags.grammar import check_shared

LinkFormat = Callable[[Fields, datetime], LinkFields]

YOURLS_TABLE = ("keyword", "url", "title", "timestamp", "ip", "clicks")
_TRUE_WORDS = frozenset({"true", "yes", "1", "on"})
_FALSE_WORDS = frozenset({"false", "no", "0", "off", ""})
_COPIED_FIELDS = (
    *("domain", "title", "notes", "visibility", "redirect_status", "forward_query", "team"),
    *("before_destination", "expired_destination", "rules", "preview_card", "noindex"),
    *("click_limit", "limit_destination"),
    "qr_style",
)


def read_refract(fields: Fields, _now: datetime) -> LinkFields:
    """Read a record of our own JSON or of the API. Values are validated when links are created."""
    link = LinkFields({"destination": _first_value(fields, "destination", "url")})
    link.given |= {name: fields[name] for name in _COPIED_FIELDS if fields.get(name) is not None}
    for name, single in (("names", "name"), ("tags", "tag")):
        value = _first_value(fields, name, single)
        if value not in (None, ""):
            link.given[name] = [value] if isinstance(value, str) else value
    for name in ("starts_at", "expires_at"):
        link.given[name] = parse_moment(fields.get(name), name)
    if link.given.get("visibility") == Visibility.PASSWORD:
        _lock_without_password(link)
    link.number = _parse_id(fields.get("id"))
    link.code = code if is_random_code(code := to_plain_text(fields.get("code")).strip()) else None
    apply_creation(link, fields.get("created_at"))
    link.codes, link.keeps_codes = _list_texts(fields.get("kept_codes")), True
    link.other_names = _list_texts(fields.get("other_names"))
    _apply_state(link, fields.get("status"))
    if (left := fields.get("clicks_left")) is not None:
        link.clicks_left = _parse_integer(str(left), "clicks_left")
    return link


def read_refract_cells(fields: Fields, now: datetime) -> LinkFields:
    """Read the same from the cells of a table, which are all text."""
    cells: dict[str, Any] = {
        name: unescape_formula(to_plain_text(value)) for name, value in fields.items()
    }
    cells = {name: value for name, value in cells.items() if value.strip()}
    for name in ("names", "name", "tags", "tag"):
        if name in cells:
            cells[name] = split_values(cells[name])
    for parse, names in _CELL_PARSERS.items():
        cells |= {name: parse(cells[name], name) for name in names if name in cells}
    for name in ("visibility", "status"):
        if name in cells:
            cells[name] = cells[name].strip().lower()
    return read_refract(cells, now)


def read_yourls(fields: Fields, _now: datetime) -> LinkFields:
    """Read a row of its table, a line of its export plug-in, or a link of its API.

    The export plug-in writes `source,target,hits`.
    """
    keyword = _first_value(fields, "keyword", "source")
    name = (
        to_plain_text(keyword).strip().strip("/")
        if keyword is not None
        else _last_segment(fields.get("shorturl"))
    )
    link = start_foreign_record(_first_value(fields, "url", "target"), name)
    apply_creation(link, fields.get("timestamp"))
    title = to_plain_text(fields.get("title"))
    link.set_text("title", "" if title == "NULL" else title, MAX_TITLE)
    return link


def read_shlink(fields: Fields, now: datetime) -> LinkFields:
    """Read a short URL of its REST API, or a line of the web client's export."""
    code = to_plain_text(fields.get("shortcode")).strip()
    link = start_foreign_record(fields.get("longurl"), code or _parse_path(fields.get("shorturl")))
    link.host = to_plain_text(fields.get("domain")).strip() or None
    apply_creation(link, _first_value(fields, "datecreated", "createdat"))
    link.set_text("title", fields.get("title"), MAX_TITLE)
    tags = fields.get("tags")
    apply_tags(link, tags if isinstance(tags, list) else split_values(to_plain_text(tags)))
    if fields.get("forwardquery") is not None:
        link.given["forward_query"] = bool(fields["forwardquery"])
    meta = _object(fields.get("meta"), "meta")
    link.given["expires_at"] = parse_moment(meta.get("validuntil"), "validUntil")
    since = parse_moment(meta.get("validsince"), "validSince")
    if since is not None and since > now:
        link.given["starts_at"] = since
    if meta.get("maxvisits") is not None:
        _apply_shlink_limit(link, meta["maxvisits"], fields)
    _apply_shlink_rules(link, fields)
    return link


def _apply_shlink_limit(link: LinkFields, most: Any, fields: Fields) -> None:
    """Set its limit of visits, less those that it had, bots among them."""
    limit = _parse_integer(str(most), "maxVisits")
    visits = _object(fields.get("visitssummary"), "visitsSummary").get("total")
    visits = visits if visits is not None else _first_value(fields, "visitscount", "visits")
    link.given["click_limit"] = limit
    link.clicks_left = max(0, limit - _parse_integer(str(visits or 0), "visits"))


def _apply_shlink_rules(link: LinkFields, fields: Fields) -> None:
    """Set its redirect rules, or the destinations for devices of older versions, as rules.

    A rule with a condition that we don't know is left out: without it, it would match too much.
    """
    given = fields.get("redirectrules")
    if given is None and fields.get("hasredirectrules"):
        link.remarks.append("its redirect rules aren't in the file, so they aren't kept")
    rules = [_object(rule, "redirectRules") for rule in given] if isinstance(given, list) else []
    devices = _object(fields.get("devicelongurls"), "deviceLongUrls")
    rules += [
        {"longurl": url, "conditions": [{"type": "device", "matchValue": device}]}
        for device, url in devices.items()
        if url
    ]
    kept: list[dict[str, Any]] = []
    for rule in rules:
        conditions = rule.get("conditions")
        try:
            parsed = parse_conditions(conditions if isinstance(conditions, list) else [])
        except UnsupportedCondition as exc:
            link.remarks.append(f"a rule isn't kept, as there is no such condition here: {exc}")
        else:
            kept.append({"destination": _escape_braces(rule.get("longurl")), "conditions": parsed})
    if len(kept) > MAX_RULES:
        link.remarks.append(f"only the first {MAX_RULES} rules are kept")
    if kept:
        link.given["rules"] = kept[:MAX_RULES]


def read_kutt(fields: Fields, _now: datetime) -> LinkFields:
    """Read a link of its API.

    The description becomes the title, or notes if it is too long.
    """
    link = start_foreign_record(fields.get("target"), to_plain_text(fields.get("address")).strip())
    link.host = to_plain_text(fields.get("domain")).strip() or None
    apply_creation(link, fields.get("created_at"))
    description = to_plain_text(fields.get("description")).strip()
    if len(description) <= MAX_TITLE and "\n" not in description:
        link.set_text("title", description, MAX_TITLE)
    else:
        link.set_text("notes", description, MAX_NOTES)
    link.given["expires_at"] = parse_moment(fields.get("expire_in"), "expire_in")
    if fields.get("password"):
        _lock_without_password(link)
    if fields.get("banned"):
        link.disabled = True
        link.remarks.append("was banned; disabled")
    return link


def read_golink(fields: Fields, _now: datetime) -> LinkFields:
    """Read a line of `/.export`. Its names mean the same without dashes, in any case.

    A destination may be a Go template; the usual ones become placeholders.
    """
    name = to_plain_text(fields.get("short")).strip().strip("/")
    link = start_foreign_record("", name)
    long = to_plain_text(fields.get("long")).strip()
    link.given["destination"] = translate_go_template(long)
    if any(found[1].strip("/") for found in _GO_OPTIONAL.finditer(long)):
        link.remarks.append("its template depends on the path; check where it leads without one")
    bare = name.replace("-", "")
    if bare and bare != name:
        link.codes.append(bare)
    apply_creation(link, fields.get("created"))
    if owner := to_plain_text(fields.get("owner")).strip():
        link.remarks.append(f"belonged to {owner[:100]} and is yours now")
    return link


_GO_ESCAPE = r"(?:PathEscape|QueryEscape)"
_GO_PATH = re.compile(rf"\{{\{{-?\s*(?:{_GO_ESCAPE}\s+)?\.Path(?:\s*\|\s*{_GO_ESCAPE})?\s*-?\}}\}}")
_GO_OPTIONAL = re.compile(
    r"\{\{-?\s*(?:if|with)\s+\.Path\s*-?\}\}([^{}]*)"
    rf"\{{\{{-?\s*(?:\.Path|\.|{_GO_ESCAPE} \.(?:Path)?)\s*-?\}}\}}([^{{}}]*)"
    r"(?:\{\{-?\s*else\s*-?\}\}[^{}]*)?\{\{-?\s*end\s*-?\}\}"
)


def translate_go_template(text: str) -> str:
    """Return a destination of golink with placeholders. Raises `BadRecord` for what has none here.

    `{{.Path}}`, also escaped, is the rest of the path, which may be empty. So is what is shown
    only if there is one.
    """
    parts = _GO_OPTIONAL.sub(lambda found: f"{found[1]}\0{found[2]}", text)
    parts = _GO_PATH.sub("\0", parts)
    if "{{" in parts:
        problem = f"Its destination has a template that Refract doesn't know: {text[:200]}"
        raise BadRecord(problem)
    return _escape_braces(parts).replace("\0", "{*}")


def read_dub(fields: Fields, _now: datetime) -> LinkFields:
    """Read a line of its export of links, or a link of its API."""
    host, code = parse_short_url(_first_value(fields, "short link", "shortlink"))
    code = to_plain_text(fields.get("key")).strip() or code
    link = start_foreign_record(_first_value(fields, "destination url", "url"), code)
    link.host = host
    apply_creation(link, _first_value(fields, "created at", "createdat"))
    link.set_text("title", fields.get("title"), MAX_TITLE)
    link.set_text("notes", _first_value(fields, "comments", "description"), MAX_NOTES)
    tags = fields.get("tags")
    apply_tags(
        link,
        [_object(tag, "tags").get("name") for tag in tags]
        if isinstance(tags, list)
        else split_values(to_plain_text(tags)),
    )
    link.given["expires_at"] = guess_moment(_first_value(fields, "expires at", "expiresat"))
    if expired := _first_value(fields, "expired url", "expiredurl"):
        link.given["expired_destination"] = _escape_braces(expired)
    _apply_dub_targets(link, fields)
    if fields.get("password"):
        _lock_without_password(link)
    return link


def _apply_dub_targets(link: LinkFields, fields: Fields) -> None:
    """Set its destinations by country and device as rules."""
    rules: list[dict[str, Any]] = []
    countries = _object(fields.get("geo"), "geo") if fields.get("geo") else {}
    for country, url in countries.items():
        conditions: dict[str, Any] = {"countries": [country.upper()]}
        rules.append({"destination": _escape_braces(url), "conditions": conditions})
    for system in ("ios", "android"):
        if url := fields.get(system):
            conditions = {"systems": [system]}
            rules.append({"destination": _escape_braces(url), "conditions": conditions})
    if len(rules) > MAX_RULES:
        link.remarks.append(f"only the first {MAX_RULES} rules are kept")
    if rules:
        link.given["rules"] = rules[:MAX_RULES]


def read_bitly(fields: Fields, _now: datetime) -> LinkFields:
    """Read a line of its CSV, or a link of its API. Each back-half of a link is kept."""
    host, code = parse_short_url(fields.get("link"))
    custom = _first_value(fields, "custom link", "custom_bitlinks")
    texts = custom if isinstance(custom, list) else split_values(to_plain_text(custom))
    link = start_foreign_record(_first_value(fields, "long_url", "destination url"), code)
    link.host = host
    for text in texts:
        own_host, own = parse_short_url(text)
        if own and own not in link.codes:
            # A back-half of one's own domain is the one that was printed.
            link.codes.insert(0, own)
            link.host = own_host or link.host
    apply_creation(link, _first_value(fields, "created_at", "date created", "created"))
    link.set_text("title", fields.get("title"), MAX_TITLE)
    tags = fields.get("tags")
    apply_tags(link, tags if isinstance(tags, list) else split_values(to_plain_text(tags)))
    return link


def _lock_without_password(link: LinkFields) -> None:
    """Admit only owners, since no file contains a password."""
    link.given["visibility"] = Visibility.SECURE.value
    link.remarks.append("had a password; only you can open it until you set a new one")


def start_foreign_record(destination: Any, name: str) -> LinkFields:
    if not name:
        problem = "It has no short code."
        raise BadRecord(problem)
    return LinkFields({"destination": _escape_braces(destination)}, codes=[name])


def _escape_braces(destination: Any) -> str:
    """Return a foreign destination. Braces are placeholders only here."""
    return to_plain_text(destination).strip().replace("{", "%7B").replace("}", "%7D")


def _first_value(fields: Fields, *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _apply_state(link: LinkFields, status: Any) -> None:
    """Set whether a link is disabled.

    Expired is not imported, because it follows from the expiry.
    """
    if status == LinkState.DELETED:
        problem = "It is deleted."
        raise BadRecord(problem)
    if status not in (None, "", *LinkState):
        problem = f'status: "{str(status)[:40]}" must be active, disabled or expired.'
        raise BadRecord(problem)
    link.disabled = status == LinkState.DISABLED


def apply_tags(link: LinkFields, tags: Iterable[Any]) -> None:
    """Set the tags of another system, without those that are invalid here."""
    good: list[str] = []
    for tag in tags:
        try:
            good.append(check_shared(to_plain_text(tag)))
        except InvalidTag as exc:
            link.remarks.append(exc.message.rstrip("."))
    if len(good) > MAX_TAGS:
        link.remarks.append(f"only the first {MAX_TAGS} tags are kept")
    link.given["tags"] = good[:MAX_TAGS]


def apply_creation(link: LinkFields, value: Any) -> None:
    """Set when a link was created. A row is not lost for want of a date."""
    link.created_at = guess_moment(value)
    text = to_plain_text(value).strip()
    if link.created_at is None and text and not text.startswith("0000-00-00"):
        link.remarks.append("its creation date can't be read")


def _list_texts(value: Any) -> list[str]:
    """Return texts in one of our own files: a list, or a cell divided by `|`."""
    values = value if isinstance(value, list) else to_plain_text(value).split("|")
    return [text for text in map(to_plain_text, values) if text]


def _parse_id(value: Any) -> int | None:
    if value in (None, ""):
        return None
    try:
        return parse_id(value)
    except ValueError as exc:
        problem = f"id: {exc}"
        raise BadRecord(problem) from exc


def _parse_integer(text: str, name: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit() and len(text) < 11):
        problem = f'{name}: "{text[:40]}" must be a whole number.'
        raise BadRecord(problem)
    return int(text)


def _parse_json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        problem = f'{name}: "{text[:40]}" must be JSON.'
        raise BadRecord(problem) from exc


def _parse_boolean(text: str, name: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE_WORDS | _FALSE_WORDS:
        problem = f'{name}: "{text[:40]}" must be true or false.'
        raise BadRecord(problem)
    return word in _TRUE_WORDS


def split_values(text: str) -> list[str]:
    """Split a cell. Neither names nor tags contain any of these separators."""
    for separator in ",;":
        text = text.replace(separator, "|")
    return [part.strip() for part in text.split("|") if part.strip()]


def _parse_path(address: Any) -> str:
    try:
        return unquote(urlsplit(to_plain_text(address).strip()).path).strip("/")
    except ValueError as exc:
        problem = f'"{to_plain_text(address)[:60]}" is not a short URL.'
        raise BadRecord(problem) from exc


def parse_short_url(address: Any) -> tuple[str | None, str]:
    """Return the host and the code of a short URL, which may lack its scheme."""
    text = to_plain_text(address).strip()
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        return parts.hostname, unquote(parts.path).strip("/")
    except ValueError as exc:
        problem = f'"{text[:60]}" is not a short URL.'
        raise BadRecord(problem) from exc


def _last_segment(address: Any) -> str:
    """Return the code of a short URL, whose system may be served below a path."""
    return _parse_path(address).rpartition("/")[2]


def _object(value: Any, name: str) -> Fields:
    """Return a nested object with lower-case field names."""
    if not isinstance(value or {}, Mapping):
        raise BadRecord(f"{name}: expected an object, not {str(value)[:40]}.")
    return {str(field).strip().lower(): inner for field, inner in (value or {}).items()}


_CELL_PARSERS: dict[Callable[[str, str], Any], tuple[str, ...]] = {
    _parse_integer: ("redirect_status", "click_limit", "clicks_left"),
    _parse_boolean: ("forward_query", "noindex"),
    _parse_json: ("rules", "preview_card", "qr_style"),
}

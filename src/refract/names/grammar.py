"""The grammar of names: their form, comparison keys, reserved words, and clashes with codes."""

import re
import secrets
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from refract.core.ids import ALPHABET, MAX_ID, decode_base62
from refract.core.phrases import Phrase
from refract.core.text import fold_text, make_excerpt
from refract.names.enums import NameTarget
from refract.names.errors import InvalidSlug, SlugReserved

MAX_LINK_NAME_LENGTH = 50
MAX_KEY_LENGTH: Final = 320
"""Characters of a host, a name and two slashes, and some more."""
RANDOM_CODE_LENGTH = 12
CODE_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's 32 letters, of which no two look alike.

Lower case, because names are compared without case. 12 of them are 60 bits.
"""

TRAILING_PUNCTUATION = ".,;:!?)"
"""Punctuation that sticks to a URL pasted from a sentence."""

ROUTE_WORDS: Final = frozenset({
    ".well-known", "api", "app", "auth", "favicon.ico", "health", "karakeep",
    "manifest.webmanifest", "metrics", "opensearch.xml", "ready", "rest", "robots.txt", "static",
    "yourls-api.php",
})  # fmt: skip
"""First path segments of our own routes and dialects. A test compares them with the routes."""

DOMAIN_ROUTE_WORDS: Final = frozenset({
    ".well-known", "favicon.ico", "health", "robots.txt", "static",
})  # fmt: skip
"""First path segments of our own routes on domains other than the default one."""

KEPT_WORDS: Final = frozenset({
    "admin", "assets", "dashboard", "docs", "help", "links", "login", "logout", "mcp",
    "register", "settings", "signup", "sitemap.xml", "status", "support", "u", "web",
    "www",
})  # fmt: skip
"""Words that no route uses and that no name may have either."""

SIGN_IN_WORDS = (
    "log-in",
    "logon",
    "log-out",
    "sign-in",
    "signin",
    "sign-out",
    "signout",
    "sign-up",
    "register-account",
    "admin-login",
)
"""Other spellings of our sign-in pages. New names may not use them; existing names keep working."""

_SENSITIVE_WORDS = frozenset({
    "about", "abuse", "account", "accounts", "admin", "administrator", "auth", "authenticate",
    "bank", "billing", "careers", "contact", "credential", "credentials", "home", "hr",
    "imprint", "invoice", "it-support", "jobs", "legal", "login", "logout", "mfa", "oauth",
    "official", "otp", "passkey", "passwd", "password", "passwords", "payment", "payments",
    "payroll", "phishing", "privacy", "recover", "recovery", "refund", "register", "secure",
    "security", "signin", "signup", "sso", "staff", "support", "terms", "token", "unlock",
    "verification", "verify", "vpn", "wallet", "webmail",
})  # fmt: skip
_SENSITIVE_STEMS = ("login", "logon", "signin", "password", "passwort", "verify")

MAX_KEPT_CODE_LENGTH: Final = 255
KEPT_MARK: Final = "="
"""Begins the texts of kept codes. No other name contains it."""
_FORBIDDEN_IN_CODES = frozenset('?#\\"<>|')
"""End a path, or are never sent as they are."""
_UNQUOTED = "/!$&'()*+,;=:@-._~"
_VIEW_SUFFIX = re.compile(r"(?:\+|\.(?:qr|png|rss|json|md))\Z", re.IGNORECASE)
"""As in `redirect.resolver.parse_path`; a test compares them."""

_LINK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")
_LIST_NAME = re.compile(r"[a-z0-9][a-z0-9-]{2,39}")
_CODE = re.compile(r"[a-z0-9]{1,11}")
_DIGIT_VALUES = {character: value for value, character in enumerate(ALPHABET)}


def name_key(text: str) -> str:
    """Return the comparison key of a name or of a key: without case, and with `-` for `_`.

    A name on another domain is written after its host, `sho.rt/Road_Map`, and its key begins with a
    slash, `/sho.rt/road-map`. The slash sorts before every bare key, so a range of keys on the
    default domain contains no others. A kept code is its own key (`join_code`).
    """
    if text.startswith(KEPT_MARK):
        return text
    key = fold_text(text).replace("_", "-")
    return f"/{key}" if "/" in key and not key.startswith("/") else key


def join_name(host: str | None, name: str) -> str:
    """Return the text of a name on a domain; no host means the default domain."""
    return f"{host}/{name}" if host else name


def split_name(text: str) -> tuple[str, str]:
    """Return the host and the bare name of a name or key; the default domain's host is empty."""
    if text.startswith(KEPT_MARK):
        host, _, name = text.removeprefix(KEPT_MARK).partition("/")
        return host, name
    host, _, name = text.rpartition("/")
    return host.removeprefix("/"), name


def format_name(text: str) -> str:
    """Return a name as it is shown: `/name`, on another domain `host/name`."""
    text = text.removeprefix(KEPT_MARK)
    return text if "/" in text else f"/{text}"


def decode_name(text: str) -> int | None:
    """Return the id of which a name is the code, on any domain, or None."""
    return None if is_kept(text) else decode_base62(split_name(text)[1])


def build_short_url(public_url: str, text: str) -> str:
    """Return the URL of a name. Other domains have the scheme and the port of the base URL."""
    host, name = split_name(text)
    name = quote(name, safe=_UNQUOTED)
    if not host:
        return f"{public_url}/{name}"
    base = urlsplit(public_url)
    return f"{base.scheme}://{host}{f':{base.port}' if base.port else ''}/{name}"


def build_path(text: str) -> str:
    """Return the path of a name as browsers send it, on another domain after the host."""
    host, name = split_name(text)
    return f"{host}/{quote(name, safe=_UNQUOTED)}"


def join_code(host: str | None, code: str) -> str:
    """Return the text of a kept code on a domain: `=/aB`, on another domain `=sho.rt/aB`.

    A kept code is an exact address of another system, which an import has kept: case counts, and it
    may contain slashes and dots. It is stored among the names, and its text is its key.
    """
    return f"{KEPT_MARK}{host or ''}/{code}"


def is_kept(text: str) -> bool:
    """Return whether the text of a name is that of a kept code."""
    return text.startswith(KEPT_MARK)


def is_possible_kept_code(code: str) -> bool:
    """Return whether this can be a kept code: visible characters, and no path that browsers change.

    They remove segments like `.` and `..`, also where their dots are encoded.
    """
    return (
        0 < len(code) <= MAX_KEPT_CODE_LENGTH
        and code.isprintable()
        and _FORBIDDEN_IN_CODES.isdisjoint(code)
        and code[0] not in " /"
        and code[-1] not in " /"
        and {".", ".."}.isdisjoint(code.split("/"))
    )


def build_stem(text: str) -> str:
    """Return the key of the name that the path of a kept code would otherwise be read as.

    That is its first segment without a suffix for a preview, QR code or feed, and without trailing
    punctuation. The owner of a name with this key owns all such paths.
    """
    host, code = split_name(text)
    first = code.partition("/")[0].rstrip(TRAILING_PUNCTUATION)
    stem = _VIEW_SUFFIX.sub("", first).rstrip(TRAILING_PUNCTUATION)
    return name_key(join_name(host, stem)) if stem else name_key(join_name(host, code))


def is_possible_name(text: str) -> bool:
    """Return whether this can be a name or a code; most requests of strangers need no query."""
    return _LINK_NAME.fullmatch(text) is not None


class NameCandidate(NamedTuple):
    """One reading of a path segment: a name with this key, or else the link with this code."""

    name: str
    host: str = ""
    is_trimmed: bool = False
    """Whether trailing punctuation was removed."""

    @property
    def text(self) -> str:
        return join_name(self.host, self.name)

    @property
    def key(self) -> str:
        return name_key(self.text)

    @property
    def link_id(self) -> int | None:
        return decode_base62(self.name)


def iter_candidates(segment: str, host: str = "") -> Iterator[NameCandidate]:
    """Yield the readings of a path segment: as it is, then without trailing punctuation.

    Every door uses this order: redirects, the API, the omnibox, commands, lists and reports.
    """
    if is_possible_name(segment):
        yield NameCandidate(segment, host)
    bare = segment.rstrip(TRAILING_PUNCTUATION)
    if bare != segment and is_possible_name(bare):
        yield NameCandidate(bare, host, is_trimmed=True)


RESERVED_KEYS: Final = frozenset(name_key(word) for word in ROUTE_WORDS | KEPT_WORDS)
"""Comparison keys that no link and no list may have."""
DOMAIN_RESERVED_KEYS: Final = frozenset(name_key(word) for word in DOMAIN_ROUTE_WORDS)
"""The same on domains other than the default one."""
_SIGN_IN_KEYS = frozenset(name_key(word) for word in SIGN_IN_WORDS)
_ROUTE_KEYS = frozenset(name_key(word) for word in ROUTE_WORDS)


def is_route(segment: str, host: str = "") -> bool:
    """Return whether the first segment of a path on a domain is that of pages of our own."""
    return name_key(segment) in (DOMAIN_RESERVED_KEYS if host else _ROUTE_KEYS)


def is_reserved(name: str, host: str = "") -> bool:
    """Return whether a bare name is a reserved word on a domain, in any spelling."""
    return name_key(name) in (DOMAIN_RESERVED_KEYS if host else RESERVED_KEYS)


def validate_name(
    name: str, kind: NameTarget, reserved: Collection[str] = RESERVED_KEYS, *, host: str = ""
) -> str:
    """Return the comparison key of a bare name that may be claimed on a domain.

    `reserved` are the keys that are reserved on the default domain. Raises `SlugReserved` or
    `InvalidSlug`.
    """
    key = name_key(name)
    if key in DOMAIN_RESERVED_KEYS if host else key in reserved or key in _SIGN_IN_KEYS:
        raise SlugReserved(name=make_excerpt(name))
    why = (
        _find_link_name_problem(name) if kind is NameTarget.LINK else _find_list_name_problem(name)
    )
    if why:
        raise InvalidSlug(name=make_excerpt(name), why=why)
    return name_key(join_name(host, name))


def list_kept_candidates(host: str, *readings: str) -> list[str]:
    """Return the texts of the kept codes that a path may be, by its readings.

    They come before `iter_candidates`; the last reading counts without trailing punctuation too.
    """
    codes = dict.fromkeys((*readings, readings[-1].rstrip(TRAILING_PUNCTUATION)))
    return [join_code(host, code) for code in codes if is_possible_kept_code(code)]


def validate_code(code: str, host: str = "") -> str:
    """Return the key of a code that an import may keep on a domain.

    Words that only name no page of ours are allowed, those that suggest a sign-in page are not.
    Raises `SlugReserved` or `InvalidSlug`.
    """
    if not is_possible_kept_code(code):
        raise InvalidSlug(
            name=make_excerpt(code),
            why=Phrase(
                "use at most {limit} visible characters, without ? and #",
                limit=MAX_KEPT_CODE_LENGTH,
            ),
        )
    text = join_code(host, code)
    stem = split_name(build_stem(text))[1]
    is_own = is_route(code.partition("/")[0], host) or is_route(stem, host)
    if is_own or is_sensitive_name(stem):
        raise SlugReserved(name=make_excerpt(code))
    if len(text) > MAX_KEY_LENGTH:
        raise InvalidSlug(name=make_excerpt(code), why=Phrase("with its domain it's too long"))
    return text


def is_sensitive_name(name: str) -> bool:
    """Return whether a name suggests a sign-in, support or legal page: `company-login`.

    Accounts may use such names (`/vpn`, `/careers`), because someone is responsible for them.
    Anonymous lists and codes kept by imports may not.
    """
    key = name_key(name)
    solid = key.replace("-", "")
    return (
        key in _SIGN_IN_KEYS
        or not _SENSITIVE_WORDS.isdisjoint((key, solid, *key.split("-")))
        or solid.startswith(_SENSITIVE_STEMS)
        or solid.endswith(_SENSITIVE_STEMS)
    )


def generate_code() -> str:
    """Return a random code that cannot be guessed.

    It is longer than any Base62 code, so the two cannot be confused.
    """
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(RANDOM_CODE_LENGTH))


def is_random_code(text: str) -> bool:
    return len(text) == RANDOM_CODE_LENGTH and set(text) <= set(CODE_ALPHABET)


def is_possible_code(key: str) -> bool:
    return _CODE.fullmatch(key) is not None and (key[0] != "0" or len(key) == 1)


def find_spellings(key: str, low: int, high: int) -> list[int]:
    """Return the ids from `low` to `high` whose code is this key in some mix of cases.

    There are at most 2,048.
    """
    if not is_possible_code(key):
        return []
    high = min(high, MAX_ID)
    found = [0]
    for place, character in enumerate(key, start=1):
        rest = 62 ** (len(key) - place)  # number of ids that share the characters read so far
        digits = {_DIGIT_VALUES[character], _DIGIT_VALUES[character.upper()]}
        extended = [start * 62 + digit for start in found for digit in digits]
        found = [start for start in extended if start * rest <= high and (start + 1) * rest > low]
    return sorted(found)


def _find_link_name_problem(name: str) -> str | None:
    if _LINK_NAME.fullmatch(name):
        return None
    if not name:
        return Phrase("it's empty")
    if len(name) > MAX_LINK_NAME_LENGTH:
        return Phrase("it has more than {limit} characters", limit=MAX_LINK_NAME_LENGTH)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return Phrase("use only the letters A to Z, numbers, - and _")
    return Phrase("it must start with a letter or a number")


def _find_list_name_problem(name: str) -> str | None:
    if _LIST_NAME.fullmatch(name):
        return None
    if not 3 <= len(name) <= 40:
        return Phrase("use 3 to 40 characters")
    if not re.fullmatch(r"[a-z0-9-]+", name):
        return Phrase("use only lowercase letters a to z, numbers and -")
    return Phrase("it must start with a letter or a number")

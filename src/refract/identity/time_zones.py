"""Time zones by their IANA names."""

from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from refract.core.errors import FieldError
from refract.core.phrases import Phrase
from refract.identity.errors import UnknownTimeZone

_REJECTED_PREFIXES: Final = ("posix/", "right/", "localtime", "posixrules", "Factory", ".", "/")


def parse_zone(name: str) -> ZoneInfo:
    """Return an IANA zone by name."""
    unknown = UnknownTimeZone(
        name=name, errors=[FieldError("tz", Phrase("Use a name such as Europe/Berlin."))]
    )
    if name.startswith(_REJECTED_PREFIXES):
        raise unknown
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise unknown from exc

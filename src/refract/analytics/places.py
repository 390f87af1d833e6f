"""Where a network is: by the registries' own assignments out of the box, or by any `.mmdb` file the operator provides.

Only the anonymised address is ever asked for. A file that cannot be read is said so once and answers "unknown".
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog

from refract.analytics.countries import UNKNOWN, name_of
from refract.analytics.parts import key
from refract.core.address import spelled
from refract.core.clock import Clock

LOOK_SECONDS: Final = 5.0
_CODE: Final = re.compile(r"[A-Z]{2}")


class Place(NamedTuple):
    """What is kept of where somebody was."""

    country_code: str = UNKNOWN
    country: str | None = None
    city: str | None = None
    latitude: float | None = None
    longitude: float | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """As breakdowns count it: a city with its country, since there is more than one Paris."""
        country = key("countries", self.country_code)
        return (country, key("cities", f"{self.city}, {self.country_code}")) if self.city else (country,)


NOWHERE: Final = Place()
Look = Callable[[str], Place]


class Places:
    """Where networks are, by the bytes that are kept of an address. A replaced file is noticed within seconds."""

    def __init__(self, path: Path | None, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._stamp: tuple[int, ...] | None = None
        self._look: Look = _registries() if path is None else _nowhere
        self._looked_at = float("-inf")
        self._log = structlog.get_logger("refract.places")

    def __getitem__(self, network: bytes) -> Place:
        address = spelled(network)
        return NOWHERE if address is None else self._look(address)

    def refresh(self) -> bool:
        """Read the file again if it is another one now, and say whether. May take a while with a large one: not on the event loop."""
        if self._path is None or not self.due:
            return False
        self._looked_at = self._clock.monotonic()
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._look = _file(self._path)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a foreign file, clicks are counted all the same
            self._look = _nowhere
            self._log.warning("places_unknown", file=str(self._path), reason=type(error).__name__)
        else:
            self._log.info("places_known", file=str(self._path))
        return True

    @property
    def due(self) -> bool:
        """Whether `refresh` would look."""
        return self._path is not None and self._clock.monotonic() - self._looked_at >= LOOK_SECONDS


def _nowhere(_address: str) -> Place:
    return NOWHERE


def _registries() -> Look:
    from iptocc import country_code  # noqa: PLC0415 - only where clicks are ingested

    def look(address: str) -> Place:
        code = country_code(address)
        return Place(code, name_of(code)) if code and _CODE.fullmatch(code) else NOWHERE

    return look


def _stamp(path: Path) -> tuple[int, ...]:
    """What tells one file from another; empty for none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _file(path: Path) -> Look:
    """Read from a private copy: the original may be overwritten in place, and a mapped file that shrinks kills its reader."""
    import maxminddb  # noqa: PLC0415 - only with a file

    copy, name = tempfile.mkstemp(suffix=".mmdb")
    try:
        with os.fdopen(copy, "wb") as target, path.open("rb") as source:
            shutil.copyfileobj(source, target, 1 << 20)
        reader = maxminddb.open_database(name, maxminddb.MODE_AUTO)
    finally:
        Path(name).unlink()
    reader.get("192.0.2.0")  # a file cut short opens well and fails at the first question

    def look(address: str) -> Place:
        try:
            return read_record(reader.get(address))
        except (ValueError, maxminddb.InvalidDatabaseError):
            return NOWHERE  # IPv6 asked of an IPv4 file, or a damaged leaf

    return look


def read_record(record: Any) -> Place:
    """A place from either layout: MaxMind's nested maps, or the flat fields of DB-IP and others."""
    if not isinstance(record, dict):
        return NOWHERE
    country, city, location = record.get("country"), record.get("city"), record.get("location")
    country = country or record.get("registered_country")
    if isinstance(country, dict):
        code, name = _text(country.get("iso_code")), _english(country)
    else:
        plain = _text(country)
        code = _text(record.get("country_code")) or plain
        name = _text(record.get("country_name")) or (plain if plain != code else None)
    code = (code or "").upper()
    if not _CODE.fullmatch(code):
        return NOWHERE
    spot = location if isinstance(location, dict) else record
    latitude, longitude = _degrees(spot.get("latitude"), 90), _degrees(spot.get("longitude"), 180)
    if latitude is None or longitude is None:
        latitude = longitude = None
    town = _english(city) if isinstance(city, dict) else _text(city)
    return Place(code, name or name_of(code), town, latitude, longitude)


def _english(named: dict[str, Any]) -> str | None:
    names = named.get("names")
    if not isinstance(names, dict) or not names:
        return None
    return _text(names.get("en") or next(iter(names.values())))


def _text(value: Any) -> str | None:
    return value.replace("\x00", "").strip()[:100] or None if isinstance(value, str) else None


def _degrees(value: Any, most: int) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if -most <= number <= most else None

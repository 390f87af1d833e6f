"""Location of networks, by registry assignments or by an operator's `.mmdb` file.

Only anonymised addresses are looked up. An unreadable file is logged once, and every place is
unknown.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog

from refract.clicks.countries import UNKNOWN_COUNTRY, get_country_name
from refract.clicks.rollups.breakdowns import build_breakdown_key
from refract.core.clock import Clock
from refract.core.ip_addresses import format_anonymous_address

REFRESH_INTERVAL: Final = 5.0
_CODE_PATTERN: Final = re.compile(r"[A-Z]{2}")


class GeoPlace(NamedTuple):
    """The facts of a visitor's location that are stored."""

    country_code: str = UNKNOWN_COUNTRY
    country: str | None = None
    city: str | None = None
    latitude: float | None = None
    longitude: float | None = None

    @property
    def breakdown_keys(self) -> tuple[str, ...]:
        """Return the keys under which breakdowns count it.

        A city includes its country, since there is more than one Paris.
        """
        country = build_breakdown_key("countries", self.country_code)
        return (
            (country, build_breakdown_key("cities", f"{self.city}, {self.country_code}"))
            if self.city
            else (country,)
        )


UNKNOWN_PLACE: Final = GeoPlace()
AddressLocator = Callable[[str], GeoPlace]


class PlaceLookup:
    """Places of networks, by the stored bytes of an address.

    A replaced file is noticed within seconds.
    """

    def __init__(self, path: Path | None, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._stamp: tuple[int, ...] | None = None
        self._locate: AddressLocator = _load_registries() if path is None else _locate_nothing
        self._checked_at = float("-inf")
        self._log = structlog.get_logger("refract.places")

    def __getitem__(self, network: bytes) -> GeoPlace:
        address = format_anonymous_address(network)
        return UNKNOWN_PLACE if address is None else self._locate(address)

    def refresh(self) -> bool:
        """Reload the file if it has changed, and return whether it was.

        A large file may take a while: do not call it on the event loop.
        """
        if self._path is None or not self.is_due:
            return False
        self._checked_at = self._clock.monotonic()
        stamp = _get_file_stamp(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._locate = _load_file(self._path)
        except Exception as exc:  # noqa: BLE001 - a bad file must not stop counting
            self._locate = _locate_nothing
            self._log.warning("geoip_failed", file=str(self._path), reason=type(exc).__name__)
        else:
            self._log.info("geoip_loaded", file=str(self._path))
        return True

    @property
    def is_due(self) -> bool:
        """Return whether `refresh` would check the file."""
        return (
            self._path is not None
            and self._clock.monotonic() - self._checked_at >= REFRESH_INTERVAL
        )


def _locate_nothing(_address: str) -> GeoPlace:
    return UNKNOWN_PLACE


def _load_registries() -> AddressLocator:
    from iptocc import country_code  # noqa: PLC0415 - only where clicks are ingested

    def locate(address: str) -> GeoPlace:
        code = country_code(address)
        return (
            GeoPlace(code, get_country_name(code))
            if code and _CODE_PATTERN.fullmatch(code)
            else UNKNOWN_PLACE
        )

    return locate


def _get_file_stamp(path: Path) -> tuple[int, ...]:
    """Return values that identify a version of a file; empty if there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _load_file(path: Path) -> AddressLocator:
    """Read a private copy of the file. Addresses that it lacks get their registry's country.

    The original may be overwritten in place, and a mapped file that shrinks kills its reader.
    """
    import maxminddb  # noqa: PLC0415 - only with a file

    copy, name = tempfile.mkstemp(suffix=".mmdb")
    try:
        with os.fdopen(copy, "wb") as target, path.open("rb") as source:
            shutil.copyfileobj(source, target, 1 << 20)
        reader = maxminddb.open_database(name, maxminddb.MODE_AUTO)
    finally:
        Path(name).unlink()
    reader.get("192.0.2.0")  # a truncated file opens fine and fails at the first lookup
    locate_by_registries = _load_registries()

    def locate(address: str) -> GeoPlace:
        try:
            place = parse_record(reader.get(address))
        except (ValueError, maxminddb.InvalidDatabaseError):
            place = UNKNOWN_PLACE  # IPv6 looked up in an IPv4 file, or a damaged leaf
        return locate_by_registries(address) if place is UNKNOWN_PLACE else place

    return locate


def parse_record(record: Any) -> GeoPlace:
    """Return a place from MaxMind's nested maps or from the flat fields of DB-IP and others."""
    if not isinstance(record, dict):
        return UNKNOWN_PLACE
    country, city, location = record.get("country"), record.get("city"), record.get("location")
    country = country or record.get("registered_country")
    if isinstance(country, dict):
        code, name = _clean_text(country.get("iso_code")), _get_english_name(country)
    else:
        plain = _clean_text(country)
        code = _clean_text(record.get("country_code")) or plain
        name = _clean_text(record.get("country_name")) or (plain if plain != code else None)
    code = (code or "").upper()
    if not _CODE_PATTERN.fullmatch(code):
        return UNKNOWN_PLACE
    spot = location if isinstance(location, dict) else record
    latitude, longitude = (
        _parse_degrees(spot.get("latitude"), 90),
        _parse_degrees(spot.get("longitude"), 180),
    )
    if latitude is None or longitude is None:
        latitude = longitude = None
    town = _get_english_name(city) if isinstance(city, dict) else _clean_text(city)
    return GeoPlace(code, name or get_country_name(code), town, latitude, longitude)


def _get_english_name(place: dict[str, Any]) -> str | None:
    names = place.get("names")
    if not isinstance(names, dict) or not names:
        return None
    return _clean_text(names.get("en") or next(iter(names.values())))


def _clean_text(value: Any) -> str | None:
    return value.replace("\x00", "").strip()[:100] or None if isinstance(value, str) else None


def _parse_degrees(value: Any, limit: int) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if -limit <= number <= limit else None

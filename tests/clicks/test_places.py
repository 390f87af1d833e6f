"""Locations of networks: built in, by files of either layout, replaced or broken ones."""

import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from refract.clicks.countries import COUNTRY_NAMES, get_country_name
from refract.clicks.ingest.places import REFRESH_INTERVAL, UNKNOWN_PLACE, GeoPlace, PlaceLookup
from refract.core.clock import ManualClock
from tests.clicks.mmdb import write_mmdb

UNREGISTERED = b"\x0a\x00\x00"  # 10.0.0.0
BERLIN = b"\x51\x02\x45"  # 81.2.69.0
NESTED = {
    "country": {"iso_code": "DE", "names": {"en": "Germany", "de": "Deutschland"}},
    "city": {"names": {"de": "Berlin", "en": "Berlin"}},
    "location": {"latitude": 52.5, "longitude": 13.4, "accuracy_radius": 10},
}
FLAT = {
    "country_code": "DE",
    "city": "Berlin",
    "latitude": 52.5,
    "longitude": 13.4,
    "state1": "Berlin",
}
KNOWN = GeoPlace("DE", "Germany", "Berlin", 52.5, 13.4)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "places.mmdb"


def looked(file: Path | None, clock: ManualClock) -> PlaceLookup:
    places = PlaceLookup(file, clock)
    places.refresh()
    return places


def test_out_of_the_box_the_country_is_known(clock: ManualClock) -> None:
    places = looked(None, clock)

    assert places[b"\x08\x08\x08"] == GeoPlace("US", "United States")
    assert places[b"\x20\x01\x48\x60\x48\x60"] == GeoPlace("US", "United States")
    assert places[b"\x0a\x00\x00"] == places[b""] == UNKNOWN_PLACE


@pytest.mark.parametrize("record", [NESTED, FLAT])
def test_both_layouts_say_the_same(file: Path, clock: ManualClock, record: dict[str, Any]) -> None:
    write_mmdb(file, {"81.2.69.0/24": record, "2001:db8::/32": record})

    places = looked(file, clock)

    assert places[BERLIN] == places[b"\x20\x01\x0d\xb8\x00\x00"] == KNOWN
    assert places[UNREGISTERED] == UNKNOWN_PLACE


def test_an_address_that_a_file_lacks_has_the_country_of_its_registry(
    file: Path, clock: ManualClock
) -> None:
    write_mmdb(file, {"81.2.69.0/24": NESTED})

    places = looked(file, clock)

    assert places[BERLIN] == KNOWN
    assert places[b"\x08\x08\x08"] == GeoPlace("US", "United States")


@pytest.mark.parametrize(
    ("record", "place"),
    [
        ({"country": {"iso_code": "FR"}}, GeoPlace("FR", "France")),
        (
            {"registered_country": {"iso_code": "FR", "names": {"en": "France"}}},
            GeoPlace("FR", "France"),
        ),
        ({"country_code": "FR", "country": "France"}, GeoPlace("FR", "France")),
        ({"country": "FR"}, GeoPlace("FR", "France")),
        (
            {"country": "FR", "country_name": "La France", "city": "Paris"},
            GeoPlace("FR", "La France", "Paris"),
        ),
        (
            {"country_code": "FR", "latitude": "48.8", "longitude": "2.3"},
            GeoPlace("FR", "France", None, 48.8, 2.3),
        ),
        ({"country_code": "FR", "latitude": 148.8, "longitude": 2.3}, GeoPlace("FR", "France")),
        ({"country_code": "FR", "city": "x" * 200}, GeoPlace("FR", "France", "x" * 100)),
        ({"country_code": "FRA"}, UNKNOWN_PLACE),
        ({"country": {"iso_code": 7}}, UNKNOWN_PLACE),
        ({"asn": 13335}, UNKNOWN_PLACE),
        ("only a word", UNKNOWN_PLACE),
    ],
)
def test_every_layout_that_is_met_is_read(
    file: Path, clock: ManualClock, record: Any, place: GeoPlace
) -> None:
    write_mmdb(file, {"10.0.0.0/24": record})

    assert looked(file, clock)[UNREGISTERED] == place


def test_an_ipv4_file_knows_nothing_of_ipv6(file: Path, clock: ManualClock) -> None:
    write_mmdb(file, {"81.2.69.0/24": FLAT}, ip_version=4)

    places = looked(file, clock)

    assert places[BERLIN] == KNOWN
    assert places[b"\x20\x01\x0d\xb8\x00\x00"] == UNKNOWN_PLACE


@pytest.mark.parametrize("in_place", [True, False])
def test_a_replaced_file_is_noticed(file: Path, clock: ManualClock, in_place: bool) -> None:
    write_mmdb(file, {"81.2.69.0/24": FLAT})
    places = looked(file, clock)
    assert places[BERLIN].city == "Berlin"

    new = file if in_place else file.with_suffix(".new")
    write_mmdb(new, {"81.2.69.0/24": NESTED | {"city": {"names": {"en": "Potsdam"}}}})
    new.rename(file)
    assert not places.refresh()  # not checked at every click
    clock.advance(REFRESH_INTERVAL)

    assert places.refresh()
    assert places[BERLIN].city == "Potsdam"


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-60])


def _spoil(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(b"\xff" * 400 + data[400:])


@pytest.mark.parametrize(
    "harm",
    [
        _cut,
        _spoil,
        Path.unlink,
        lambda file: file.write_bytes(b""),
        lambda file: file.write_text("no database"),
    ],
)
def test_a_broken_file_is_warned_of_once_and_answers_unknown(
    file: Path, clock: ManualClock, harm: Any
) -> None:
    write_mmdb(file, {"81.2.69.0/24": FLAT})
    places = looked(file, clock)
    harm(file)

    with capture_logs() as logs:
        for _ in range(3):
            clock.advance(REFRESH_INTERVAL)
            places.refresh()
            assert places[BERLIN] == UNKNOWN_PLACE

    warnings = [line for line in logs if line["log_level"] == "warning"]
    assert [line["event"] for line in warnings] == ["geoip_failed"]

    write_mmdb(file, {"81.2.69.0/24": FLAT})
    clock.advance(REFRESH_INTERVAL)
    places.refresh()
    assert places[BERLIN] == KNOWN


def test_a_file_that_shrinks_while_it_is_read_harms_nobody(file: Path, clock: ManualClock) -> None:
    write_mmdb(file, {f"81.2.{number}.0/24": FLAT for number in range(200)})
    places = looked(file, clock)
    os.truncate(file, 0)

    assert all(places[bytes([81, 2, number])] == KNOWN for number in range(200))


def test_countries_have_names() -> None:
    assert len(COUNTRY_NAMES) == 250
    assert all(len(code) == 2 and name for code, name in COUNTRY_NAMES.items())
    assert get_country_name("CI") == "Côte d’Ivoire"
    assert get_country_name("XX") is None

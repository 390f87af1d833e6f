"""Networks and ports that an operator may allow."""

from ipaddress import ip_address, ip_network

import pytest

from refract.core.errors import ConfigurationError
from refract.core.net import PageFetcher
from refract.core.settings.loader import load_settings


def test_nothing_inside_is_open_unless_somebody_says_so() -> None:
    settings = load_settings()

    assert settings.fetch_allow == ()
    assert settings.fetch_ports == (80, 443)


def test_networks_and_ports_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFRACT_FETCH_ALLOW", "10.0.0.0/8, fd00::/8")
    monkeypatch.setenv("REFRACT_FETCH_PORTS", "80, 443,8080")

    settings = load_settings()
    guard = PageFetcher.from_settings(settings)._guard

    assert settings.fetch_allow == (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
    assert settings.fetch_ports == (80, 443, 8080)
    assert guard.is_allowed(ip_address("10.0.0.1"), 9999)
    assert guard.is_allowed(ip_address("8.8.8.8"), 8080)
    assert not guard.is_allowed(ip_address("8.8.8.8"), 9999)


@pytest.mark.parametrize("wrong", ["http", "0", "65536", "-1", "80;443", "80 443"])
def test_ports_that_are_none_stop_the_start(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("REFRACT_FETCH_PORTS", wrong)

    with pytest.raises(ConfigurationError, match="REFRACT_FETCH_PORTS"):
        load_settings()


def test_a_network_that_is_none_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFRACT_FETCH_ALLOW", "10.0.0.1/8")

    with pytest.raises(ConfigurationError, match="REFRACT_FETCH_ALLOW"):
        load_settings()

"""The return path survives the sign-in, and can't be forged."""

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.web import return_path
from tests.conftest import START, make_settings

NOTHING: Any = SimpleNamespace()


def runtime(data: Path, key: bytes = b"s" * 40, **given: Any) -> Runtime:
    return Runtime(
        settings=make_settings(data, **given),
        db=NOTHING,
        clock=ManualClock(START),
        ids=NOTHING,
        secret=Secret(key),
    )


def cookie_of(rt: Runtime, path: str) -> str | None:
    response = Response()
    return_path.remember_path(response, rt, path)
    return response.headers.get("set-cookie")


def request(cookie: str) -> Request:
    return Request({"type": "http", "headers": [(b"cookie", cookie.encode())]})


def test_path_comes_back_until_it_is_too_old(tmp_path: Path) -> None:
    rt = runtime(tmp_path)
    cookie = (cookie_of(rt, "/plan/a%20b?x=1") or "").split(";")[0]

    assert return_path.get_return_path(request(cookie), rt) == "/plan/a%20b?x=1"
    rt.clock.advance(return_path.RETURN_PATH_SECONDS - 1)  # type: ignore[attr-defined]
    assert return_path.get_return_path(request(cookie), rt) == "/plan/a%20b?x=1"
    rt.clock.advance(1)  # type: ignore[attr-defined]
    assert return_path.get_return_path(request(cookie), rt) is None


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "",
        "plan",
        "/a b",
        "/a\nb",
        "/ä",
        "/" + "x" * 2048,
    ],
)
def test_only_a_path_of_ours_is_kept(tmp_path: Path, path: str) -> None:
    assert cookie_of(runtime(tmp_path), path) is None


def test_nobody_else_can_write_it(tmp_path: Path) -> None:
    rt = runtime(tmp_path)
    value = (cookie_of(rt, "/plan") or "").split(";")[0].partition("=")[2]
    raw = bytearray(base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)))

    for place in range(len(raw)):
        forged = bytes(raw[:place]) + bytes([raw[place] ^ 1]) + bytes(raw[place + 1 :])
        cookie = base64.urlsafe_b64encode(forged).decode().rstrip("=")
        assert (
            return_path.get_return_path(request(f"{return_path.COOKIE.base_name}={cookie}"), rt)
            is None
        )
    for cookie in ("", "x", "!!!!", "AAAA", "é"):
        assert (
            return_path.get_return_path(request(f"{return_path.COOKIE.base_name}={cookie}"), rt)
            is None
        )
    assert (
        return_path.get_return_path(
            request(f"{return_path.COOKIE.base_name}={value}"), runtime(tmp_path, b"t" * 40)
        )
        is None
    )
    assert return_path.get_return_path(request("other=1"), rt) is None


def test_cookie_is_bound_to_https_where_there_is_https(tmp_path: Path) -> None:
    cookie = cookie_of(runtime(tmp_path, base_url="https://go.test"), "/plan") or ""

    assert cookie.startswith("__Host-refract_return=")
    assert "Secure" in cookie

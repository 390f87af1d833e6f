"""Names and attributes of cookies, set and deleted in one module."""

from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

import refract
from refract.core.runtime import Runtime
from refract.web.cookies import Cookie
from tests.web.test_returning import runtime

TEA = Cookie("tea")


def _attributes(response: Response) -> dict[str, str]:
    parts = [part.partition("=") for part in response.headers["set-cookie"].split("; ")]
    return {name: value for name, _, value in parts}


@pytest.mark.parametrize(
    ("address", "name"), [("http://go.test", "tea"), ("https://go.test", "__Host-tea")]
)
def test_a_cookie_is_deleted_under_the_attributes_it_was_set_with(
    tmp_path: Path, address: str, name: str
) -> None:
    rt = runtime(tmp_path, base_url=address)
    kept, gone = Response(), Response()
    TEA.set(kept, rt, "green", max_age=60)
    TEA.delete(gone, rt)
    was, is_now = _attributes(kept), _attributes(gone)

    assert (was.pop(name), was.pop("Max-Age")) == ("green", "60")
    assert (is_now.pop(name), is_now.pop("Max-Age")) == ('""', "0")
    is_now.pop("expires")
    assert (
        was
        == is_now
        == {"HttpOnly": "", "Path": "/", "SameSite": "lax"}
        | ({"Secure": ""} if name != "tea" else {})
    )


def test_only_the_name_of_this_scheme_is_read(tmp_path: Path) -> None:
    def read(rt: Runtime, cookie: bytes) -> str | None:
        return TEA.read(Request({"type": "http", "headers": [(b"cookie", cookie)]}), rt)

    plain, secure = (
        runtime(tmp_path, base_url="http://go.test"),
        runtime(tmp_path, base_url="https://go.test"),
    )
    assert (read(plain, b"tea=1"), read(plain, b"__Host-tea=1")) == ("1", None)
    assert (read(secure, b"tea=1"), read(secure, b"__Host-tea=1")) == (None, "1")


def test_nobody_else_sets_or_deletes_cookies() -> None:
    root = Path(refract.__file__).parent
    others = [path for path in root.rglob("*.py") if path != root / "web" / "cookies.py"]
    texts = {path.relative_to(root): path.read_text() for path in others}
    assert not [
        str(path)
        for path, text in texts.items()
        if ".set_cookie(" in text or ".delete_cookie(" in text or "__Host-{" in text
    ]

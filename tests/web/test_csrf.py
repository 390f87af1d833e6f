"""CSRF tokens: bound to a cookie, never the same text twice."""

import pytest

from refract.core.runtime import Runtime
from refract.web import csrf
from tests.client import on_sqlite

pytestmark = on_sqlite


async def test_two_pages_never_carry_the_same_text_and_both_are_good(rt: Runtime) -> None:
    one, other = csrf.make_token(rt, "cookie"), csrf.make_token(rt, "cookie")

    assert one != other
    assert csrf.own_token(rt, "cookie", one)
    assert csrf.own_token(rt, "cookie", other)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one[:-1],
        lambda one: one + "A",
        lambda one: one[::-1],
        lambda one: one.swapcase(),
        lambda _: "é",
        lambda _: "A" * 44,
        lambda _: "",
    ],
)
async def test_what_is_not_ours_is_refused(rt: Runtime, change: object) -> None:
    token = csrf.make_token(rt, "cookie")
    assert callable(change)

    assert not csrf.own_token(rt, "cookie", change(token))
    assert not csrf.own_token(rt, "another", token)
    assert not csrf.own_token(rt, None, token)
    assert not csrf.own_token(rt, "cookie", None)

"""Sealed values: read for their purpose only, in their time only, and never forged."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.core.secrets import (
    ExpiredSeal,
    InvalidSeal,
    Secret,
    decode_base64url,
    encode_base64url,
)

SECRET = Secret(b"k" * 40)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=10)


@given(st.binary(max_size=3000), st.binary(min_size=4, max_size=4))
def test_a_message_comes_back(message: bytes, context: bytes) -> None:
    assert SECRET.unseal("tea", SECRET.seal("tea", message)) == message
    sealed = SECRET.seal("tea", message, until=LATER, context=context)
    assert SECRET.unseal("tea", sealed, now=NOW, context=context) == message


@given(st.integers(0, 200), st.characters(codec="ascii"))
def test_any_change_is_noticed(index: int, character: str) -> None:
    sealed = SECRET.seal("tea", b"a message", until=LATER)
    index %= len(sealed)
    changed = sealed[:index] + character + sealed[index + 1 :]
    if changed != sealed:
        with pytest.raises(InvalidSeal):
            SECRET.unseal("tea", changed, now=NOW)


@given(st.text(max_size=600))
def test_any_text_at_all_is_refused_and_never_crashes(text: str) -> None:
    with pytest.raises(InvalidSeal):
        SECRET.unseal("tea", text, now=NOW)


@pytest.mark.parametrize(
    ("secret", "purpose", "context"),
    [(Secret(b"x" * 40), "tea", b"1"), (SECRET, "coffee", b"1"), (SECRET, "tea", b"2")],
    ids=["secret", "purpose", "context"],
)
def test_another_secret_purpose_or_context_opens_nothing(
    secret: Secret, purpose: str, context: bytes
) -> None:
    with pytest.raises(InvalidSeal):
        secret.unseal(
            purpose,
            SECRET.seal("tea", b"a message", until=LATER, context=b"1"),
            now=NOW,
            context=context,
        )


def test_it_can_be_read_until_its_time_is_over() -> None:
    sealed = SECRET.seal("tea", b"a message", until=LATER)
    assert SECRET.unseal("tea", sealed, now=LATER - timedelta(seconds=1)) == b"a message"
    with pytest.raises(ExpiredSeal):
        SECRET.unseal("tea", sealed, now=LATER)


def test_neither_message_nor_time_can_be_read_from_outside() -> None:
    raw = decode_base64url(SECRET.seal("tea", b"a message", until=LATER))
    assert raw is not None
    assert b"message" not in raw
    assert int(LATER.timestamp()).to_bytes(8, "big") not in raw


@given(st.binary(max_size=100))
def test_bytes_have_one_spelling(raw: bytes) -> None:
    text = encode_base64url(raw)
    assert decode_base64url(text) == raw
    assert decode_base64url(text + "=") is None
    assert decode_base64url(text + "!") is None


def test_other_spellings_of_the_same_bytes_are_refused() -> None:
    assert decode_base64url("AA") == b"\0"
    assert decode_base64url("AB") is None, "bits that nothing reads"
    assert decode_base64url("é") is None

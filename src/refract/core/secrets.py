"""The installation's secret, the keys derived from it, and values sealed with them."""

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import secrets
from datetime import datetime
from pathlib import Path

from refract.core.errors import ConfigurationError
from refract.core.settings.model import Settings

_FILE = "secret"
_MIN_SECRET_LENGTH = 32
_TAG_SIZE = 16
_STAMP_SIZE = 8
_BLOCK_SIZE = 64
_MAX_BLOCKS = 256


class InvalidSeal(ValueError):
    """A text that was not sealed by us for this purpose, or was changed since."""


class ExpiredSeal(InvalidSeal):
    """A sealed text that has expired."""


class Secret:
    """Derives a key per purpose, so that a signature for one purpose is invalid for another."""

    def __init__(self, root: bytes) -> None:
        self._root = root

    def key(self, purpose: str) -> bytes:
        return hashlib.blake2b(
            purpose.encode(), key=self._root[:64], digest_size=32, person=b"refract"
        ).digest()

    def sign(self, purpose: str, message: bytes, *, size: int = 16) -> bytes:
        return hashlib.blake2b(message, key=self.key(purpose), digest_size=size).digest()

    def verify(self, purpose: str, message: bytes, signature: bytes) -> bool:
        return hmac.compare_digest(
            self.sign(purpose, message, size=len(signature) or 16), signature
        )

    def seal(
        self, purpose: str, message: bytes, *, until: datetime | None = None, context: bytes = b""
    ) -> str:
        """Return text for cookies and URLs that only `unseal` can read and no client can forge.

        `context` must be given again to unseal it and has one length per purpose. Give `until`
        always or never for one purpose. The MAC is the nonce of the key stream that hides the
        message, so equal messages make equal texts.
        """
        stamp = b"" if until is None else int(until.timestamp()).to_bytes(_STAMP_SIZE, "big")
        body = stamp + message
        tag = self.sign(purpose, context + body, size=_TAG_SIZE)
        return encode_base64url(tag + self._mask(purpose, context + tag, body))

    def unseal(
        self, purpose: str, text: str, *, now: datetime | None = None, context: bytes = b""
    ) -> bytes:
        """Return the message that was sealed; give `now` if it was sealed with `until`.

        Raise `InvalidSeal`, or `ExpiredSeal` if `until` is not after `now`.
        """
        raw = decode_base64url(text)
        if raw is None or len(raw) < _TAG_SIZE:
            raise InvalidSeal
        tag = raw[:_TAG_SIZE]
        body = self._mask(purpose, context + tag, raw[_TAG_SIZE:])
        if not self.verify(purpose, context + body, tag):
            raise InvalidSeal
        if now is None:
            return body
        if int.from_bytes(body[:_STAMP_SIZE], "big") <= now.timestamp():
            raise ExpiredSeal
        return body[_STAMP_SIZE:]

    def _mask(self, purpose: str, nonce: bytes, text: bytes) -> bytes:
        """Hide a text or reveal it: XOR with a key stream."""
        blocks = -(-len(text) // _BLOCK_SIZE)
        if blocks > _MAX_BLOCKS:
            raise InvalidSeal
        stream = b"".join(
            self.sign(f"{purpose} stream", nonce + bytes([block]), size=_BLOCK_SIZE)
            for block in range(blocks)
        )
        return bytes(byte ^ key for byte, key in zip(text, stream, strict=False))


def encode_base64url(raw: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes | None:
    """Return the bytes that `encode_base64url` makes this very text of, or None.

    Other spellings of the same bytes (padding, unused bits) are refused.
    """
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        raw = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw if encode_base64url(raw) == text else None


def load_secret(settings: Settings) -> Secret:
    """Return the configured secret, or that of the data directory, created on first use."""
    if settings.secret_key is not None:
        return Secret(settings.secret_key.get_secret_value().encode())
    path = settings.data_dir / _FILE
    try:
        with contextlib.suppress(FileExistsError):
            _create_secret_file(path)
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(
            problem=(
                f"The secret in {path} cannot be read"
                f" ({getattr(exc, 'strerror', None) or 'it is not text'})."
            ),
            remedy="Give this user the right to read it, or set REFRACT_SECRET_KEY.",
        ) from exc
    if len(text) < _MIN_SECRET_LENGTH:
        raise ConfigurationError(
            problem=(
                f"The secret in {path} is damaged: it holds fewer than {_MIN_SECRET_LENGTH}"
                " characters."
            ),
            remedy=(
                "Restore it from a backup, or remove it to have a new one made; form tokens and"
                " cursors begin anew."
            ),
        )
    return Secret(text.encode())


def _create_secret_file(path: Path) -> None:
    """Write the secret under another name first, so that no process reads half of it."""
    if path.exists():
        return
    draft = path.with_name(f".{_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(48))
    try:
        # Fails if another process was first, and never replaces an existing file.
        os.link(draft, path)
    finally:
        draft.unlink()


def hash_credential(text: str) -> str:
    """Return BLAKE2b-256 in hexadecimal, as keys, sessions and one-time links are stored.

    They are random, so no salt is needed.
    """
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()

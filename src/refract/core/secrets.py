"""The installation's own secret, and the purposes it is split into."""

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from refract.core.errors import ConfigurationError
from refract.core.settings.model import Settings

_FILE = "secret"
_MIN_SECRET_LENGTH = 32


class Secret:
    """Derives a key per purpose, so that a signature made for one thing proves nothing about another."""

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


def load_secret(settings: Settings) -> Secret:
    """The configured secret, or the one kept in the data directory, made on first use."""
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
    """Written in full under another name first: a second process never reads half a secret."""
    if path.exists():
        return
    draft = path.with_name(f".{_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(48))
    try:
        os.link(
            draft, path
        )  # fails when another process was first, and never replaces what is there
    finally:
        draft.unlink()


def hash_credential(text: str) -> str:
    """BLAKE2b-256 in hexadecimal: how keys, sessions and one-time links are kept. They are random, so no salt is needed."""
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()

"""Environment files in systemd's format: `NAME=value`, comments, quotes and continued lines."""

import os
import re
from collections.abc import MutableMapping
from pathlib import Path

from refract.core.errors import ConfigurationError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def load_env_file(path: Path, into: MutableMapping[str, str] | None = None) -> None:
    """Add the variables of a file to the environment, except those that are set already."""
    environment = os.environ if into is None else into
    try:
        content = path.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(
            problem=(
                f"The environment file {path} cannot be read"
                f" ({getattr(exc, 'strerror', None) or 'it is not text'})."
            ),
            remedy=(
                "Give this user the right to read it, or name another with --env-file or"
                " REFRACT_ENV_FILE."
            ),
        ) from exc
    for name, value in parse_env_file(content, str(path)).items():
        environment.setdefault(name, value)


def parse_env_file(content: str, where: str = "the file") -> dict[str, str]:
    """Return the variables of a file; a later line wins over an earlier one. Pure."""
    found: dict[str, str] = {}
    lines = content.replace("\\\n", "").splitlines()
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        name, equals, value = stripped.removeprefix("export ").partition("=")
        if not equals or not _NAME.fullmatch(name.strip()):
            raise ConfigurationError(
                problem=f"Line {number} of {where} is not NAME=value.",
                remedy="Write one variable a line.",
            )
        found[name.strip()] = _unquote(value.strip())
    return found


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return _ESCAPED.sub(r"\1", value[1:-1])
    return value

"""Loading of settings from the environment, a file and the command line."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

import structlog
from pydantic import ValidationError
from pydantic_settings import SettingsError

from refract.core.errors import ConfigurationError
from refract.core.settings.model import Settings
from refract.core.settings.sources import (
    describe_unknown_variable,
    find_unknown_variables,
    has_otel_sdk,
)


def load_settings(options: Mapping[str, str] | None = None, **given: object) -> Settings:
    """Load the settings, or raise ConfigurationError with a message that says how to correct them.

    `options` maps settings to command-line options with another name.
    """
    _check_file(os.environ.get("REFRACT_SETTINGS_FILE"))
    _check_environment()
    try:
        options_given = {name: value for name, value in given.items() if value is not None}
        return Settings(**options_given)  # type: ignore[arg-type]
    except SettingsError as exc:
        raise ConfigurationError(
            problem=f"{exc}:", remedy="write it as the list of settings says."
        ) from exc
    except ValidationError as exc:
        first = exc.errors()[0]
        name = "__".join(str(part) for part in first["loc"] if isinstance(part, str))
        message = first["msg"].removeprefix("Value error, ")
        if not name:
            raise ConfigurationError(
                problem="These settings do not fit together:", remedy=f"{message}."
            ) from exc
        variable = f"REFRACT_{name.upper()}"
        if given.get(name) is not None:
            variable = (options or {}).get(name, f"--{name.replace('_', '-')}")
        shown = "" if _is_secret_setting(name) else f' is "{first.get("input")}", which is invalid'
        raise ConfigurationError(
            problem=f"{variable}{shown or ' is invalid'}:", remedy=f"{message}."
        ) from exc


def check_extras(settings: Settings) -> None:
    """Raise `ConfigurationError` if a setting needs packages that are not installed."""
    if settings.otlp_url is not None and not has_otel_sdk():
        raise ConfigurationError(
            problem=f"REFRACT_OTLP_URL is {settings.otlp_url}, but OpenTelemetry is not installed.",
            remedy=(
                'Install the extra otel: pip install "refract-links[otel]". Or remove'
                " REFRACT_OTLP_URL."
            ),
        )


def _check_environment() -> None:
    """Refuse unknown variables: a misspelt one must not pass for an absent one."""
    unknown = find_unknown_variables(Settings, os.environ)
    if os.environ.get("REFRACT_UNKNOWN_SETTINGS", "").lower() == "warn":
        for name, nearest in unknown:
            structlog.get_logger("refract.settings").warning(
                "setting_unknown", variable=name, nearest=nearest
            )
    elif unknown:
        raise ConfigurationError(
            problem=" ".join(describe_unknown_variable(name, nearest) for name, nearest in unknown),
            remedy=(
                f"Correct or remove {'them' if len(unknown) > 1 else 'it'}, or set"
                " REFRACT_UNKNOWN_SETTINGS=warn."
            ),
        )


def _check_file(name: str | None) -> None:
    """Refuse a file that is missing, invalid or misspelt: it must not pass for an empty one."""
    if not name:
        return
    try:
        known = tomllib.loads(Path(name).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        why = getattr(exc, "strerror", None) or str(exc)
        raise ConfigurationError(
            problem=f"REFRACT_SETTINGS_FILE {name} cannot be read: {why}.",
            remedy="Write it as TOML.",
        ) from exc
    unknown = sorted(set(known) - set(Settings.model_fields))
    if unknown:
        raise ConfigurationError(
            problem=f'REFRACT_SETTINGS_FILE {name} names "{unknown[0]}".',
            remedy="There is no such setting.",
        )


def _is_secret_setting(name: str) -> bool:
    field = Settings.model_fields.get(name)
    return field is None or (
        "Secret" in str(field.annotation) or name.endswith("_url") or name == "issuers"
    )


def prepare_data_dir(path: Path) -> Path:
    """Create the data directory, and make an existing one private to its owner."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError
        _make_private(path)
    except (FileExistsError, NotADirectoryError) as exc:
        raise ConfigurationError(
            problem=f"The data directory {path} is a file, or lies below one.",
            remedy="Name a directory with --data-dir or REFRACT_DATA_DIR.",
        ) from exc
    except OSError as exc:
        raise ConfigurationError(
            problem=(
                f"The data directory {path} cannot be used"
                f" ({exc.strerror or 'no permission to read and write it'})."
            ),
            remedy=(
                "Give this user the right to write it, or name another with --data-dir or"
                " REFRACT_DATA_DIR."
            ),
        ) from exc
    return path


def _make_private(path: Path) -> None:
    mode = path.stat().st_mode
    if not mode & 0o077:
        return
    try:
        path.chmod(mode & 0o700)
    except PermissionError as exc:
        raise ConfigurationError(
            problem=(
                f"Others may enter the data directory {path.absolute()}, and it belongs to another"
                " user."
            ),
            remedy=(
                "Make it private (chmod 700), or name a directory below it, which is then made"
                f" private: --data-dir {path / 'refract'}."
            ),
        ) from exc

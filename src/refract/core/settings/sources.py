"""Sources of settings: the environment, secrets in files, foreign variables."""

import difflib
import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource

from refract.core.errors import ConfigurationError

PREFIX = "REFRACT_"
FILE_SUFFIX = "_FILE"
NON_SETTING_VARIABLES = frozenset({"REFRACT_ENV_FILE", "REFRACT_LANE"})
"""Variables of ours that are not settings."""
OTEL_TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
STANDARD_VARIABLES: Mapping[str, Sequence[str]] = {
    "otlp_url": (OTEL_TRACES_ENDPOINT, "OTEL_EXPORTER_OTLP_ENDPOINT")
}
"""Foreign variables that set one of our settings if ours is not set."""
_SERVICE_LINK = re.compile(r"REFRACT_(.*_)?(SERVICE|PORT)_.*")
_LINKED_PORT = re.compile(r"(tcp|udp|sctp)://")


class RefractEnvSource(EnvSettingsSource):
    """The environment, with secrets from `…_FILE` files, without links of container platforms."""

    def __call__(self) -> dict[str, Any]:
        """Return the values of set variables, without a look at the other settings."""
        prefix = PREFIX.lower()
        self._set_fields = {
            name.removeprefix(prefix).partition("__")[0]
            for name in self.env_vars
            if name.startswith(prefix)
        }
        return super().__call__() if self._set_fields else {}

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        if field_name not in self._set_fields:
            return None, field_name, True  # "complex", which ends the search for other names
        return super().get_field_value(field, field_name)

    def prepare_field_value(
        self, field_name: str, field: FieldInfo, value: Any, value_is_complex: bool
    ) -> Any:
        if field_name not in self._set_fields:
            return None
        return super().prepare_field_value(field_name, field, value, value_is_complex)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        found = dict(super()._load_env_vars())
        if _LINKED_PORT.match(found.get("refract_port") or ""):
            del found["refract_port"]
        if collector := _find_standard_collector(found):
            found.setdefault("refract_otlp_url", collector)
        for field in list_secret_fields(self.settings_cls):
            variable = f"{PREFIX}{field.upper()}"
            name = f"{variable}{FILE_SUFFIX}".lower()
            if file := found.pop(name, None):
                if found.get(variable.lower()) is not None:
                    raise ConfigurationError(
                        problem=f"{variable} and {variable}{FILE_SUFFIX} are both set.",
                        remedy="Keep one of them.",
                    )
                found[variable.lower()] = _read_secret(f"{variable}{FILE_SUFFIX}", Path(file))
        return found


def _find_standard_collector(environment: Mapping[str, str | None]) -> str | None:
    """Return the collector in the variables of OpenTelemetry.

    None if they disable it, or if the SDK is not installed.
    """
    if (
        environment.get("otel_traces_exporter", "otlp") != "otlp"
        or (environment.get("otel_sdk_disabled") or "").lower() == "true"
    ):
        return None
    named = (environment.get(name.lower()) for name in STANDARD_VARIABLES["otlp_url"])
    found = next((url for url in named if url), None)
    return found if found and has_otel_sdk() else None


def has_otel_sdk() -> bool:
    """Return whether the packages of the extra `otel` are installed."""
    return all(
        _is_installed(name)
        for name in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    )


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False


def list_secret_fields(settings: type[BaseSettings]) -> list[str]:
    """List the settings that are secret, or a URL with a secret in it."""
    return [
        name
        for name, field in settings.model_fields.items()
        if "SecretStr" in str(field.annotation) or name in ("database_url", "redis_url", "smtp_url")
    ]


def _read_secret(variable: str, path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(
            problem=(
                f"{variable} {path} cannot be read"
                f" ({getattr(exc, 'strerror', None) or 'it is not text'})."
            ),
            remedy="Give this user the right to read it, or name another file.",
        ) from exc


def is_service_link(name: str, value: str) -> bool:
    """Return whether a container platform set this variable.

    It does for a service that is named `refract` or `refract-…`.
    """
    return bool(_SERVICE_LINK.fullmatch(name)) or (
        name.endswith("_PORT") and bool(_LINKED_PORT.match(value))
    )


def find_unknown_variables(
    settings: type[BaseSettings], environment: Mapping[str, str]
) -> list[tuple[str, str | None]]:
    """List unknown variables under our prefix, each with the nearest setting. Pure."""
    known = {f"{PREFIX}{name.upper()}" for name in settings.model_fields} | NON_SETTING_VARIABLES
    known |= {f"{PREFIX}{name.upper()}{FILE_SUFFIX}" for name in list_secret_fields(settings)}
    nested = tuple(f"{name}__" for name in known)
    found = []
    for name, value in sorted(environment.items()):
        plain = name.upper()
        if (
            not plain.startswith(PREFIX)
            or plain in known
            or plain.startswith((f"{PREFIX}TEST_", *nested))
            or is_service_link(plain, value)
        ):
            continue
        near = difflib.get_close_matches(plain, sorted(known), 1, cutoff=0.6)
        found.append((name, near[0] if near else None))
    return found


def describe_unknown_variable(name: str, nearest: str | None) -> str:
    return f"{name} is not a setting." + (f" Did you mean {nearest}?" if nearest else "")


def find_setting_source(field: str, given: Mapping[str, Any], file: Mapping[str, Any]) -> str:
    """Return the source of a setting: an option, a variable, the settings file or the default."""
    variable = f"{PREFIX}{field.upper()}"
    if given.get(field) is not None:
        return f"--{field.replace('_', '-')}"
    names = {
        name.upper(): name
        for name, value in os.environ.items()
        if not is_service_link(name.upper(), value)
    }
    for candidate in (variable, f"{variable}{FILE_SUFFIX}", *STANDARD_VARIABLES.get(field, ())):
        if candidate in names:
            return names[candidate]
    if any(name.startswith(f"{variable}__") for name in names):
        return f"{variable}__…"
    if field in file:
        return "REFRACT_SETTINGS_FILE"
    return "default"

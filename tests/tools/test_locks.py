"""Locks (finding 18): `make run` installed pytest, playwright, mypy and 42 more.

Nothing at run time uses them.
"""

import re
import subprocess
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.sbom import bill

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def read_lock(name: str) -> list[Requirement]:
    """Return the pinned requirements of a lock, without their hashes."""
    lines = (ROOT / name).read_text().splitlines()
    return [Requirement(line.removesuffix(" \\")) for line in lines if re.match(r"[a-z0-9]", line)]


def names_here(lock: list[Requirement]) -> set[str]:
    return {
        canonicalize_name(pin.name) for pin in lock if pin.marker is None or pin.marker.evaluate()
    }


def resolve(wanted: list[str]) -> set[str]:
    """Return every installed package that these requirements need, by package metadata."""
    found: set[str] = set()
    todo = [Requirement(line) for line in wanted]
    seen: set[tuple[str, frozenset[str]]] = set()
    while todo:
        need = todo.pop()
        key = (canonicalize_name(need.name), frozenset(need.extras))
        if key in seen:
            continue
        seen.add(key)
        found.add(key[0])
        for line in distribution(need.name).requires or []:
            child = Requirement(line)
            if child.marker is None or any(
                child.marker.evaluate({"extra": extra}) for extra in ("", *need.extras)
            ):
                todo.append(child)
    return found


def test_make_run_may_install_what_the_program_needs_and_nothing_else() -> None:
    allowed = resolve(PROJECT["project"]["dependencies"])

    assert names_here(read_lock("requirements.lock")) == allowed
    tools = {
        canonicalize_name(Requirement(line).name) for line in PROJECT["dependency-groups"]["dev"]
    }
    assert tools & allowed == set()
    assert {
        "pytest",
        "mypy",
        "playwright",
        "ruff",
        "hatchling",
        "opentelemetry-sdk",
        "protobuf",
    } & allowed == set()


def test_the_development_lock_holds_the_runtime_lock_and_the_tools() -> None:
    runtime, development = read_lock("requirements.lock"), read_lock("requirements-dev.lock")

    assert {str(pin) for pin in runtime} <= {str(pin) for pin in development}
    extras = [
        line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra
    ]
    groups = PROJECT["dependency-groups"]
    assert names_here(development) == resolve(
        PROJECT["project"]["dependencies"] + extras + groups["dev"] + groups["build"]
    )


def test_the_build_lock_holds_the_compiler_of_the_lane_as_the_development_lock_has_it() -> None:
    build, development = read_lock("requirements-build.lock"), read_lock("requirements-dev.lock")

    assert names_here(build) == resolve(PROJECT["dependency-groups"]["build"])
    assert {str(pin) for pin in build} <= {str(pin) for pin in development}
    runtime = names_here(read_lock("requirements.lock"))
    assert names_here(build) & runtime == set()


def test_every_pin_has_a_hash() -> None:
    for name in ("requirements.lock", "requirements-dev.lock", "requirements-build.lock"):
        entries = re.split(r"\n(?=[a-z0-9])", (ROOT / name).read_text())
        assert [entry.split(" ")[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_only_the_targets_for_development_install_development_tools() -> None:
    def commands(target: str) -> str:
        made = ["make", "--dry-run", "VENV=no-such-environment", target]
        return subprocess.run(made, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    for target in ("run", "demo"):
        assert "tools.environment no-such-environment" in commands(target)
        assert "--dev" not in commands(target)
    for target in ("setup", "test", "check", "docs"):
        assert "tools.environment --dev no-such-environment" in commands(target)


def test_the_container_installs_the_runtime_lock() -> None:
    told = (ROOT / "deploy/Containerfile").read_text()

    assert "requirements.lock" in told
    assert "requirements-dev.lock" not in told
    assert "--dev" not in told
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "data"} <= set(ignored)


def test_the_bill_of_materials_names_every_pin_with_its_hashes() -> None:
    made = bill((ROOT / "requirements.lock").read_text(), "0.1.0")

    listed = {(part["name"], part["version"]) for part in made["components"]}
    assert listed == {
        (pin.name, str(pin.specifier).removeprefix("==")) for pin in read_lock("requirements.lock")
    }
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.5")
    assert all(part["hashes"] for part in made["components"])
    assert len({part["bom-ref"] for part in made["components"]}) == len(made["components"])

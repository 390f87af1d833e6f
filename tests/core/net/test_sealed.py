"""All tests that open sockets, run in a network namespace with only loopback."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from proofs.security import COUNTED

SEALED = Path(__file__).parent / "sealed"
FILES = sorted(path.name for path in SEALED.glob("test_*.py"))


def _namespaces_are_allowed() -> bool:
    try:
        return (
            subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode
            == 0
        )
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Run all of them by one process, and return the outcomes by file."""
    if not _namespaces_are_allowed():
        pytest.skip("absent service: unprivileged network namespaces (unshare -rn)")
    folder = tmp_path_factory.mktemp("sealed")
    alone = ["-p", "no:cacheprovider", "-p", "no:xdist"]  # pytest tidies what several runs share
    alone += ["--basetemp", str(folder / "inner"), f"--junit-xml={folder / 'record.xml'}"]
    command = ["unshare", "-rn", sys.executable, "-m", "pytest", str(SEALED), "-q", *alone]
    environment = {**os.environ, "REFRACT_TEST_SEALED": "1"}
    run = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=300, env=environment
    )
    assert (folder / "record.xml").exists(), run.stdout + run.stderr
    found: dict[str, list[str]] = {name: [] for name in FILES}
    # It was written by pytest just now.
    for case in ET.parse(folder / "record.xml").iter("testcase"):  # noqa: S314
        wrong = [child for child in case if child.tag in ("failure", "error", "skipped")]
        told = [f"{child.tag} {case.get('name')}: {child.text}" for child in wrong]
        found.setdefault(Path(case.get("file", "")).name, []).append("\n".join(told))
    return found


@pytest.mark.parametrize("name", FILES)
def test_inside_a_sealed_network(
    name: str, outcomes: dict[str, list[str]], record_property: Callable[[str, object], None]
) -> None:
    assert outcomes[name], f"no test of {name} has run, but {outcomes}"
    assert "".join(outcomes[name]) == ""
    record_property(COUNTED, len(outcomes[name]))

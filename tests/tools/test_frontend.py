"""Linting of scripts, stylesheets and templates."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.frontend import PINNED, PLATFORMS, ROOT


def test_biome_is_pinned_by_hash_for_every_platform_and_names_no_registry() -> None:
    wanted = json.loads((PINNED / "package.json").read_text())["optionalDependencies"]
    lock = (PINNED / "package-lock.json").read_text()
    locked = json.loads(lock)["packages"]

    assert set(wanted) == {f"@biomejs/{name}" for name in PLATFORMS.values()}
    for name, version in wanted.items():
        package = locked[f"node_modules/{name}"]
        assert package["version"] == version
        assert package["integrity"].startswith("sha512-")
    assert "://" not in lock


@pytest.mark.parametrize(
    ("template", "rule"),
    [
        ("<div><p>{{ name }}</p>\n", "H025"),
        ('<img src="/a.png" width="1" height="1">\n', "H013"),
        ('<a class="a" class="b" href="/x">x</a>\n', "H037"),
    ],
)
def test_mistakes_in_templates_are_found(tmp_path: Path, template: str, rule: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(template)
    options = ["--lint", "--configuration", str(ROOT / "pyproject.toml")]

    done = subprocess.run(
        [sys.executable, "-m", "djlint", *options, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, rule in done.stdout) == (1, True), done.stdout

"""Build the documentation as a website in dist/site: searchable, without a network or a server.

    make site

Each version has a directory of its own, with a menu of those that are there; the first page leads
to the newest. The sections of docs/README.md are those of the navigation.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools import packages
from tools.environment import provide_environment
from tools.release.version import read_version

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
TARGET = ROOT / "dist/site"
FOREIGN_WORKER = "https://unpkg.com/iframe-worker/shim"
WORKER = "assets/javascripts/iframe-worker.js"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^- \[(.+?)\]\(([^)]+)\)$", re.MULTILINE)
_LATE_IN_SEARCH = "---\nsearch:\n  boost: 0.3\n---\n"
_FIRST_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={version}/index.html">
<title>Refract</title>
<a href="{version}/index.html">Documentation of Refract {version}</a>
</html>
"""


def read_navigation(docs: Path) -> list[dict[str, Any]]:
    """Return the sections of docs/README.md with their pages, and every decision."""
    _, *parts = _SECTION.split((docs / "README.md").read_text())
    sections: list[dict[str, Any]] = [{"Overview": "README.md"}]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        pages = [
            {name: page} for name, page in _ENTRY.findall(text) if not page.startswith("decisions/")
        ]
        sections.append({title: pages})
    decisions = [
        f"decisions/{file.name}" for file in sorted((docs / "decisions").glob("[0-9]*.md"))
    ]
    return [*sections, {"Decisions": decisions}]


def write_configuration(directory: Path) -> Path:
    """Write what MkDocs reads, beside the copy of the pages."""
    docs = directory / "docs"
    configuration = {
        "site_name": "Refract",
        "docs_dir": str(docs),
        "nav": read_navigation(docs),
        "theme": {
            "name": "material",
            "font": False,  # those of the system: nothing is loaded from elsewhere
            "features": ["navigation.footer", "navigation.top", "content.code.copy", "toc.follow"],
            "palette": [
                _describe_palette("(prefers-color-scheme: light)", "default", "slate", "dark"),
                _describe_palette("(prefers-color-scheme: dark)", "slate", "default", "light"),
            ],
        },
        "plugins": ["search", "offline"],
        "extra": {"generator": False, "version": {"provider": "mike"}},
        "extra_css": ["site.css"],
        "extra_javascript": ["site.js"],
        "markdown_extensions": [
            {"toc": {"permalink": "#", "permalink_title": "Link to this section"}},
            "tables",
            "sane_lists",
            "pymdownx.superfences",
            {"pymdownx.highlight": {"anchor_linenums": False}},
        ],
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
            "links": {
                "not_found": "warn",
                "absolute_links": "warn",
                "unrecognized_links": "warn",
                "anchors": "warn",
            },
        },
        "strict": True,  # a warning is an error: no link leads nowhere
    }
    file = directory / "mkdocs.yml"
    file.write_text(json.dumps(configuration))  # JSON is YAML
    return file


def _describe_palette(media: str, scheme: str, other: str, other_name: str) -> dict[str, Any]:
    icon = "material/weather-night" if other == "slate" else "material/weather-sunny"
    return {
        "media": media,
        "scheme": scheme,
        "primary": "black" if scheme == "slate" else "white",
        "accent": "indigo",
        "toggle": {"icon": icon, "name": f"Switch to {other_name} mode"},
    }


def copy_pages(directory: Path) -> None:
    """Copy docs/ and the pages of the project that it links to."""
    docs = directory / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("*.toml"))
    for name in ("site.css", "site.js"):
        shutil.copyfile(HERE / name, docs / name)
    for page in docs.rglob("*.md"):
        text = page.read_text()
        linked = re.sub(
            r"\[([^\]]+)\]\((?:\.\./)+(?:[A-Z]+\.md|deploy/[^)]*|\.github/[^)]*)(?:#[^)]*)?\)",
            r"\1 (in the repository)",
            text,
        )
        is_decision = page.parent.name == "decisions"
        page.write_text(f"{_LATE_IN_SEARCH}{linked}" if is_decision else linked)


def build(target: Path) -> Path:
    """Build the pages of this version, and return their directory."""
    version = read_version(ROOT)
    python = provide_environment(Path(sys.prefix) / "site", HERE / "requirements.lock")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        copy_pages(directory)
        file = write_configuration(directory)
        built = directory / "site"
        subprocess.run(
            [python, "-m", "mkdocs", "--quiet", "build", "-f", file, "-d", built],
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
            check=True,
        )
        include_worker(built)
        shutil.rmtree(target / version, ignore_errors=True)
        shutil.copytree(built, target / version)
    write_versions(target)
    return target / version


def include_worker(built: Path) -> None:
    """Let pages load the worker of the search from beside them, instead of from another host."""
    modules = packages.install_locked(HERE, Path(sys.prefix) / "site-npm")
    shutil.copyfile(modules / "iframe-worker/shim/index.js", built / WORKER)
    for page in built.rglob("*.html"):
        above = "../" * (len(page.relative_to(built).parts) - 1)
        text = page.read_text()
        page.write_text(text.replace(FOREIGN_WORKER, f"{above}{WORKER}"))


def write_versions(target: Path) -> None:
    """Write the menu of versions, newest first, and the first page."""
    versions = sorted(
        (file.parent.name for file in target.glob("*/index.html")),
        key=lambda version: [int(number) for number in re.findall(r"\d+", version)],
        reverse=True,
    )
    listed = [{"version": version, "title": version, "aliases": []} for version in versions]
    (target / "versions.json").write_text(json.dumps(listed))
    (target / "index.html").write_text(_FIRST_PAGE.format(version=versions[0]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tools.site")
    parser.add_argument("--into", type=Path, default=TARGET, help="the directory of all versions")
    given = parser.parse_args()
    try:
        print(build(given.into) / "index.html")
    except subprocess.CalledProcessError as exc:
        return exc.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())

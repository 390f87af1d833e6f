"""Documentation that fails the build when it falls behind the code."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from tools.docs import REFERENCE, RELIABILITY, docstrings, error_classes, pages
from tools.figures import MEASURED, with_measured

ROOT = REFERENCE.parents[1]
ADVICE = "run `make docs` and commit what it writes"


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    return [
        path for name in listed.decode().split("\0") if name and (path := ROOT / name).is_file()
    ]


def _texts() -> list[tuple[Path, str]]:
    found = []
    for path in _tracked():
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue  # a picture
    return found


@pytest.mark.parametrize(
    "name", ["settings.md", "errors.md", "commands.md", "api.md", "figures.md"]
)
def test_a_reference_page_says_what_the_code_says(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == pages()[name], (
        f"docs/reference/{name} has fallen behind: {ADVICE}"
    )


def test_the_card_of_promises_quotes_the_saved_runs_and_every_promise_has_a_command() -> None:
    page = RELIABILITY.read_text(encoding="utf-8")
    assert page == with_measured(page), f"docs/reliability.md has fallen behind: {ADVICE}"
    measured = set(re.findall(r"^\| (\S+) \|", page.partition(MEASURED)[2], re.MULTILINE))
    assert measured >= {f"R{number}" for number in range(1, 14)}


def test_every_setting_has_a_sentence() -> None:
    meanings = docstrings(Settings) | docstrings(Issuer)
    for name in (*Settings.model_fields, *Issuer.model_fields):
        assert meanings.get(name, "").endswith("."), (
            f"The setting {name} needs a docstring below it that ends with a full stop"
        )


def test_every_error_has_a_sentence_of_its_own_and_a_code_nobody_else_has() -> None:
    classes = error_classes()
    for one in classes:
        assert "__doc__" in vars(one), f"{one.__name__} needs a docstring: it is what people read"
        assert one.__doc__, one.__name__
        assert one.template[-1] in ".!?}", (
            f"{one.__name__}: the docstring is a sentence and ends like one"
        )
    repeated = [code for code, times in Counter(one.code for one in classes).items() if times > 1]
    assert not repeated, f"two errors share a code, so programs cannot tell them apart: {repeated}"


def test_every_relative_link_in_a_page_leads_somewhere() -> None:
    broken = []
    for path in (path for path in _tracked() if path.suffix == ".md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            file, _, _ = target.partition("#")
            if file and not re.match(r"[a-z]+:", target) and not (path.parent / file).exists():
                broken.append(f"{path.relative_to(ROOT)} → {target}")
    assert not broken, broken


def test_no_tracked_file_names_a_registry_or_a_place_on_somebodys_machine() -> None:
    words = [
        "pypi" + r"\.",
        "python" + "hosted",
        "npm" + r"js\.",
        "arti" + "factory",
        "--index" + "-url",
    ]  # apart, or this file would match itself
    place = (
        r"(?<![\w.~/-])/(?:"
        + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me", "Us" + "ers"])
        + r")/\w"
    )
    forbidden = re.compile("|".join([*words, place]))
    hits = [
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for path, text in _texts()
        for hit in forbidden.finditer(text)
    ]
    assert not hits, hits


def test_every_make_command_in_a_page_exists() -> None:
    targets = set(
        re.findall(
            r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    for path in (path for path in _tracked() if path.suffix == ".md"):
        text = path.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE))
        assert named <= targets, (
            f"{path.relative_to(ROOT)} names make targets that are not there:"
            f" {sorted(named - targets)}"
        )


def test_every_refract_command_in_a_page_exists() -> None:
    known = set(re.findall(r"^## (refract [a-z -]+)$", pages()["commands.md"], re.MULTILINE))
    for path in (path for path in _tracked() if path.suffix == ".md" and path.parent != REFERENCE):
        for line in re.findall(
            r"(?:^|`)(refract [a-z][a-z-]*(?: [a-z]+){0,2})",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        ):
            assert any(line == one or line.startswith(f"{one} ") for one in known), (
                f"{path.relative_to(ROOT)}: {line}"
            )

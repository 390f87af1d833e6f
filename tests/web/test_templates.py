"""Templates live with their feature and follow the ladder of imports."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from jinja2 import Environment

import refract
from refract.app import TEMPLATES
from refract.web.templating import TemplateBytecodeCache, TemplateRenderer, template_loader

ROOT = Path(refract.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
LADDER = next(
    contract
    for contract in PROJECT["tool"]["importlinter"]["contracts"]
    if contract["id"] == "ladder"
)["layers"]
RUNGS = {
    feature: height
    for height, rung in enumerate(reversed(LADDER))
    for feature in re.findall(r"\((\w+)\)", rung)
}
REFERENCE = re.compile(r"""{%-?\s*(?:extends|from|include|import)\s+(.+?)(?:\simport\b|-?%})""")


def test_every_feature_with_templates_is_registered() -> None:
    assert {folder.parent.name for folder in ROOT.glob("*/templates")} - {"web"} == set(TEMPLATES)


def test_every_template_compiles() -> None:
    pages = TemplateRenderer("https://go.example.com", *TEMPLATES)
    pages.compile_templates()
    assert set(pages.environment.list_templates()) >= {
        "frame.html",
        "components/button.html",
        "links/detail.html",
        "lists/public.html",
    }


def _compiled(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Load a template with the cache of `directory`; return the names of compiled ones."""
    compiled: list[str | None] = []
    environment = Environment(
        loader=template_loader(*TEMPLATES),
        autoescape=True,
        bytecode_cache=TemplateBytecodeCache(directory),
        extensions=["jinja2.ext.i18n"],
    )
    compile_source = environment.compile

    def compile_and_note(source: str, name: str | None, filename: str | None) -> object:
        compiled.append(name)
        return compile_source(source, name, filename)

    monkeypatch.setattr(environment, "compile", compile_and_note)
    environment.get_template("components/button.html")
    return compiled


def test_a_template_is_compiled_once_and_again_when_its_file_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert _compiled(tmp_path, monkeypatch) == ["components/button.html"]
    assert _compiled(tmp_path, monkeypatch) == []
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:40])
    assert _compiled(tmp_path, monkeypatch) == ["components/button.html"]


def test_templates_are_compiled_where_nothing_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    absent = tmp_path / "absent"
    assert _compiled(absent, monkeypatch) == ["components/button.html"]
    assert _compiled(absent, monkeypatch) == ["components/button.html"]


def test_templates_use_only_templates_of_lower_features() -> None:
    environment = TemplateRenderer("https://go.example.com", *TEMPLATES).environment
    for name in environment.list_templates():
        source = (
            environment.loader.get_source(environment, name) if environment.loader else ("",)
        )[0]
        for used in [
            quoted
            for found in REFERENCE.findall(source)
            for quoted in re.findall(r'"([^"]+\.html)"', found)
        ]:
            environment.get_template(used)
            assert (
                _feature(used) == _feature(name) or RUNGS[_feature(used)] < RUNGS[_feature(name)]
            ), f"{name} uses {used}"


def _feature(template: str) -> str:
    """Return the feature that a template's name begins with; the shared ones belong to `web`."""
    first = template.split("/", maxsplit=1)[0]
    return first if first in TEMPLATES else "web"

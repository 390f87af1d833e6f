"""Templates live with their feature and follow the ladder of imports."""

import re
import tomllib
from pathlib import Path

import refract
from refract.app import TEMPLATES
from refract.web.templating import TemplateRenderer

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

"""Compiled templates: the same output as Jinja's own code."""

from typing import Any

import pytest
from jinja2 import Environment, StrictUndefined, UndefinedError
from markupsafe import Markup

from refract.core.phrases import Phrase
from refract.web import template_compiler
from refract.web.i18n import LANGUAGES, use_locale
from refract.web.template_compiler import TemplateEnvironment
from refract.web.templating import install_i18n

_SAMPLES: list[tuple[str, dict[str, Any]]] = [
    ("{{ a }}|{{ b }}|{{ c }}|{{ d }}", {"a": "<&>", "b": Markup("<b>"), "c": 1.5, "d": None}),
    (
        "{{ a.items()|list }}|{{ a.name }}|{{ a['items']|length }}",
        {"a": {"items": [1], "name": "<"}},
    ),
    ("{% macro m(a, b=2) %}{{ a }}<i>{{ b }}</i>{% endmacro %}{{ m('<') }}{{ m('a', b='>') }}", {}),
    (
        "{% macro m(x) %}<p>{{ x }}{{ caller() }}</p>{% endmacro %}{% call m(1) %}<b>{% endcall %}",
        {},
    ),
    ("{% for x in a %}{{ loop.cycle('<', '>') }}{{ x.upper() }}{% endfor %}", {"a": ["b", "c"]}),
    ("{{ f(*a, **b) }}", {"f": "{}{x}".format, "a": ["<"], "b": {"x": ">"}}),
    ("{{ '<' ~ a }}|{{ a|upper|safe }}|{{ ('<b>'|safe) ~ a }}", {"a": "<x>"}),
    ("{% autoescape false %}{{ a }}{% endautoescape %}", {"a": "<x>"}),
    ("{{ _('Copy') }}|{{ phrase }}", {"phrase": Phrase("per hour")}),
]


def _create(kind: type[Environment]) -> Environment:
    environment = kind(autoescape=True, undefined=StrictUndefined)
    install_i18n(environment)
    return environment


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("source", "context"), _SAMPLES)
def test_the_output_is_that_of_jinja(source: str, context: dict[str, Any], language: str) -> None:
    with use_locale(LANGUAGES[language]):
        ours = _create(TemplateEnvironment).from_string(source).render(**context)
        assert ours == _create(Environment).from_string(source).render(**context)


def test_what_is_not_defined_is_an_error() -> None:
    for source in ("{{ missing }}", "{{ missing() }}", "{{ a.missing }}"):
        with pytest.raises(UndefinedError):
            _create(TemplateEnvironment).from_string(source).render(a={})


def test_a_remembered_macro_renders_once_per_arguments_and_language() -> None:
    calls: list[str] = []
    environment = _create(TemplateEnvironment)
    environment.globals["note"] = calls.append
    template = environment.from_string(
        "{% macro draw(x) %}{% set noted = note(x) %}<b>{{ x }}{{ _('Copy') }}</b>{% endmacro %}"
        "{% set shown = remember(draw) %}{{ shown(a) }}{{ shown(a) }}{{ shown(b) }}"
    )

    english = template.render(a="<", b=Markup("<"))
    with use_locale(LANGUAGES["de"]):
        german = template.render(a="<", b=Markup("<"))

    assert english == "<b>&lt;Copy</b><b>&lt;Copy</b><b><Copy</b>"
    assert german == english.replace("Copy", "Kopieren")
    assert calls == ["<", "<", "<", "<"]


def test_a_remembered_row_renders_once_per_content_and_language() -> None:
    calls: list[str] = []
    environment = _create(TemplateEnvironment)
    environment.globals["note"] = calls.append
    template = environment.from_string(
        "{% macro draw(row) %}{% set noted = note(row.x) %}<b>{{ row.x }}{{ row.tags|length }}"
        "{{ _('Copy') }}</b>{% endmacro %}"
        "{% set shown = remember_rows(draw) %}{% for row in rows %}{{ shown(row) }}{% endfor %}"
    )
    rows = [
        {"x": "<", "tags": ["a"]},
        {"x": "<", "tags": ["a"]},
        {"x": Markup("<"), "tags": ["a"]},
        {"x": "<", "tags": []},
    ]

    english = template.render(rows=rows)
    with use_locale(LANGUAGES["de"]):
        german = template.render(rows=rows)

    assert english == "<b>&lt;1Copy</b><b>&lt;1Copy</b><b><1Copy</b><b>&lt;0Copy</b>"
    assert german == english.replace("Copy", "Kopieren")
    assert calls == ["<"] * 6


def test_remembered_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_compiler, "MAX_REMEMBERED_ROWS", 2)
    drawn: list[int] = []

    def draw(row: dict[str, int]) -> Markup:
        drawn.append(row["n"])
        return Markup("drawn")

    shown = template_compiler.remember_rows(draw)

    for number in (1, 2, 1, 3, 1):
        shown({"n": number})

    assert drawn == [1, 2, 3, 1]

"""Compilation of templates to faster code than Jinja's own, with the same output.

Jinja looks at every callable before every call, in case it wants the context, and calls two
functions for every value that is written. Nothing in our templates wants the context, and almost
all values are plain text. Together that was half of the time to render a page.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache
from keyword import iskeyword
from typing import Any

import markupsafe
from jinja2 import Environment, nodes
from jinja2.compiler import CodeGenerator, Frame
from markupsafe import Markup, escape

from refract.core.phrases import Phrase
from refract.web.formats import current_zone
from refract.web.i18n import current_locale, translate

MAX_REMEMBERED = 2_048
"""Results that a remembered macro keeps."""
MAX_REMEMBERED_ROWS = 500
"""The same for rows, of about 2 kB."""
_DICT_ATTRIBUTES = frozenset(dir(dict))
_escape_text: Callable[[str], str] = vars(markupsafe)["_escape_inner"]
"""Escape without the object that `escape` wraps around the result: who joins the parts does."""


def write_value(value: Any) -> str:
    """Return a value as HTML: a phrase in the language of the page, and everything escaped."""
    kind = type(value)
    if kind is Markup:
        return value  # type: ignore[no-any-return]
    if kind is str:
        return _escape_text(value)
    return escape(translate(value) if isinstance(value, Phrase) else value)


def remember(macro: Callable[..., Markup]) -> Callable[..., Markup]:
    """Return a macro that renders the same arguments once per language.

    For small parts of which a page has dozens, like icons. Arguments must be hashable.
    """

    @lru_cache(maxsize=MAX_REMEMBERED, typed=True)
    def render(_language: str, *arguments: Any, **options: Any) -> Markup:
        return macro(*arguments, **options)

    def get(*arguments: Any, **options: Any) -> Markup:
        return render(current_locale().tag, *arguments, **options)

    return get


def remember_rows(macro: Callable[..., Markup]) -> Callable[..., Markup]:
    """Return the same for arguments that are dicts and lists, like the rows of a table.

    People open a list again and again, and most of its rows are as they were.
    """
    known: dict[Hashable, Markup] = {}

    def get(*arguments: Any, **options: Any) -> Markup:
        key = (current_locale().tag, str(current_zone()), _freeze(arguments), _freeze(options))
        found = known.get(key)
        if found is None:
            if len(known) >= MAX_REMEMBERED_ROWS:
                known.clear()
            found = known[key] = macro(*arguments, **options)
        return found

    return get


def _freeze(value: Any) -> Hashable:
    """Return a key that differs wherever the output may: text and markup are equal otherwise."""
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return kind, *value, *map(_freeze, value.values())
    if kind is list or kind is tuple:
        return kind, *map(_freeze, value)
    return kind, value, getattr(value, "tzinfo", None)


class _TemplateCodeGenerator(CodeGenerator):
    """Writes direct calls, and one call for each value that is written."""

    def visit_Call(  # noqa: N802 - Jinja's name
        self, node: nodes.Call, frame: Frame, forward_caller: bool = False
    ) -> None:
        names = [argument.key for argument in node.kwargs]
        if node.dyn_args or node.dyn_kwargs or any(map(iskeyword, names)):
            super().visit_Call(node, frame, forward_caller=forward_caller)
            return
        self.visit(node.node, frame)
        self.write("(")
        for argument in (*node.args, *node.kwargs):
            self.visit(argument, frame)
            self.write(", ")
        self.write("caller=caller)" if forward_caller else ")")

    def _output_child_pre(
        self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo
    ) -> None:
        if frame.eval_ctx.volatile or not frame.eval_ctx.autoescape:
            super()._output_child_pre(node, frame, finalize)
        else:
            self.write("environment.write_value(")

    def _output_child_post(
        self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo
    ) -> None:
        if frame.eval_ctx.volatile or not frame.eval_ctx.autoescape:
            super()._output_child_post(node, frame, finalize)
        else:
            self.write(")")


class TemplateEnvironment(Environment):
    """An environment of autoescaped templates, whose callables never want the context."""

    code_generator_class = _TemplateCodeGenerator
    write_value = staticmethod(write_value)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute or a member. Rows are mostly dicts, which Jinja tries last."""
        if type(obj) is dict and attribute in obj and attribute not in _DICT_ATTRIBUTES:
            return obj[attribute]
        return super().getattr(obj, attribute)

"""The slow path of a process that has no web app: the same answers, in the same frame."""

from collections.abc import Callable, Sequence

from starlette.applications import Starlette

from refract.core.runtime import Runtime
from refract.identity.usage import KeyUsage
from refract.redirect.engine import Engine
from refract.redirect.follow import Follow
from refract.redirect.hooks import ListPage, Surface
from refract.redirect.surface import WebSurface
from refract.web.render import Pages


def follow_alone(
    rt: Runtime, engine: Engine, lists: Callable[[Surface], ListPage] | None = None, templates: Sequence[str] = ("redirect",)
) -> Follow:
    """Keys that open secure links are counted against their limit here; a role that may only read does not write their use down."""
    frame = Starlette()
    frame.state.rt = rt
    frame.state.pages = Pages(rt.settings.public_url, *templates)
    frame.state.areas = []
    frame.state.key_usage = rt.part(KeyUsage)
    surface = WebSurface(rt, frame)
    return Follow(rt, engine.tiers, surface, engine.hooks(lists(surface) if lists else None))

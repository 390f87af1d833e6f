"""The calls about the library and its tags."""

from refract.library.api import tags

ROUTERS = (tags.router,)

__all__ = ["ROUTERS"]

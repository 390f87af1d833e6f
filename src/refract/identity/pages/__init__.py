"""Sign-in, sign-out, and the settings pages."""

from refract.identity.pages import settings, signin
from refract.identity.pages.budget import Budget

ROUTERS = (signin.router, settings.router)

__all__ = ["ROUTERS", "Budget"]

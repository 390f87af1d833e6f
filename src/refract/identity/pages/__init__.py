"""Sign-in, sign-out, and the settings pages."""

from refract.identity.pages import settings, sign_in

ROUTERS = (sign_in.router, settings.router)

__all__ = ["ROUTERS"]

"""Sign-in, sign-out, and the settings pages."""

from refract.identity.pages import settings, signin

ROUTERS = (signin.router, settings.router)

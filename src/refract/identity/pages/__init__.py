"""Sign-in, sign-out, invitations, and the settings pages."""

from refract.identity.pages import invitation, settings, sign_in

ROUTERS = (sign_in.router, invitation.router, settings.router)

__all__ = ["ROUTERS"]

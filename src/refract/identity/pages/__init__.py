"""Sign-in, sign-out, and the settings pages."""

from refract.identity.pages import settings, signin
from refract.identity.pages.budget import Budget
from refract.web.toolkit import page_router

router = page_router()
router.include_router(signin.router)
router.include_router(settings.router)

__all__ = ["Budget", "router"]

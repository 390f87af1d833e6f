"""The operators' screens."""

from refract.admin.pages import operations, people
from refract.web.toolkit import page_router

router = page_router()
router.include_router(operations.router)
router.include_router(people.router)

"""Pages of teams."""

from refract.teams.pages import detail, index, keys

ROUTERS = (index.router, keys.router, detail.router)

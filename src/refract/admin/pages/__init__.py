"""Admin pages."""

from refract.admin.pages import audit, domains, invitations, lists, operations, people, reports

ROUTERS = (
    operations.router,
    invitations.router,  # before people, whose steps have the form of its paths
    people.router,
    lists.router,
    domains.router,
    reports.router,
    audit.router,
)

"""Everything that features give to the program and to each other: jobs, hooks and singletons.

The web app, the worker and the command line read it. Each function imports what it names when it is
called, so that a role loads only what it runs.
"""
# ruff: noqa: PLC0415 - see above

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refract.core.runtime import Runtime
    from refract.domains.hooks import DomainHooks
    from refract.identity.pages.sign_in import SignInHook
    from refract.identity.personal_data import PersonalDataHook
    from refract.jobs.handlers import JobFunction
    from refract.jobs.schedule import PeriodicJob
    from refract.jobs.worker import JobWorker
    from refract.redirect.engine import RedirectEngine
    from refract.redirect.hooks import ListHandler, RedirectFrontend
    from refract.teams.hooks import TeamHook


# Jobs.


def list_jobs() -> "tuple[list[JobFunction[Any]], list[PeriodicJob]]":
    """Return the handlers of all background work, and the periodic jobs with their times."""
    from refract.admin import jobs as admin_jobs
    from refract.clicks import jobs as click_jobs
    from refract.clicks.archive import jobs as archive_jobs
    from refract.identity import jobs as identity_jobs
    from refract.imports import jobs as import_jobs
    from refract.jobs import cleanup
    from refract.library import jobs as library_jobs
    from refract.library.imports import jobs as library_import_jobs
    from refract.library.search import jobs as search_jobs
    from refract.links import jobs as link_jobs
    from refract.links.imports import jobs as link_import_jobs
    from refract.lists import jobs as list_jobs
    from refract.redirect import jobs as redirect_jobs
    from refract.reports import jobs as report_jobs

    features = (
        cleanup,
        identity_jobs,
        link_jobs,
        list_jobs,
        redirect_jobs,
        click_jobs,
        archive_jobs,
        library_jobs,
        search_jobs,
        import_jobs,
        library_import_jobs,
        link_import_jobs,
        report_jobs,
    )
    handlers = [handler for feature in features for handler in feature.HANDLERS]
    handlers += admin_jobs.make_handlers(list_personal_data_hooks())
    return handlers, [job for feature in features for job in feature.PERIODIC]


def build_worker(rt: "Runtime") -> "JobWorker":
    """Return the worker of this process, which runs every job."""
    from refract.jobs.handlers import HandlerRegistry
    from refract.jobs.worker import JobWorker

    handlers, periodic = list_jobs()
    return JobWorker(rt, HandlerRegistry.from_functions(handlers), periodic=periodic)


# Hooks: what a feature needs of features above it.


def list_personal_data_hooks() -> "Sequence[PersonalDataHook]":
    """Return every feature's share in a user's data, for its export and for account deletion."""
    from refract.clicks import personal_data as click_data
    from refract.library import personal_data as library_data
    from refract.links import personal_data as link_data
    from refract.lists import personal_data as list_data
    from refract.reports import personal_data as report_data
    from refract.teams import personal_data as team_data

    return (
        report_data.PERSONAL_DATA_HOOK,
        team_data.PERSONAL_DATA_HOOK,  # before links, which are handed over to those who are left
        link_data.PERSONAL_DATA_HOOK,
        link_data.INVITATION_DATA_HOOK,
        link_data.UTM_TEMPLATE_DATA_HOOK,
        click_data.PERSONAL_DATA_HOOK,
        list_data.PERSONAL_DATA_HOOK,
        library_data.PERSONAL_DATA,
    )


def list_team_hooks() -> "Sequence[TeamHook]":
    """Return every feature's share in changes of teams."""
    from refract.domains import service as domains
    from refract.links.campaigns import service as utm_templates
    from refract.links.service import teams as link_teams
    from refract.lists.service import teams as list_teams

    return (
        link_teams.TEAM_HOOK,
        utm_templates.TEAM_HOOK,
        list_teams.TEAM_HOOK,
        domains.TEAM_HOOK,
    )


def build_domain_hooks() -> "DomainHooks":
    """Return what other features do when domains change."""
    from refract.domains.hooks import DomainHooks
    from refract.links.feed import publish_domain_change
    from refract.links.safety.fallbacks import check_fallback

    return DomainHooks(check_fallback, publish_domain_change)


def list_sign_in_hooks() -> "Sequence[SignInHook]":
    """Return what features do with the claims of a user who signs in with a provider."""
    from refract.teams.groups import GroupFollower

    return (GroupFollower(list_team_hooks()),)


def build_page_hooks() -> dict[str, object]:
    """Return what pages and the API find in `app.state`, by name."""
    from refract.clicks.ingest.agents import describe_browsers
    from refract.clicks.stats import analytics_pages
    from refract.clicks.stats import pages as stats_pages
    from refract.identity.dependencies import authorize_before_body
    from refract.identity.pages.settings import BrowserDescriber, BudgetLoader
    from refract.library import pages as library_pages
    from refract.library.queries import items as library_items
    from refract.links.pages.link_rows import LinkStatsSource, SavedItemFinder
    from refract.links.pages.rule_tab import RuleExplainer
    from refract.redirect import simulation

    load_budget: BudgetLoader = library_pages.load_quota_summary
    describe: BrowserDescriber = describe_browsers
    find_saved_items: SavedItemFinder = library_items.find_saved_items
    explain_link: RuleExplainer = simulation.explain_link
    return {
        "admit": authorize_before_body,
        "link_stats": LinkStatsSource(
            analytics_pages.build_link_analytics,
            stats_pages.load_sparklines,
            stats_pages.count_rules,
        ),
        "load_budget": load_budget,
        "describe_browsers": describe,
        "find_saved_items": find_saved_items,
        "explain_link": explain_link,
        "parts": list_personal_data_hooks(),
        "team_hooks": list_team_hooks(),
        "domain_hooks": build_domain_hooks(),
        "sign_in_hooks": list_sign_in_hooks(),
    }


def build_list_handler(
    rt: "Runtime", engine: "RedirectEngine", frontend: "RedirectFrontend"
) -> "ListHandler":
    """Return the handler of lists' names, for every role that redirects."""
    from refract.lists.redirects import PublicListHandler

    return PublicListHandler(rt, engine, frontend)


# Singletons: what a runtime makes once and keeps (`rt.singleton(...)`).


def list_singletons() -> "tuple[Callable[[Runtime], object], ...]":
    """Return everything that a runtime keeps. Each is made when first used and closed with it."""
    from refract.clicks.archive.processes import ArchiveProcesses
    from refract.clicks.stats.export import ExportSlots
    from refract.clicks.stats.live import LiveTotalsWatcher
    from refract.core.extraction.pool import ExtractionPool
    from refract.core.otel import Traces
    from refract.core.redis import create_redis
    from refract.core.threads import WorkThreadPool
    from refract.domains.api import TlsCheckLimit
    from refract.domains.table import DomainTable
    from refract.home.omnibox import SuggestLimit
    from refract.identity.concurrency_limits import UserConcurrencyLimits
    from refract.identity.key_usage import KeyUsageTracker
    from refract.identity.oidc.providers import OidcProviders
    from refract.identity.pages.sign_in import SignInLimit
    from refract.identity.revocation import RevocationWatcher
    from refract.library.enrichment.model import ModelClient
    from refract.library.enrichment.page_fetcher import ArticleFetcher
    from refract.limits import shared_limits as shared
    from refract.limits.network_shares import NetworkShares
    from refract.links.imports.remote import build_source_fetcher
    from refract.links.pages.preview import DestinationPreviewer
    from refract.links.safety.blocked_domains import BlockedDomainCache
    from refract.links.safety.service import DestinationChecker
    from refract.lists.entry_jobs import build_fetcher
    from refract.redirect.visitors import VisitorFacts
    from refract.web.hosts import create_accepted_hosts
    from refract.web.networks import create_trusted_proxies
    from refract.web.render_cache import RenderCache
    from refract.web.routing import create_anonymous_body_limit

    process = (create_redis, DomainTable, Traces, WorkThreadPool, ExtractionPool, ArchiveProcesses)
    requests = (create_accepted_hosts, create_trusted_proxies, NetworkShares, RenderCache)
    limits = (SignInLimit, SuggestLimit, TlsCheckLimit, shared.GuessLimit, shared.WrongGuessLimit)
    networks = (shared.AddressLimit, shared.MissLimit, shared.RenderLimit)
    slots = (create_anonymous_body_limit, ExportSlots, VisitorFacts)
    users = (KeyUsageTracker, UserConcurrencyLimits, OidcProviders, RevocationWatcher)
    links = (DestinationChecker, DestinationPreviewer, BlockedDomainCache, LiveTotalsWatcher)
    pages = (build_fetcher, build_source_fetcher, ArticleFetcher, ModelClient)
    return *process, *requests, *limits, *networks, *slots, *users, *links, *pages

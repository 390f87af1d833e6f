"""Queries about links."""

from refract.links.queries.browse import LinkFilter, OwnerFilter, load_links_page
from refract.links.queries.bulk import (
    ExistingLink,
    find_existing_links,
    find_purged_ids,
    list_links_after,
)
from refract.links.queries.cards import LinkCard, load_card, load_cards
from refract.links.queries.facets import (
    MAX_COUNTED,
    LinkCounts,
    LinkTagCount,
    count_links,
    count_states,
    load_tag_colors,
)
from refract.links.queries.invitations import (
    count_invitations,
    list_link_invitations,
    load_invitation,
    load_invitations_page,
)
from refract.links.queries.links import (
    NameResolution,
    find_link,
    find_live_links,
    get_version,
    has_visible_link,
    is_in_state,
    is_owned_or_shared,
    is_visible_tag,
    list_owners,
    list_shares,
    list_versions,
    resolve_name,
    suggest_names,
    suggest_other_domains,
    suggest_similar_names,
    view_link,
)
from refract.links.queries.ordering import CLICK_SORTS, LinkSort

__all__ = [
    "CLICK_SORTS",
    "MAX_COUNTED",
    "ExistingLink",
    "LinkCard",
    "LinkCounts",
    "LinkFilter",
    "LinkSort",
    "LinkTagCount",
    "NameResolution",
    "OwnerFilter",
    "count_invitations",
    "count_links",
    "count_states",
    "find_existing_links",
    "find_link",
    "find_live_links",
    "find_purged_ids",
    "get_version",
    "has_visible_link",
    "is_in_state",
    "is_owned_or_shared",
    "is_visible_tag",
    "list_link_invitations",
    "list_links_after",
    "list_owners",
    "list_shares",
    "list_versions",
    "load_card",
    "load_cards",
    "load_invitation",
    "load_invitations_page",
    "load_links_page",
    "load_tag_colors",
    "resolve_name",
    "suggest_names",
    "suggest_other_domains",
    "suggest_similar_names",
    "view_link",
]

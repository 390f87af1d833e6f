"""Questions about links."""

from refract.links.queries.cards import Card, card_of, cards_of
from refract.links.queries.facets import MOST_COUNTED, TagCount, count_states, count_tags, tag_colors
from refract.links.queries.find import (
    Resolution,
    any_link,
    did_you_mean,
    find_link,
    history_of,
    in_state,
    live_links_to,
    owners_of,
    resolve,
    shares_of,
    suggest_names,
    version_of,
    view_link,
    visible_tags,
)
from refract.links.queries.invitations import count_invitations, invitation_facts, invitations_of, page_of_invitations
from refract.links.queries.pages import CLICK_SORTS, LinkQuestion, OwnerFilter, Sort, page_of_links
from refract.links.queries.stream import Known, buried, known_links, links_after

__all__ = [
    "CLICK_SORTS",
    "MOST_COUNTED",
    "Card",
    "Known",
    "LinkQuestion",
    "OwnerFilter",
    "Resolution",
    "Sort",
    "TagCount",
    "any_link",
    "buried",
    "card_of",
    "cards_of",
    "count_invitations",
    "count_states",
    "count_tags",
    "did_you_mean",
    "find_link",
    "history_of",
    "in_state",
    "invitation_facts",
    "invitations_of",
    "known_links",
    "links_after",
    "live_links_to",
    "owners_of",
    "page_of_invitations",
    "page_of_links",
    "resolve",
    "shares_of",
    "suggest_names",
    "tag_colors",
    "version_of",
    "view_link",
    "visible_tags",
]

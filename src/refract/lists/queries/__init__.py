"""Queries of lists. A list is read with two of them, however many entries it has."""

from refract.lists.queries.browse import (
    AllListsFilter,
    ListRow,
    list_claimable,
    list_hosts,
    list_recently_deleted,
    load_all_lists_page,
    load_lists_page,
)
from refract.lists.queries.entries import (
    count_entries,
    find_due_entries,
    find_duplicates,
    find_entry,
    find_pending_entry,
    list_entries,
)
from refract.lists.queries.lists import (
    IS_PUBLISHED,
    NOT_DELETED,
    PublishedEdition,
    find_abandoned_drafts,
    find_long_deleted,
    find_open_edition,
    find_published_edition,
    find_published_list,
    find_removed_list,
    list_actions,
    view_list,
)

__all__ = [
    "IS_PUBLISHED",
    "NOT_DELETED",
    "AllListsFilter",
    "ListRow",
    "PublishedEdition",
    "count_entries",
    "find_abandoned_drafts",
    "find_due_entries",
    "find_duplicates",
    "find_entry",
    "find_long_deleted",
    "find_open_edition",
    "find_pending_entry",
    "find_published_edition",
    "find_published_list",
    "find_removed_list",
    "list_actions",
    "list_claimable",
    "list_entries",
    "list_hosts",
    "list_recently_deleted",
    "load_all_lists_page",
    "load_lists_page",
    "view_list",
]

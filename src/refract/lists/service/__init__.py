"""Changes of lists. The caller opens the transaction and has checked URLs before."""

from refract.lists.service.deletion import (
    RETENTION,
    UNDO_WINDOW,
    clear_slugs,
    delete_list,
    erase_lists,
    erase_user_lists,
    purge_actions,
    purge_old_lists,
    release_name,
    undo_delete,
)
from refract.lists.service.drafts import (
    claim_lists,
    create_list,
    edit_list,
    get_draft,
    lock_draft,
    lock_list,
    set_draft_domain,
    set_draft_slug,
)
from refract.lists.service.entries import (
    CheckedAddress,
    add_entries,
    edit_entry,
    purge_removed_entries,
    refetch_entry,
    remove_entry,
    restore_entry,
)
from refract.lists.service.metadata import fail_stale_entries, fill_entry, record_checks
from refract.lists.service.order import arrange_list, move_item, reorder_entries
from refract.lists.service.publication import create_edition, publish_list
from refract.lists.service.sections import add_section, edit_section, remove_section
from refract.lists.service.teams import hand_over_lists, transfer_list

__all__ = [
    "RETENTION",
    "UNDO_WINDOW",
    "CheckedAddress",
    "add_entries",
    "add_section",
    "arrange_list",
    "claim_lists",
    "clear_slugs",
    "create_edition",
    "create_list",
    "delete_list",
    "edit_entry",
    "edit_list",
    "edit_section",
    "erase_lists",
    "erase_user_lists",
    "fail_stale_entries",
    "fill_entry",
    "get_draft",
    "hand_over_lists",
    "lock_draft",
    "lock_list",
    "move_item",
    "publish_list",
    "purge_actions",
    "purge_old_lists",
    "purge_removed_entries",
    "record_checks",
    "refetch_entry",
    "release_name",
    "remove_entry",
    "remove_section",
    "reorder_entries",
    "restore_entry",
    "set_draft_domain",
    "set_draft_slug",
    "transfer_list",
    "undo_delete",
]

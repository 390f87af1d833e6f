"""Everything that changes lists. The caller opens the transaction, and has looked at addresses before."""

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
from refract.lists.service.drafts import claim_lists, create_list, edit_list, get_draft, lock_draft, lock_list, set_draft_slug
from refract.lists.service.entries import (
    CheckedAddress,
    add_entries,
    edit_entry,
    fail_stale_entries,
    fill_entry,
    move_entry,
    record_checks,
    remove_entry,
    reorder_entries,
)
from refract.lists.service.publication import create_edition, publish_list

__all__ = [
    "RETENTION",
    "UNDO_WINDOW",
    "CheckedAddress",
    "add_entries",
    "claim_lists",
    "clear_slugs",
    "create_edition",
    "create_list",
    "delete_list",
    "edit_entry",
    "edit_list",
    "erase_lists",
    "erase_user_lists",
    "fail_stale_entries",
    "fill_entry",
    "get_draft",
    "lock_draft",
    "lock_list",
    "move_entry",
    "publish_list",
    "purge_actions",
    "purge_old_lists",
    "record_checks",
    "release_name",
    "remove_entry",
    "reorder_entries",
    "set_draft_slug",
    "undo_delete",
]

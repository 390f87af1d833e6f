"""Tags: a shared vocabulary for links, and personal ones for libraries."""

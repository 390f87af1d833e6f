"""Rules: conditions under which a link leads elsewhere."""

"""Links: destinations with names, owners, tags and a life cycle."""

"""Teams: groups of users who own links together."""

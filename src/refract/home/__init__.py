"""Landing page, home, omnibox, search and API docs."""

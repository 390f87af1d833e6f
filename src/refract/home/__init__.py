"""Home: the start page, for strangers and for people signed in."""

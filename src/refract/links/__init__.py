"""Links: a destination with an id, names, owners, a life cycle and a redirect."""

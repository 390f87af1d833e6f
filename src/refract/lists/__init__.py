"""Ordered pages of links: collected without an account, published under a name."""

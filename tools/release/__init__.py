"""Releases: what is built, equal bytes from equal commits, and what is written about it."""

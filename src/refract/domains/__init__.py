"""Domains: hosts beside the one of the base URL, each with names of its own."""

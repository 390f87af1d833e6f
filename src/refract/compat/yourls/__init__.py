"""YOURLS' API."""

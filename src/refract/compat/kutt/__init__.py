"""Kutt's REST API, version 2."""

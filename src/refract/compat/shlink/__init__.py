"""Shlink's REST API, versions 1 to 3."""

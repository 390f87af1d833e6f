"""Karakeep's REST API."""

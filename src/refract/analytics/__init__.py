"""Clicks: from the redirect that left to the figures people read."""

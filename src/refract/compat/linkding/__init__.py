"""linkding's REST API."""

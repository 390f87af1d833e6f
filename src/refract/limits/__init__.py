"""Rate limits. Below every feature, so that a service can charge in its own transaction."""

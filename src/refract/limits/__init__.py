"""Rate limits: a product rule below every feature, so that a service can charge in the transaction it limits."""

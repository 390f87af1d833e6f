"""HTTP toolkit: problems, pages, CSRF, hosts, routes, idempotency, OpenAPI."""

"""The hot path: from a raw request path to an answer, counted before it leaves."""

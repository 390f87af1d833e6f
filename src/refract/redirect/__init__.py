"""The hot path: from a raw request path to a redirect, recorded before it is sent."""

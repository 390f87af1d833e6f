"""The protocols of other systems, so that clients made for them work with this one unchanged."""

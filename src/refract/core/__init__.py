"""The base layer: nothing in here knows about the product."""

"""The ground: nothing in here knows a word of the product."""

"""Read later: captured items, suggestions for them, and the library of confirmed ones."""

"""Tags: a shared vocabulary for links, and everybody's own for the library."""

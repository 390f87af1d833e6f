"""Read later: what was captured, what the assistant proposed, and what the person kept."""

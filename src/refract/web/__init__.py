"""The HTTP toolkit: problems, pages, proofs of origin, limits, cursors, answers that can be repeated."""

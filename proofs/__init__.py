"""Long proofs of what Refract promises under faults and load, one module each.

A proof is a module here with a docstring (its first line is what it proves) and `main(arguments:
list[str]) -> int`, which prints its seed and what it found and answers 0 when the promise held. The
same code in a short size belongs into the tests.
"""

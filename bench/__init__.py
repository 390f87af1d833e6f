"""What we measure and how, one module per question, peers beside us in the same run.

A bench is a module here with a docstring (its first line is the question) and `main(arguments:
list[str]) -> int`, which prints its figures. Figures are ratios within one run, or CPU time per
request; never a bare duration.
"""

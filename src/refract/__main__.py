"""`python -m refract` is the `refract` command."""

from refract.cli import main

main()

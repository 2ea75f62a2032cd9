"""`python -m termald`: the command line, for where the console script is not on PATH."""

from termald.cli.main import main

main()

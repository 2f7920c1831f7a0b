"""``python -m tailtrim.cli``."""

from tailtrim.cli import main

main()

"""`python -m agno_lark.cli`: the same command, where no script is installed."""

from agno_lark.cli import main

main()

"""`python -m stepwell.cli`, for where the script is not on the PATH."""

from stepwell.cli import main

main()

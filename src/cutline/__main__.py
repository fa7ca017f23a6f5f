"""`python -m cutline`: the command line, for those who start it by its interpreter."""

from .cli import main

if __name__ == "__main__":
    main()

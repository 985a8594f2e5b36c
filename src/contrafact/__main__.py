"""The command `contrafact`, also as `python -m contrafact`."""

from __future__ import annotations

import sys

from .catalog import datasets_text, methods_text

#: Lists that need no arguments, and so none of the libraries that parse and format them.
LISTS = {"methods": methods_text, "datasets": datasets_text}


def main() -> None:
    """Run the command line; a plain list is printed at once."""
    arguments = sys.argv[1:]
    if len(arguments) == 1 and arguments[0] in LISTS:
        sys.stdout.write(LISTS[arguments[0]]() + "\n")
        return
    from .cli import app

    app(prog_name="contrafact")


if __name__ == "__main__":
    main()

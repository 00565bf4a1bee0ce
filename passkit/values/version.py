"""The version of passkit, for modules below the package's root, which has it."""

import sys


def version() -> str:
    """Return the version of passkit."""
    return str(sys.modules["passkit"].__version__)

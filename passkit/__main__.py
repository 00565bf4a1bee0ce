"""``python -m passkit`` is the command ``passkit``."""

import sys

from passkit.cli import main

sys.exit(main())

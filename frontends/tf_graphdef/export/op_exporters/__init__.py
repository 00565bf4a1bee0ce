"""The rows of the table, a file for each family; importing this enters them all."""

from __future__ import annotations

import importlib
import pkgutil

for _family in sorted(m.name for m in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_family}")

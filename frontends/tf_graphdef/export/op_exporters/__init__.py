"""Exporters of passkit operators, a module for each family. Importing this registers them."""

from __future__ import annotations

import importlib
import pkgutil

for _family in sorted(m.name for m in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_family}")

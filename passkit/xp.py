"""`passkit.xp` is `passkit.frontends.xp`: the array API standard on operation streams."""

from __future__ import annotations

import sys
from importlib import import_module

sys.modules[__name__] = import_module("passkit.frontends.xp")

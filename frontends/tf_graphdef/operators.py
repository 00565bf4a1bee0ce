"""The operators as importers call them, with arguments that are read from a model file.

Type checkers know nothing of a file's values, so the operators' own stubs would refuse most calls;
the operators check them when they are called.
"""

from __future__ import annotations

from typing import Any

import passkit.ops

ops: Any = passkit.ops

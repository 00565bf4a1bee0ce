"""passkit's operators typed as Any, for importers that pass attributes read from files.

Static types of such attributes are unknown, so the operators' stubs would reject most calls; the
operators check their arguments at run time.
"""

from __future__ import annotations

from typing import Any

import passkit.ops

ops: Any = passkit.ops

"""What measurements on this machine depend on, beside the kernel: the key of its files."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256

from passkit.errors import SettingError
from passkit.runtime.native.compiler import instruction_set
from passkit.runtime.native.launcher import num_threads_wanted


def device() -> str:
    """A digest of the CPU's model, its instruction set and the number of threads.

    The compiler is told by each record: a machine without one takes those of any.
    """
    try:
        threads = num_threads_wanted()
    except SettingError:
        threads = 0  # whatever starts threads says so
    facts = ("cpu", model_name(), instruction_set(), threads)
    return sha256(repr(facts).encode()).hexdigest()[:16]


@cache
def model_name() -> str:
    """What the CPU calls itself; "" where it does not."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = re.search(r"^model name\s*:\s*(.+)$", file.read(1 << 12), re.M)
    except OSError:
        return ""
    return found[1].strip() if found else ""

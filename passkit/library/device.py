"""The key of this machine's measurements: facts that they depend on, besides the kernel."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256

from passkit.errors import SettingError
from passkit.runtime.native.compiler import instruction_set
from passkit.runtime.native.launcher import requested_threads


def device_key() -> str:
    """Return a digest of the CPU's model, its instruction set and the number of threads.

    The compiler does not count: each record names it, and a machine without a compiler uses the
    records of any. Where PASSKIT_THREADS is wrong, the number of threads is 0.
    """
    try:
        threads = requested_threads()
    except SettingError:
        threads = 0  # whatever starts threads reports the error
    facts = ("cpu", model_name(), instruction_set(), threads)
    return sha256(repr(facts).encode()).hexdigest()[:16]


@cache
def model_name() -> str:
    """Return the CPU's model name as the system reports it, "" if it does not."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            match = re.search(r"^model name\s*:\s*(.+)$", file.read(1 << 12), re.M)
    except OSError:
        return ""
    return match[1].strip() if match else ""

"""A worker process: it reads calls as lines of JSON, and writes their results as lines of JSON.

It ends when its input ends, and when the process that started it does, whatever it is doing.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from importlib import import_module

POLL_SECONDS = 0.5
"""The seconds between two checks whether the process that started this one still runs."""


def main() -> None:
    """Answer calls from standard input on standard output until the input ends.

    A call is JSON with "function", as "module:name", and "arguments"; its answer has a "value" or
    an "error", the class and text of an Exception. Other output is redirected to standard error.
    The process ends if a line is no such call, or a result is no JSON value.
    """
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # kernels and compilers may print to standard output
    for line in sys.stdin:
        task = json.loads(line)
        module, name = task["function"].split(":")
        try:
            answer = {"value": getattr(import_module(module), name)(*task["arguments"])}
        except Exception as error:  # noqa: BLE001, RUF100  (the caller handles it)
            answer = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


def _end_with(parent: int) -> None:
    """Wait until the process ``parent`` is no longer the parent, then end this process."""
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)

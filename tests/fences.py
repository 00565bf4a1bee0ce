"""Arrays between pages that may not be touched: a read or write beyond their ends is a fault."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def fenced(like: Any, end: bool) -> Iterator[Any]:
    """A copy of an array that ends, or begins, at a page that may not be touched."""
    inner = -(-max(like.nbytes, 1) // PAGE) * PAGE
    memory = mmap.mmap(-1, inner + 2 * PAGE)
    whole = np.frombuffer(memory, np.uint8)
    start = whole.ctypes.data
    for at in (start, start + PAGE + inner):
        assert LIBC.mprotect(ctypes.c_void_p(at), PAGE, 0) == 0
    offset = PAGE + (inner - like.nbytes if end else 0)
    array = whole[offset : offset + like.nbytes].view(like.dtype).reshape(like.shape)
    array[...] = like
    yield array
    for at in (start, start + PAGE + inner):
        LIBC.mprotect(ctypes.c_void_p(at), PAGE, 3)

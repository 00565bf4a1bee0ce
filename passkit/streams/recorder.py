"""The types and actions behind every operation on an array: those in C, or else those in Python.

The extension is compiled when this is imported for the first time on a machine, and kept in the
kernel cache. The environment variable PASSKIT_RECORDER=python chooses Python.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING

from passkit.errors import CompilerError, SettingError
from passkit.runtime.native.extension import Extension
from passkit.streams import recording

EXTENSION = Extension(
    "_passkit_recorder",
    os.path.dirname(os.path.abspath(__file__)),
    ("recorder.c",),
    ("-x", "c", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-O2"),
    "the recorder",
)


def implementation() -> ModuleType:
    """Return the module in C, compiled if need be, or else `recording`, the one in Python.

    The latter is returned if PASSKIT_RECORDER is "python", or if C cannot be compiled.

    Raises: SettingError if PASSKIT_RECORDER has another value than "c" and "python"; CacheError if
    others may write to the cache folder, from which the module in C is loaded.
    """
    choice = os.environ.get("PASSKIT_RECORDER", "c")
    if choice not in ("c", "python"):
        raise SettingError(f"PASSKIT_RECORDER must be 'c' or 'python', got {choice!r}")
    if choice == "c":
        try:
            return EXTENSION.module()
        except CompilerError:
            pass  # programs run unfused then, and say so
    return recording


if TYPE_CHECKING:
    from passkit.streams.recording import (
        AGED,
        ALIVE,
        HAS_ORIGIN,
        REQUIRED,
        ArrayBase,
        ArrayType,
        OperationBase,
        Queue,
        TrieCursor,
        TrieNode,
        Value,
        apply,
        binary_method,
        connect,
        differentiated_call,
        enter_stream,
        leaves_like,
        operand_beside,
        remember_subscript,
        set_limits,
        slot_method,
        unary_method,
        values_like,
        with_leaves,
        with_new_arrays,
        wrap,
    )
else:
    _module = implementation()
    ArrayBase = _module.ArrayBase
    ArrayType = _module.ArrayType
    binary_method = _module.binary_method
    TrieCursor = _module.TrieCursor
    OperationBase = _module.OperationBase
    Queue = _module.Queue
    TrieNode = _module.TrieNode
    unary_method = _module.unary_method
    Value = _module.Value
    apply = _module.apply
    connect = _module.connect
    differentiated_call = _module.differentiated_call
    enter_stream = _module.enter_stream
    leaves_like = _module.leaves_like
    operand_beside = _module.operand_beside
    remember_subscript = _module.remember_subscript
    set_limits = _module.set_limits
    slot_method = _module.slot_method
    values_like = _module.values_like
    with_leaves = _module.with_leaves
    with_new_arrays = _module.with_new_arrays
    wrap = _module.wrap
    from passkit.streams.recording import AGED, ALIVE, HAS_ORIGIN, REQUIRED

IS_NATIVE = not TYPE_CHECKING and _module is not recording
"""Whether operations are recorded in C."""
__all__ = [
    "AGED",
    "ALIVE",
    "HAS_ORIGIN",
    "IS_NATIVE",
    "REQUIRED",
    "ArrayBase",
    "ArrayType",
    "OperationBase",
    "Queue",
    "TrieCursor",
    "TrieNode",
    "Value",
    "apply",
    "binary_method",
    "connect",
    "differentiated_call",
    "enter_stream",
    "leaves_like",
    "operand_beside",
    "remember_subscript",
    "set_limits",
    "slot_method",
    "unary_method",
    "values_like",
    "with_leaves",
    "with_new_arrays",
    "wrap",
]

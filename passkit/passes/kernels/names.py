"""Names and keys of kernels, which follow from their texts."""

from __future__ import annotations

import hashlib

FORMAT = 1
"""A part of every key, increased when the meaning of a kernel's arguments changes."""


def named(text: str, op: str, dialect: str) -> tuple[str, str, str]:
    """Return name, key and final text of a kernel whose function is called KERNEL in ``text``.

    The key is a SHA-256 digest of dialect and text; the name consists of ``op``, the name of an
    operator, and the digest's first eight digits, and takes the place of KERNEL.
    """
    digest = hashlib.sha256(f"{FORMAT} {dialect}\n{text}".encode()).hexdigest()
    stem = "".join(c if c.isascii() and c.isalnum() else "_" for c in op)
    name = f"{stem}_{digest[:8]}"
    return name, digest, text.replace("KERNEL", name)

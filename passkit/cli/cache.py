"""``passkit cache``: the size of the kernel cache, or an empty one."""

from __future__ import annotations

import argparse

from passkit.cli.answer import Answer
from passkit.runtime.native.cache import KernelCache, cache_folder
from passkit.values.units import bytes_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do."""
    parser.add_argument("action", nargs="?", choices=("info", "clear"), default="info")


def run(options: argparse.Namespace) -> Answer:
    """Look, or clear; neither needs the folder to exist."""
    cache = KernelCache(cache_folder())
    if options.action == "clear":
        freed = cache.clear()
        data = {"folder": str(cache.folder), "freed_nbytes": freed}
        return Answer(data, f"freed {bytes_text(freed)} in {cache.folder}")
    info = cache.info()
    data = {
        "folder": str(info.folder),
        "kernels": info.kernels,
        "libraries": info.libraries,
        "nbytes": info.nbytes,
        "limit_nbytes": cache.limit,
    }
    text = (
        f"{info.folder}\n{info.kernels} kernels in {info.libraries} libraries, "
        f"{bytes_text(info.nbytes)} of at most {bytes_text(cache.limit)}"
    )
    return Answer(data, text)

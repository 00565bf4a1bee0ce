"""``passkit cache``: print the size of the cache of kernels and measurements, or empty it."""

from __future__ import annotations

import argparse

from passkit.cli.command_result import CommandResult
from passkit.library import store
from passkit.runtime.native.cache import KernelCache, cache_folder
from passkit.values.units import bytes_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the argument of ``passkit cache``: "info" or "clear"."""
    parser.add_argument("action", nargs="?", choices=("info", "clear"), default="info")


def run(options: argparse.Namespace) -> CommandResult:
    """Return the size of the cache, or clear it and return the bytes freed.

    ``options.action`` is "info" or "clear". The folder does not need to exist. Raises: CacheError
    where other users may write to the folder whose size is read.
    """
    cache = KernelCache(cache_folder())
    if options.action == "clear":
        freed = cache.clear() + store.clear()
        data = {"folder": str(cache.folder), "freed_nbytes": freed}
        return CommandResult(data, f"freed {bytes_text(freed)} in {cache.folder}")
    info, tuned = cache.info(), store.content()
    data = {
        "folder": str(info.folder),
        "kernels": info.kernels,
        "libraries": info.libraries,
        "records": tuned.records,
        "nbytes": info.nbytes + tuned.nbytes,
        "limit_nbytes": cache.limit,
    }
    text = (
        f"{info.folder}\n{info.kernels} kernels in {info.libraries} libraries, "
        f"{bytes_text(info.nbytes)} of at most {bytes_text(cache.limit)}\n"
        f"{tuned.records} measurements of kernels on this machine, {bytes_text(tuned.nbytes)}"
    )
    return CommandResult(data, text)

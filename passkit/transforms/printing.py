"""Text of kernels: the passes that bring a kernel AST into final form, and then its printer."""

from __future__ import annotations

from collections.abc import Sequence, Set

from passkit.ast.stage import KernelAST
from passkit.dialects.base import Dialect
from passkit.dialects.printer import print_final
from passkit.transforms.final_form import final_form
from passkit.values.size import Extent


def print_kernel(
    ast: KernelAST,
    name: str,
    dialect: Dialect,
    aliased: Set[str] = frozenset(),
    sizes: Sequence[Extent] = (),
) -> str:
    """Return the text of a kernel in a dialect, without the dialect's prelude.

    Args:
        ast: the kernel.
        name: its name.
        dialect: the dialect, for a device with certain threads.
        aliased: the names of buffers that share memory with another.
        sizes: the values of size arguments, as far as they are known.

    Raises: CodeGenError for what the dialect has no spelling of, see `final_form`; RegistryError
    for a dtype that it does not have.
    """
    return print_final(final_form(ast, dialect.features, aliased, sizes), name, dialect)

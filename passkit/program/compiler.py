"""`passkit.compile`: from a graph and options to its `Executable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from passkit.graph.graph import Graph, graph_of_argument
from passkit.graph.node import Entry
from passkit.program.executable import Executable

# The types of options belong to the planner, which a warm start does not import.
if TYPE_CHECKING:
    from typing import Unpack

    from passkit.passes.option_types import CompileOptions
    from passkit.runtime.state import State


def compile(
    graph: Graph | Entry | Sequence[Entry],
    *,
    state: State | None = None,
    **options: Unpack[CompileOptions],
) -> Executable:
    """Return the executable of a graph, after those passes of the pipeline that have not run yet.

    Without a C++ compiler, and with no kernel of the graph in the cache, the executable interprets
    the graph in NumPy, after one warning that says what to install.

    Args:
        graph: The graph, or an entry or sequence of entries, its outputs.
        state: The values of the variables; executables that are given one `State` share them. By
            default each executable has its own.
        target: Where kernels run: "cpu" (default), "opencl", "cuda", "interpret" (NumPy, operator
            by operator), "blocks" (NumPy, block by block, with checks), or a `Target`.
        fusion: Which operators share kernels: "none", "nnvm", "xla", "deep", "stitch" (default), or
            the result of `register_fusion`.
        numerics: "strict" (default) or "fast", which may relax the rules of rounding.
        disabled: Names of passes to skip.
        dump: A folder for the graph after each pass, as text and picture, and for the loop IR of
            GPU kernels after each transform.
        timing: Whether to record the seconds of each pass, in ``executable.context.times``.
        fuel: The most optional decisions (fusions, rewrites) that may be taken; by default any
            number.
        keep_together: Lists of nodes that must share a kernel. Nodes are given by name, or as nodes
            or entries.
        keep_apart: Lists of nodes that must not share a kernel.
        no_fuse: Nodes that get a kernel of their own.
        templates: By the name of a group, or of an operator in it: how its loops are tiled, as
            `passkit.templates` writes it.
        evaluator: Estimates the seconds of kernels: "model", or an object with the methods of an
            Evaluator. By default the seconds that `tune` stored on this machine, where there are
            some, else the cost model; nothing is measured here.
        passes: The passes that run: all of them as a list, or some that join the default ones,
            ``{"after Simplify": ["Mine"], "before Fusion": [other]}``. Plans made by other passes,
            or by a fusion strategy of yours, are not kept on disk.

    Returns: The executable, which is called with arrays.

    Raises:
        SettingError: An option is unknown or has a wrong value, such as an unknown target or
            strategy, before anything runs; or PASSKIT_THREADS is no number of threads.
        RegistryError: A pass in ``passes`` is not registered.
        ParseError: A template cannot be read.
        ArgumentError: ``graph``, ``state``, ``disabled`` or ``dump`` has a wrong type.
        GraphError: An output is no entry, two variables have the same name, or the graph writes
            something else than state.
        FeedError: ``state`` has a variable of the graph with another shape or dtype, or a constant
            operator cannot be evaluated.
        ShapeError: Shapes do not fit, or that of a variable must be given.
        DTypeError: Dtypes do not fit, or that of a variable must be given.
        PassError: A pass breaks its contract.
        RuleError: A function that an operator registers returns something else than it must.
        ScheduleError: A group has no such template.
        CodeGenError: A kernel cannot be printed or evaluated for the target.
        CompilerError: The compiler refuses a kernel.
        DeviceError: The target's device is not available.
        MissingDependencyError: A package that the target needs is not installed.
        CacheError: Other users may write to the cache folder, or it is a file.
        OSError: With ``dump``: the files cannot be written.

    >>> import numpy as np
    >>> import passkit as pk
    >>> x = pk.var("x", ("n",))
    >>> run = pk.compile(pk.Graph([x * 2]), target="interpret")
    >>> run(x=np.array([1, 2], "float32"))
    [array([2., 4.], dtype=float32)]
    """
    graph = graph_of_argument("compile: graph", graph)
    return Executable(graph, options, state)

"""Compiled graphs as PyTorch's caches keep them: AOTAutograd stores and loads them.

A stored graph has the text of the graph of passkit, not its kernels: these come from passkit's own
plan cache. PyTorch writes and reads the files, in its own cache folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import torch
from attrs import evolve
from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache
from torch._inductor import codecache
from torch._inductor.output_code import OutputCode
from torch.fx import GraphModule

from passkit.errors import PasskitError
from passkit.frontends.torch.frozen import FrozenProgram
from passkit.frontends.torch.importer import ImportedGraph
from passkit.frontends.torch.program import Program
from passkit.frontends.torch.reports import GraphRecord, record
from passkit.program.plan_cache import files_of, source_files
from passkit.serial.json import from_json, to_json
from passkit.values.version import version

_PLAIN = (str, int, float, bool, type(None))
"""Types of options by which stored graphs are found."""


class CompiledGraph(OutputCode):  # type: ignore[misc]
    """A graph that passkit runs: a function of a list of tensors and numbers, which it empties.

    Args:
        imported: the graph.
        options: options of `passkit.compile`.
        is_on_device: whether tensors are on the device of the target, not on the CPU.
        condition: a condition on float arguments that the graph holds for, "" if there is none.
        fixed: the positions of arguments that are constants of the program, see `FrozenProgram`.

    Raises: what creating or calling a `Program` raises.
    """

    def __init__(
        self,
        imported: ImportedGraph,
        options: Mapping[str, Any],
        is_on_device: bool = False,
        condition: str = "",
        fixed: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self._boxed_call = True
        self.fixed = tuple(fixed)
        self.is_on_device = is_on_device
        self.condition = condition
        self.imported: ImportedGraph = imported
        self.options = dict(options)
        self.text: str | None = None
        self._create()

    def _create(self) -> None:
        """Create the program, and record the graph for reports that are being made.

        Raises: what creating a `Program` raises.
        """
        program: Program | FrozenProgram
        if self.fixed and self.imported.graph is not None:
            program = FrozenProgram(self.imported, self.options, self.fixed)
        else:
            program = Program(self.imported, self.options, self.is_on_device)
        self.run = program.run
        graph = GraphRecord(self.imported.node_count, self.imported.externs, program=program)
        if not record(graph):
            return

        def run(args: list[Any]) -> list[Any]:
            """Call the program, and keep the arguments of the first call for the report."""
            if not graph.calls:
                graph.calls.append(list(args))
            return program.run(args)

        self.run = run

    def __call__(self, inputs: Any) -> Any:
        """Return the results for a list of arguments, which is empty afterwards."""
        return self.run(inputs)

    def prepare_for_serialization(self) -> None:
        """Replace the graph by its text, and drop the program; called on a copy of the object.

        Raises: BypassAOTAutogradCache for a graph or options that have no text, or a graph for some
        values of float arguments only, which PyTorch's keys do not have.
        """
        _check_options(self.options)
        if self.condition:
            raise BypassAOTAutogradCache(
                f"passkit: the graph is for {self.condition}, which no key has; compile with "
                f"torch._dynamo.config.specialize_float = True"
            )
        if self.imported.graph is not None:
            try:
                self.text = to_json(self.imported.graph)
            except PasskitError as error:
                raise BypassAOTAutogradCache(f"passkit: {error}") from None
        self.imported = evolve(self.imported, graph=None)
        del self.run

    def post_compile(
        self, example_inputs: Sequence[Any], constants: Any, graph_kwargs: Any
    ) -> None:
        """Create the program of a stored graph; called where PyTorch has loaded it.

        Raises: what creating a `Program` raises, ParseError for a text that is no graph.
        """
        if self.text is not None:
            self.imported = evolve(self.imported, graph=from_json(self.text))
            self.text = None
        self._create()

    def set_triton_bundle(self, triton_bundle: Any) -> None:
        """Do nothing: there are no kernels of Triton."""


class GraphOfPyTorch(OutputCode):  # type: ignore[misc]
    """A graph that PyTorch runs as a whole: a function of a list of arguments.

    Args:
        module: the graph.
        reason: why passkit does not run it.
    """

    def __init__(self, module: GraphModule, reason: str) -> None:
        super().__init__()
        self._boxed_call = True
        self.reason = reason
        self.node_count = sum(n.op == "call_function" for n in module.graph.nodes)
        self.module = module
        record(GraphRecord(self.node_count, (), reason))

    def __call__(self, inputs: Any) -> Any:
        """Return the results for a list of arguments, which is empty afterwards."""
        args = list(inputs)
        inputs.clear()
        return self.module(*args)

    def prepare_for_serialization(self) -> None:
        """Refuse to be stored.

        Raises: BypassAOTAutogradCache always.
        """
        raise BypassAOTAutogradCache(f"passkit: PyTorch runs a whole graph: {self.reason}")

    def set_triton_bundle(self, triton_bundle: Any) -> None:
        """Do nothing: there are no kernels of Triton."""


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options by which a stored graph would not be found.

    Raises: BypassAOTAutogradCache for an option that is neither a number nor text.
    """
    for name, value in options.items():
        if not isinstance(value, _PLAIN):
            raise BypassAOTAutogradCache(
                f"passkit: the option {name} is a {type(value).__name__}, which no key can name"
            )


@contextmanager
def keys_without_inductor() -> Iterator[None]:
    """Leave out of PyTorch's keys what only kernels of Inductor depend on.

    These are Triton's files and Inductor's generators of code, which take most of a second to read
    and to import. Keys have them again after the ``with`` block.
    """
    replaced = [
        (codecache, "init_backend_registration", lambda: None),
        (codecache, "custom_backend_passes", {}),
        (codecache, "custom_backend_codegen_configs", {}),
        (codecache.CacheBase, "get_system", staticmethod(dict)),
    ]
    replaced = [row for row in replaced if row[1] in vars(row[0])]  # other versions lack some
    kept = [(owner, name, vars(owner)[name]) for owner, name, _ in replaced]
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


def cache_tag(fallback: str, options: Mapping[str, Any]) -> str:
    """Return the text that tells stored graphs of passkit from those of others and other versions.

    It depends on passkit's source files, the options, and the tag that the user set.
    """
    own_files = files_of(os.path.dirname(os.path.abspath(__file__)))
    facts = (
        version(),
        source_files(),
        own_files,
        fallback,
        sorted(options.items(), key=str),
    )
    key = sha256(repr(facts).encode()).hexdigest()
    return f"passkit-{key}-{torch.compiler.config.cache_key_tag}"

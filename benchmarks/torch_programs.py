"""Random small programs of PyTorch over inputs of unusual layouts, as texts that run anywhere.

`random_program(seed, number)` gives a program by its number. Its inputs are views of bases:
strided, offset, transposed, expanded, channels last, overlapping, empty, two views of one base.
Statements are drawn one by one and run eagerly, beside a copy of the program in float64; a
statement that PyTorch refuses, or whose result is large, is drawn again. A value is exact if both
agree; operators that are not continuous, such as comparisons and casts to integers, take only
exact operands, so that rounding cannot change what a program does.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from itertools import count
from math import prod
from random import Random
from typing import Any

import attrs
import torch

FLOATS = ("float32", "float64", "float16", "bfloat16")
DTYPES = (*FLOATS, "int64", "int32", "bool")
LARGEST = 1000.0
"""Statements whose results are larger are not taken: float16 ends at 65504."""
DATA = (0, 1)
"""Numbers of the data that a program is written for."""
ATTEMPTS = 400
"""How many statements are drawn for one program, at most."""

Namespace = dict[str, Any]


@attrs.frozen
class TorchProgram:
    """A program: the text of its inputs, and that of a function of them.

    Attributes:
        seed: the seed of the set of programs.
        number: its number in it.
        setup: lines that make the bases and the inputs.
        bases: names of the tensors whose views the inputs are.
        inputs: names of the inputs, the parameters of the function.
        statements: the lines of the function.
        results: names of what it returns.
        leaves: names of the tensors by which gradients are taken; empty without gradients.
        is_exact: whether no value is rounded.
        largest: the largest magnitude of a value.
        is_dynamic: whether it is compiled for symbolic sizes.
        tags: the layouts and kinds of statements in it.
    """

    seed: int
    number: int
    setup: tuple[str, ...]
    bases: tuple[str, ...]
    inputs: tuple[str, ...]
    statements: tuple[str, ...]
    results: tuple[str, ...]
    leaves: tuple[str, ...]
    is_exact: bool = True
    largest: float = 1.0
    is_dynamic: bool = False
    tags: tuple[str, ...] = ()

    def function_text(self) -> str:
        """Return the text of the function, which is named ``program``."""
        lines = [f"def program({', '.join(self.inputs)}):"]
        lines += [f"    {line}" for line in self.statements]
        lines.append(f"    return [{', '.join(self.results)}]")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        """Return the text of the program with its inputs and a call."""
        dynamic = ", dynamic=True" * self.is_dynamic
        return "\n".join(
            [
                f"# seed {self.seed}, case {self.number}",
                *self.setup,
                self.function_text(),
                f'compiled = torch.compile(program, backend="passkit"{dynamic})',
                f"print(compiled({', '.join(self.inputs)}))",
            ]
        )

    def namespace(self, data: int = 0, in_float64: bool = False) -> Namespace:
        """Return the tensors of the setup by name.

        Args:
            data: which random elements they have.
            in_float64: whether all floats are float64.
        """
        text = "\n".join(self.setup)
        if in_float64:
            text = widened(text)
        namespace: Namespace = {"torch": torch, "F": torch.nn.functional}
        torch.manual_seed(1000 * self.number + data)
        exec(text, namespace)
        return namespace


@attrs.frozen(eq=False)
class Observation:
    """The effects of a call.

    Attributes:
        results: the tensors that it returns.
        others: the inputs and their bases after it.
        gradients: the gradients by the leaves; None for those that it does not have.
    """

    results: list[torch.Tensor]
    others: list[torch.Tensor]
    gradients: list[torch.Tensor | None]


def observed(
    program: TorchProgram, function: Callable[..., Any], namespace: Namespace
) -> Observation:
    """Call a function with the inputs of a program, and take gradients of what needs them."""
    results = list(function(*(namespace[x] for x in program.inputs)))
    others = [namespace[x] for x in (*program.inputs, *program.bases)]
    leaves = [namespace[x] for x in program.leaves]
    sources = [x for x in (*results, *others) if x.requires_grad]
    gradients: list[torch.Tensor | None] = []
    if leaves and sources:
        total = sum(((x.double() * weights(x)).sum() for x in sources), start=torch.zeros(()))
        gradients = list(torch.autograd.grad(total, leaves, allow_unused=True))
    return Observation(results, others, gradients)


def weights(tensor: torch.Tensor) -> torch.Tensor:
    """Return small multiples of 1/2 as weights of the elements of a loss."""
    numbers = torch.arange(tensor.numel(), dtype=torch.float64) % 5 - 1
    return (numbers / 2).reshape(tensor.shape)


def defined(program: TorchProgram) -> Callable[..., Any]:
    """Return the function of a program, made anew."""
    namespace: Namespace = {"torch": torch, "F": torch.nn.functional}
    exec(program.function_text(), namespace)
    return namespace["program"]  # type: ignore[no-any-return]


def widened(text: str) -> str:
    """Return the text of a program with float64 in place of all other floats."""
    return re.sub(r"torch\.(float16|bfloat16|float32)", "torch.float64", text)


def has_overlap(tensor: torch.Tensor) -> bool:
    """Return whether two elements of a tensor share memory."""
    return tensor.numel() != len(set(elements_of(tensor)))


def elements_of(tensor: torch.Tensor) -> list[int]:
    """Return the positions in its storage of all elements of a tensor."""
    positions = torch.arange(tensor.untyped_storage().nbytes() // max(1, tensor.itemsize))
    view = positions.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return view.reshape(-1).tolist()  # type: ignore[no-any-return]


def shares_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors lie in one storage, which is not empty."""
    first, second = a.untyped_storage(), b.untyped_storage()
    return first.nbytes() > 0 and first._cdata == second._cdata


def partly_overlaps(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors share elements, but are not the same view."""
    if not shares_storage(a, b):
        return False
    if (a.shape, a.stride(), a.storage_offset()) == (b.shape, b.stride(), b.storage_offset()):
        return False
    return bool(set(elements_of(a)) & set(elements_of(b)))


class Writer:
    """The program as it grows: texts, and the values that they have.

    Args:
        seed: the seed of the set of programs.
        number: the number of the program.
        attempt: how many programs of this number were given up.
    """

    def __init__(self, seed: int, number: int, attempt: int) -> None:
        self.random = Random(f"{seed}-{number}-{attempt}")
        self.seed, self.number = seed, number
        draw = self.random
        self.needs_grad = draw.random() < 1 / 3
        self.is_exact_only = draw.random() < 0.5
        self.extents = draw.choices((1, 2, 3, 4, 5, 6, 8), k=3)
        if draw.random() < 0.06:
            self.extents[0] = 0
        dtypes = FLOATS if self.needs_grad else DTYPES
        self.dtypes = draw.choices(dtypes, k=draw.choice((1, 1, 2)))
        if self.needs_grad or draw.random() < 0.3:
            self.dtypes.append(draw.choice(("float32", "float64")))
        self.setup: list[str] = []
        self.bases: list[str] = []
        self.inputs: list[str] = []
        self.leaves: list[str] = []
        self.statements: list[str] = []
        self.tags: list[str] = []
        self.names: list[str] = []
        self.count = 0
        self.has_kink = False
        self.runs: list[tuple[Namespace, Namespace]] = []
        self.values: Namespace = {}

    # Inputs.

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        """Return a random shape of the program's extents."""
        if rank is None:
            rank = self.random.choice((0, 1, 2, 2, 2, 3, 3, 4))
        return tuple(self.random.choice((*self.extents, 1)) for _ in range(rank))

    def elements(self, shape: Sequence[int], dtype: str) -> str:
        """Return the text of a tensor of random small numbers."""
        if dtype == "bool":
            return f"torch.randint(0, 2, {tuple(shape)}, dtype=torch.bool)"
        if dtype in ("int32", "int64"):
            return f"torch.randint(-5, 6, {tuple(shape)}, dtype=torch.{dtype})"
        return f"(torch.randint(-8, 9, {tuple(shape)}) / 4).to(torch.{dtype})"

    def add_base(self, text: str, dtype: str) -> str:
        """Add the text of a base; return its name."""
        name = f"base{len(self.bases)}"
        if self.needs_grad and dtype in FLOATS:
            leaf = f"leaf{len(self.leaves)}"
            self.setup.append(f"{leaf} = {text}.requires_grad_()")
            self.leaves.append(leaf)
            text = leaf if self.random.random() < 0.3 else f"{leaf}.clone()"
        self.setup.append(f"{name} = {text}")
        self.bases.append(name)
        return name

    def add_input(self) -> None:
        """Add an input of a random layout: a view of a new base, or of one that is there."""
        draw = self.random
        name = "abcdefgh"[len(self.inputs)]
        dtype = draw.choice(self.dtypes)
        layout = draw.choice(LAYOUTS)
        if self.bases and draw.random() < 0.35:
            layout = "second view"
        text = self.view_of_a_base(dtype) if layout == "second view" else ""
        if not text:
            layout = "contiguous" if layout == "second view" else layout
            text = self.laid_out(layout, dtype)
        self.setup.append(f"{name} = {text}")
        self.inputs.append(name)
        self.tags.append(layout)

    def laid_out(self, layout: str, dtype: str) -> str:
        """Return the text of an input of a layout, after a base was added for it."""
        draw = self.random
        shape = self.shape(4 if layout == "channels last" else None)
        match layout:
            case "offset":
                size, offset = prod(shape), draw.randint(1, 5)
                base = self.add_base(self.elements((size + offset + 2,), dtype), dtype)
                return f"{base}[{offset}:{offset + size}].view({shape})"
            case "strided" if shape:
                steps = [draw.choice((1, 2, 3)) for _ in shape]
                starts = [draw.choice((0, 0, 1, 2)) for _ in shape]
                outer = [n * k + s for n, k, s in zip(shape, steps, starts, strict=True)]
                base = self.add_base(self.elements(outer, dtype), dtype)
                slices = [
                    f"{s}:{s + n * k}:{k}" for n, k, s in zip(shape, steps, starts, strict=True)
                ]
                return f"{base}[{', '.join(slices)}]"
            case "transposed" if len(shape) > 1:
                order = draw.sample(range(len(shape)), len(shape))
                inner = [0] * len(shape)
                for k, axis in enumerate(order):
                    inner[axis] = shape[k]
                base = self.add_base(self.elements(inner, dtype), dtype)
                return f"{base}.permute({tuple(order)})"
            case "expanded" if shape:
                inner = [draw.choice((1, n)) for n in shape]
                inner[draw.randrange(len(shape))] = 1
                base = self.add_base(self.elements(inner, dtype), dtype)
                return f"{base}.expand({shape})"
            case "overlapping" if shape and 0 not in shape:
                strides = [draw.choice((1, 1, 2)) for _ in shape]
                reach = 1 + sum((n - 1) * k for n, k in zip(shape, strides, strict=True))
                base = self.add_base(self.elements((reach + 1,), dtype), dtype)
                return f"{base}.as_strided({shape}, {tuple(strides)}, 1)"
            case "channels last":
                text = self.elements(shape, dtype)
                base = self.add_base(f"{text}.to(memory_format=torch.channels_last)", dtype)
                return f"{base}.view_as({base})" if draw.random() < 0.3 else f"{base}[:]"
        base = self.add_base(self.elements(shape, dtype), dtype)
        return base if draw.random() < 0.7 else f"{base}.view_as({base})"

    def view_of_a_base(self, dtype: str) -> str:
        """Return the text of another view of a base that is there; "" if it has none."""
        draw = self.random
        base = draw.choice(self.bases)
        namespace = self.draft().namespace()
        tensor = namespace[base]
        choices = [f"{base}.view_as({base})", f"{base}.detach()"]
        if tensor.dim() > 1:
            choices += [f"{base}.transpose(0, 1)", f"{base}[0]", f"{base}[:, -1:]"]
        if tensor.dim() and tensor.shape[0] > 1:
            choices += [f"{base}[1:]", f"{base}[:-1]", f"{base}[::2]"]
        if tensor.dim() and tensor.shape[0]:
            choices += [f"{base}[0]", f"{base}[0].expand_as({base})"]
        if tensor.is_contiguous() and tensor.numel() > 1:
            size = tensor.numel()
            choices += [f"{base}.view(-1)", f"{base}.view(-1)[1:]"]
            choices += [f"{base}.view({size}, 1)", f"{base}.view(-1)[:{size // 2}]"]
        if self.inputs:
            choices.append(draw.choice(self.inputs))
        return draw.choice(choices)

    # Statements.

    def draft(self) -> TorchProgram:
        """Return the program as it is, without results."""
        return TorchProgram(
            self.seed,
            self.number,
            tuple(self.setup),
            tuple(self.bases),
            tuple(self.inputs),
            tuple(self.statements),
            (),
            tuple(self.leaves),
        )

    def replay(self) -> None:
        """Compute all values anew."""
        draft = self.draft()
        self.runs = [(draft.namespace(k), draft.namespace(k, in_float64=True)) for k in DATA]
        self.values = self.runs[0][0]
        for line in self.statements:
            self.execute(line)

    def execute(self, line: str) -> None:
        """Run a statement for all data, in the dtypes of the program and in float64."""
        for values, wide in self.runs:
            exec(line, values)
            exec(widened(line), wide)

    def fresh(self) -> str:
        """Return the name of a new value."""
        self.count += 1
        return f"v{self.count}"

    def is_exact(self, name: str) -> bool:
        """Return whether a value is the one that it has in float64."""
        for values, wide in self.runs:
            a, b = values[name], wide[name]
            if a.shape != b.shape or not bool((a.detach().double() == b.detach().double()).all()):
                return False
        return True

    def choice(self, rows: Sequence[Any]) -> Any:
        """Return a row of a table of texts, and note whether its gradient jumps."""
        row = self.random.choice(rows)
        self.has_kink = any(word in row[0] for word in KINKS)
        return row

    def pick(
        self,
        kinds: str = "fib",
        is_exact: bool = False,
        rank: int | None = None,
        accepts: Callable[[torch.Tensor], bool] | None = None,
    ) -> str:
        """Return the name of a value; recent ones are more likely.

        Args:
            kinds: letters of what its dtype may be: floats, integers, bool.
            is_exact: whether it has to be exact; it has, too, where a gradient jumps.
            rank: its number of axes, if that matters.
            accepts: a further condition.

        Raises: RefusedStatementError if there is none.
        """
        is_exact = is_exact or (self.needs_grad and self.has_kink)
        names = [
            name
            for name in self.names
            if kind(self.values[name]) in kinds
            and (rank is None or self.values[name].dim() == rank)
            and (accepts is None or accepts(self.values[name]))
            and (not is_exact or self.is_exact(name))
        ]
        if not names:
            raise RefusedStatementError
        weights = [1 + 3 * k / len(names) for k in range(len(names))]
        return self.random.choices(names, weights)[0]

    def like(self, name: str, kinds: str = "fib", is_exact: bool = False) -> str:
        """Return the name of a value that can be broadcast with another one.

        Raises: RefusedStatementError if there is none.
        """
        shape = self.values[name].shape
        return self.pick(kinds, is_exact, accepts=lambda x: broadcasts(x.shape, shape))

    def axis(self, name: str) -> int:
        """Return an axis of a value.

        Raises: RefusedStatementError if it has none.
        """
        rank = self.values[name].dim()
        if not rank:
            raise RefusedStatementError
        return self.random.randrange(-rank, rank)

    def target(self, kinds: str = "fib") -> str:
        """Return the name of a value that may be written: no two of its elements share memory.

        Raises: RefusedStatementError if there is none.
        """
        return self.pick(kinds, accepts=lambda x: not has_overlap(x))

    def check_operand(self, target: str, operand: str) -> None:
        """Raise if the write of a value would read another one in an order that is undefined.

        Raises: RefusedStatementError where they share some elements.
        """
        if partly_overlaps(self.values[target], self.values[operand]):
            raise RefusedStatementError

    def append(self, line: str, name: str | None, writes: Sequence[str] = ()) -> bool:
        """Run a statement, and add it if it is fine; return whether it is.

        Args:
            line: its text.
            name: the value that it defines, if it does.
            writes: the values that it changes.
        """
        changed = [name] if name else list(writes)
        is_fine = False
        try:
            self.execute(line)
            is_fine = all(self.is_small(x) for x in changed)
            if self.is_exact_only and is_fine:
                is_fine = all(self.is_exact(x) for x in changed)
        except Exception:
            pass
        if not is_fine:
            if not name:
                self.replay()
            return False
        self.statements.append(line)
        if name:
            self.names.append(name)
        return True

    def is_small(self, name: str) -> bool:
        """Return whether a value is a tensor of finite numbers that are not large."""
        value = self.values[name]
        if not isinstance(value, torch.Tensor) or value.dtype.is_complex:
            return False
        if value.numel() > 4000 or value.dim() > 5:
            return False
        return all(magnitude(values[name]) <= LARGEST for values, _ in self.runs)


KINKS = ("abs", "clamp", "hardtanh", "max", "min", "norm", "relu", "sort", "cdist", "prod")
"""Parts of texts of functions whose gradients jump, or have poles."""
LAYOUTS = (
    "contiguous",
    "offset",
    "strided",
    "transposed",
    "expanded",
    "overlapping",
    "channels last",
)
"""The layouts of inputs, besides second views of bases that are there."""


class RefusedStatementError(Exception):
    """A statement that cannot be drawn for the values that there are."""


def magnitude(tensor: torch.Tensor) -> float:
    """Return the largest magnitude of the elements of a tensor, 0 if it has none."""
    return float(tensor.detach().double().abs().max()) if tensor.numel() else 0.0


def kind(tensor: torch.Tensor) -> str:
    """Return the letter of a dtype: floats "f", integers "i", bool "b"."""
    if tensor.dtype.is_floating_point:
        return "f"
    return "b" if tensor.dtype is torch.bool else "i"


def broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    """Return whether two shapes can be broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


# Statements: each function returns the right-hand side of a new value, or a statement that writes.

Drawn = tuple[str, Sequence[str]]
"""The text of a statement and the values that it writes; none if it defines one."""

UNARY = (
    ("-{x}", "fi", False),
    ("{x}.abs()", "fi", False),
    ("torch.relu({x})", "fi", False),
    ("torch.sigmoid({x})", "f", False),
    ("torch.tanh({x})", "f", False),
    ("torch.sin({x})", "f", False),
    ("torch.cos({x})", "f", False),
    ("torch.erf({x})", "f", False),
    ("torch.exp(-{x}.abs())", "f", False),
    ("torch.sqrt({x}.abs() + 1)", "f", False),
    ("torch.log1p({x}.abs())", "f", False),
    ("torch.rsqrt({x} * {x} + 1)", "f", False),
    ("F.gelu({x})", "f", False),
    ("F.silu({x})", "f", False),
    ("F.leaky_relu({x}, 0.5)", "f", False),
    ("F.hardtanh({x})", "f", False),
    ("F.softplus({x})", "f", False),
    ("{x}.square()", "fi", False),
    ("{x}.clamp(-1, 2)", "fi", False),
    ("{x}.clamp(min=0)", "fi", False),
    ("torch.floor({x})", "f", True),
    ("torch.round({x})", "f", True),
    ("torch.trunc({x})", "f", True),
    ("torch.sign({x})", "fi", True),
    ("{x} * 2", "fi", False),
    ("{x} + 0.5", "f", False),
    ("1 - {x}", "fi", False),
    ("{x} / 2", "fi", False),
    ("{x} % 3", "fi", True),
    ("{x} // 2", "fi", True),
    ("{x} ** 2", "fi", False),
    ("~{x}", "ib", False),
    ("{x}.logical_not()", "fib", True),
    ("{x} > 0", "fi", True),
    ("{x} == 1", "fib", True),
    ("torch.isnan({x})", "fi", False),
    ("{x}.bool()", "fib", True),
    ("{x}.to(torch.int64)", "fib", True),
    ("{x}.to(torch.int32)", "fib", True),
    ("{x}.to(torch.float32)", "fib", False),
    ("{x}.to(torch.float64)", "fib", False),
    ("{x}.to(torch.float16)", "fib", False),
    ("{x}.to(torch.bfloat16)", "fib", False),
    ("{x}.contiguous()", "fib", False),
    ("{x}.clone()", "fib", False),
    ("{x}.detach()", "fib", False),
    ("torch.zeros_like({x})", "fib", False),
    ("torch.ones_like({x}) - {x}", "fi", False),
    ("torch.full_like({x}, 2)", "fi", False),
    ("torch.nan_to_num({x})", "fi", False),
    ("torch.diff({x})", "fi", False),
)
"""Texts of operators with one operand, the kinds of its dtype, whether it has to be exact."""
BINARY = (
    ("{x} + {y}", "fib", False),
    ("{x} - {y}", "fi", False),
    ("{x} * {y}", "fib", False),
    ("{x} / ({y}.abs() + 1)", "fi", False),
    ("torch.maximum({x}, {y})", "fi", False),
    ("torch.minimum({x}, {y})", "fi", False),
    ("torch.add({x}, {y}, alpha=2)", "fi", False),
    ("torch.sub({x}, {y}, alpha=3)", "fi", False),
    ("torch.atan2({x}, {y}.abs() + 1)", "f", False),
    ("torch.hypot({x}, {y}.abs() + 1)", "f", False),
    ("{x} > {y}", "fi", True),
    ("{x} <= {y}", "fi", True),
    ("{x} == {y}", "fib", True),
    ("{x} & {y}", "ib", False),
    ("{x} | {y}", "ib", False),
    ("{x} ^ {y}", "ib", False),
    ("torch.where({x} > 0, {x}, {y})", "fi", True),
    ("torch.lerp({x}, {y}.to({x}.dtype), 0.5)", "f", False),
    ("torch.addcmul({x}, {y}, {x}, value=2)", "f", False),
    ("torch.remainder({x}, {y}.abs() + 1)", "fi", True),
    ("{x}.expand_as({x} + {y})", "fib", False),
)
"""Texts of operators with two operands."""
REDUCTIONS = (
    ("{x}.sum()", "fib", False, False),
    ("{x}.sum({axis})", "fib", False, True),
    ("{x}.sum({axis}, keepdim=True)", "fib", False, True),
    ("{x}.mean()", "f", False, False),
    ("{x}.mean({axis})", "f", False, True),
    ("{x}.amax({axis})", "fi", False, True),
    ("{x}.amin({axis}, keepdim=True)", "fi", False, True),
    ("{x}.clamp(-1, 1).prod({axis})", "fi", False, True),
    ("{x}.max()", "fi", False, False),
    ("{x}.min({axis}).values", "fi", True, True),
    ("{x}.any({axis})", "fib", True, True),
    ("{x}.all()", "fib", True, False),
    ("{x}.std({axis}, correction=0)", "f", False, True),
    ("{x}.var(correction=0)", "f", False, False),
    ("{x}.cumsum({axis})", "fi", False, True),
    ("{x}.clamp(-1, 1).cumprod({axis})", "fi", False, True),
    ("torch.softmax({x}, {axis})", "f", False, True),
    ("torch.log_softmax({x}, {axis})", "f", False, True),
    ("torch.logsumexp({x}, {axis})", "f", False, True),
    ("torch.count_nonzero({x})", "fib", True, False),
    ("torch.linalg.vector_norm({x} + 3, 2, {axis})", "f", False, True),
    ("{x}.sort({axis}).values", "fi", False, True),
    ("F.layer_norm({x}, {x}.shape[-1:])", "f", False, True),
    ("F.normalize({x} + 3, dim={axis})", "f", False, True),
)
"""Texts of reductions, kinds of the dtype, exactness, whether they take an axis."""
VIEWS = (
    "{x}.reshape(-1)",
    "{x}.flatten()",
    "{x}.transpose({axis}, {other})",
    "{x}.movedim({axis}, {other})",
    "{x}.unsqueeze({axis})",
    "{x}.squeeze()",
    "{x}.squeeze({axis})",
    "{x}[None]",
    "{x}[..., None]",
    "{x}[0]",
    "{x}[..., -1]",
    "{x}[1:]",
    "{x}[..., :-1]",
    "{x}[::2]",
    "{x}[..., 1::2]",
    "{x}[-2:]",
    "{x}.narrow({axis}, 0, 2)",
    "{x}.select({axis}, 0)",
    "{x}.chunk(2, {axis})[0]",
    "{x}.split(2, {axis})[-1]",
    "{x}.unbind({axis})[0]",
    "{x}.diagonal()",
    "{x}.unfold({axis}, 2, 1)",
    "{x}.mT",
    "{x}.view(-1)",
    "{x}.view({x}.shape)",
    "{x}.as_strided(({x}.numel() // 2,), (2,), {x}.storage_offset())",
    "{x}.expand(2, *{x}.shape)",
    "{x}.permute({reversed})",
    "{x}.unflatten(0, (-1, 1))",
    "torch.atleast_2d({x})",
    "{x}.view_as({x})",
    "{x}.broadcast_to((2, *{x}.shape))",
    "{x}.swapaxes({axis}, {other})",
)
"""Texts of views."""
MOVES = (
    "torch.flip({x}, ({axis},))",
    "torch.roll({x}, 1, {axis})",
    "torch.cat([{x}, {x}], {axis})",
    "torch.cat([{x}, {x}[:1]])",
    "torch.stack([{x}, {x}.abs()], {axis})",
    "F.pad({x}, (1, 2))",
    "F.pad({x}, (-1, 1), value=3)",
    "{x}.repeat(2, *[1] * ({x}.dim() - 1))",
    "{x}.repeat_interleave(2, {axis})",
    "torch.tril({x})",
    "torch.triu({x}, 1)",
    "torch.rot90({x})",
    "torch.diag_embed({x})",
    "{x}[[0, -1]]",
    "{x}[..., [0, 0]]",
    "{x}[torch.arange({x}.shape[0] - 1, -1, -1)]",
    "{x}.index_select({axis}, torch.tensor([0, 0]))",
    "{x}.take(torch.tensor([[0, 1], [1, 0]]))",
    "torch.meshgrid({x}, {x}, indexing='ij')[0]",
)
"""Texts of operators that move elements; those that compute take integers and floats."""
WRITES = (
    ("{x}.mul_(2)", "fi"),
    ("{x}.add_(1)", "fi"),
    ("{x}.neg_()", "fi"),
    ("{x}.relu_()", "fi"),
    ("{x}.abs_()", "fi"),
    ("{x}.clamp_(-1, 1)", "fi"),
    ("{x}.zero_()", "fib"),
    ("{x}.fill_(2)", "fi"),
    ("{x}.logical_not_()", "b"),
    ("{x}[0] = 1", "fib"),
    ("{x}[..., -1] = 2", "fi"),
    ("{x}[1:] *= 2", "fi"),
    ("{x}[..., ::2] += 1", "fi"),
    ("{x}.select({axis}, 0).add_(1)", "fi"),
    ("{x}.narrow({axis}, 1, 1).mul_(2)", "fi"),
    ("{x}.transpose({axis}, 0).sub_(1)", "fi"),
    ("{x}.diagonal().fill_(3)", "fi"),
    ("{x}.view(-1)[:2].zero_()", "fib"),
    ("{x}[[0]] = 1", "fib"),
    ("{x}.masked_fill_({x} == 1, 2)", "fi"),
    ("{x}.tril_()", "fi"),
    ("{x}.index_fill_({axis}, torch.tensor([0]), 3)", "fi"),
    ("{x}.t_()", "fib"),
    ("{x}.unsqueeze_({axis})", "fib"),
    ("{x}.squeeze_()", "fib"),
    ("{x}.transpose_({axis}, 0)", "fib"),
)
"""Texts of writes without another operand."""
WRITES_OF_TWO = (
    ("{x}.add_({y})", "fi"),
    ("{x}.mul_({y})", "fi"),
    ("{x}.sub_({y}, alpha=2)", "fi"),
    ("{x}.copy_({y})", "fib"),
    ("{x}[:] = {y}", "fib"),
    ("{x}[0] = {y}", "fib"),
    ("{x}.lerp_({y}, 0.5)", "f"),
    ("{x}.addcmul_({y}, {y})", "f"),
    ("{x}.index_put_((torch.tensor([0]),), {y}, accumulate=True)", "fi"),
    ("{x}.index_put_((torch.tensor([0, -1]),), {y}[:1], accumulate=True)", "fi"),
    ("{x}.index_add_(0, torch.tensor([0, 0]), {y}[:2])", "fi"),
    ("{x}.index_copy_(0, torch.tensor([0]), {y}[:1])", "fib"),
    ("{x}.scatter_add_(0, torch.zeros_like({y}, dtype=torch.int64), {y})", "fi"),
    ("{x}.masked_fill_({x} > {y}, 1)", "fi"),
    ("torch.maximum({x}, {y}, out={x})", "fi"),
    ("torch.add({y}, 1, out={x})", "fi"),
    ("torch.mul({y}, {y}, out={x})", "fi"),
    ("torch.sum({y}, 0, out={x})", "f"),
    ("torch.neg({y}, out={x})", "fi"),
    ("torch.clamp({y}, -1, 1, out={x})", "fi"),
    ("torch.cumsum({y}, 0, out={x})", "f"),
    ("torch.cat([{y}, {y}], out={x})", "fib"),
    ("torch.transpose({x}, 0, -1).copy_({y})", "fib"),
)
"""Texts of writes of one value with another."""
PRODUCTS = (
    ("{x} @ {y}", "fi", None, None),
    ("{x} @ {y}.mT", "fi", None, None),
    ("{x}.mT @ {y}", "fi", None, None),
    ("torch.mm({x}, {y})", "fi", 2, 2),
    ("torch.mv({x}, {y})", "fi", 2, 1),
    ("torch.dot({x}, {y})", "fi", 1, 1),
    ("torch.outer({x}, {y})", "fi", 1, 1),
    ("torch.bmm({x}, {y})", "fi", 3, 3),
    ("torch.bmm({x}, {y}.mT)", "fi", 3, 3),
    ("F.linear({x}, {y})", "f", None, 2),
    ("torch.addmm({x}, {x}, {y})", "f", 2, 2),
    ("torch.einsum('ij,kj->ki', {x}, {y})", "fi", 2, 2),
    ("torch.einsum('...ij,...jk->...ki', {x}, {y}.mT)", "fi", None, None),
    ("torch.tensordot({x}, {y}, 1)", "fi", None, None),
    ("torch.baddbmm({x} @ {y}, {x}, {y})", "f", 3, 3),
    ("F.conv2d({x}, {x}[:2, :, :1, :2])", "f", 4, 4),
    ("F.conv2d({x}, {y}, padding=1)", "f", 4, 4),
    ("F.avg_pool2d({x} + {y}, 2)", "f", 4, 4),
    ("F.max_pool2d({x} + {y}, 2)", "f", 4, 4),
    ("F.scaled_dot_product_attention({x}, {y}, {y})", "f", 4, 4),
    ("torch.cdist({x}, {y}) ** 2", "f", 2, 2),
)
"""Texts of products, kinds of the dtype, and the ranks of the operands."""
GATHERS = (
    "{x}[{i}]",
    "{x}.index_select({axis}, {i}.reshape(-1))",
    "{x}.take({i})",
    "{x}.gather(0, {i})",
    "F.embedding({i}, {x})",
    "{x}[:, {i}]",
    "{x}[{i}, {i}]",
)
"""Texts of reads at computed positions."""


def draw_unary(writer: Writer) -> Drawn:
    """Return an operator with one operand."""
    text, kinds, is_exact = writer.choice(UNARY)
    return text.format(x=writer.pick(kinds, is_exact)), ()


def draw_binary(writer: Writer) -> Drawn:
    """Return an operator with two operands."""
    text, kinds, is_exact = writer.choice(BINARY)
    x = writer.pick(kinds, is_exact)
    return text.format(x=x, y=writer.like(x, kinds, is_exact)), ()


def draw_reduction(writer: Writer) -> Drawn:
    """Return a reduction."""
    text, kinds, is_exact, has_axis = writer.choice(REDUCTIONS)
    x = writer.pick(kinds, is_exact)
    return text.format(x=x, axis=writer.axis(x) if has_axis else 0), ()


def draw_view(writer: Writer) -> Drawn:
    """Return a view; strides are given for memory without gaps, whose contents are not promised."""
    text = writer.random.choice(VIEWS)
    is_whole = "as_strided" in text
    x = writer.pick(accepts=lambda tensor: tensor.is_contiguous() or not is_whole)
    if writer.values[x].dim() == 0:
        return writer.random.choice(("{x}[None]", "{x}.reshape(1, 1)")).format(x=x), ()
    order = tuple(reversed(range(writer.values[x].dim())))
    return text.format(x=x, axis=writer.axis(x), other=writer.axis(x), reversed=order), ()


def draw_move(writer: Writer) -> Drawn:
    """Return an operator that moves elements."""
    x = writer.pick("fi")
    return writer.random.choice(MOVES).format(x=x, axis=writer.axis(x)), ()


def draw_product(writer: Writer) -> Drawn:
    """Return a product."""
    text, kinds, first, second = writer.choice(PRODUCTS)
    x = writer.pick(kinds, rank=first)
    dtype = writer.values[x].dtype
    y = writer.pick(kinds, rank=second, accepts=lambda t: t.dtype is dtype)
    return text.format(x=x, y=y), ()


def draw_gather(writer: Writer) -> Drawn:
    """Return a read at positions that are computed from integers."""
    x, index = writer.pick(), writer.pick("i", is_exact=True)
    axis = writer.axis(x)
    extent = max(1, min(writer.values[x].shape))
    positions = f"({index}.long() % {extent})"
    return writer.random.choice(GATHERS).format(x=x, i=positions, axis=axis), ()


def draw_mask(writer: Writer) -> Drawn:
    """Return a choice by a mask."""
    mask, x = writer.pick("b"), writer.pick("fi")
    text = writer.random.choice(
        (
            "torch.where({m}, {x}, {x} * 2)",
            "{x}.masked_fill({m}, 1)",
            "torch.where({m}, {x}, 0)",
            "{x} * {m}",
        )
    )
    return text.format(m=mask, x=x), ()


def draw_write(writer: Writer) -> Drawn:
    """Return a write without another operand."""
    text, kinds = writer.choice(WRITES)
    x = writer.target(kinds)
    if "==" in text and not writer.is_exact(x):
        raise RefusedStatementError
    axis = writer.axis(x) if "{axis}" in text else 0
    return text.format(x=x, axis=axis), (x,)


def draw_write_of_two(writer: Writer) -> Drawn:
    """Return a write of one value with another."""
    text, kinds = writer.choice(WRITES_OF_TWO)
    x = writer.target(kinds)
    y = writer.pick(kinds)
    writer.check_operand(x, y)
    is_elementwise = not any(word in text for word in ("index", "scatter", "sum", "cat", "[", "tr"))
    if not is_elementwise and shares_storage(writer.values[x], writer.values[y]):
        raise RefusedStatementError
    if ">" in text and not (writer.is_exact(x) and writer.is_exact(y)):
        raise RefusedStatementError
    if "out=" in text and writer.needs_grad:
        raise RefusedStatementError
    if kind(writer.values[x]) != "f" and kind(writer.values[y]) == "f":
        raise RefusedStatementError
    return text.format(x=x, y=y), (x,)


FAMILIES: dict[str, tuple[Callable[[Writer], Drawn], int]] = {
    "elementwise": (draw_unary, 5),
    "elementwise of two": (draw_binary, 6),
    "reduction": (draw_reduction, 3),
    "view": (draw_view, 5),
    "move": (draw_move, 2),
    "product": (draw_product, 3),
    "gather": (draw_gather, 2),
    "mask": (draw_mask, 1),
    "write": (draw_write, 4),
    "write of two": (draw_write_of_two, 6),
}
"""The kinds of statements, and how likely they are."""


def random_program(seed: int, number: int) -> TorchProgram:
    """Return the program of a number in the set of a seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for attempt in count():
            program = _written(Writer(seed, number, attempt))
            if runs_in_pytorch(program):
                break
    return program


def runs_in_pytorch(program: TorchProgram) -> bool:
    """Return whether PyTorch can run a program and take its gradients."""
    try:
        for data in DATA:
            observed(program, defined(program), program.namespace(data))
    except RuntimeError:
        return False
    return True


def _written(writer: Writer) -> TorchProgram:
    """Write the program: inputs, statements, results."""
    draw = writer.random
    for _ in range(draw.choice((1, 2, 2, 3))):
        writer.add_input()
    writer.replay()
    writer.names = list(writer.inputs)
    length = draw.randint(3, 12)
    families = list(FAMILIES)
    weights = [FAMILIES[x][1] for x in families]
    for _ in range(ATTEMPTS):
        if len(writer.statements) == length:
            break
        family = draw.choices(families, weights)[0]
        writer.has_kink = False
        try:
            text, writes = FAMILIES[family][0](writer)
        except RefusedStatementError:
            continue
        name = None if writes else writer.fresh()
        line = f"{name} = {text}" if name else text
        if "out=" in text:
            shape = writer.values[writes[0]].shape
            is_added = writer.append(line, None, writes)
            if is_added and writer.values[writes[0]].shape != shape:
                writer.statements.pop()
                writer.replay()
                is_added = False
        else:
            is_added = writer.append(line, name, writes)
        if is_added:
            writer.tags.append(family)
    return _finished(writer)


def _finished(writer: Writer) -> TorchProgram:
    """Return the program with results drawn among its values."""
    draw = writer.random
    computed = [x for x in writer.names if x.startswith("v")]
    results = draw.sample(computed, min(len(computed), draw.choice((1, 2, 2, 3, 4))))
    if draw.random() < 0.15 or not results:
        results.append(draw.choice(writer.inputs))
    if computed and computed[-1] not in results:
        results.append(computed[-1])
    everything = [*writer.names, *writer.bases]
    sizes = [magnitude(values[x]) for x in everything for values, _ in writer.runs]
    return attrs.evolve(
        writer.draft(),
        results=tuple(results),
        is_exact=all(map(writer.is_exact, everything)),
        largest=max([1.0, *sizes]),
        is_dynamic=writer.number % 10 == 5,
        tags=tuple(sorted({*writer.tags, *writer.dtypes, *["gradients"] * writer.needs_grad})),
    )

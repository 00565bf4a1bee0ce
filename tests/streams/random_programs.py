"""Random programs on arrays, run by `passkit.xp` and by NumPy side by side."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from passkit import xp

SHAPES = ((24, 20), (1, 20), (24, 1), (20,), ())
"""Shapes that broadcast against each other, to (24, 20)."""


@define
class RandomProgram:
    """A program of operations, in-place updates, drops and reads on a pool of arrays.

    Integer-valued floats keep all results exact, so that any order of evaluation gives equal bits.

    Attributes:
        seed: decides about the program.
        length: the number of steps.
    """

    seed: int
    length: int
    rng: random.Random = field(init=False)
    arrays: list[Any] = field(factory=list)
    expected: list[Any] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def run(self) -> None:
        """Run the program; raises AssertionError where a result differs from NumPy's."""
        for _ in range(3):
            self.create()
        steps: list[tuple[Callable[[], None], int]] = [
            (self.create, 1),
            (self.operate, 8),
            (self.update_in_place, 3),
            (self.replace, 3),
            (self.drop, 3),
            (self.drop_in_another_thread, 1),
            (self.read, 2),
            (self.evaluate_some, 1),
        ]
        choices = [step for step, weight in steps for _ in range(weight)]
        for _ in range(self.length):
            self.rng.choice(choices)()
        for k in self.rng.sample(range(len(self.arrays)), len(self.arrays)):
            self.check(k)

    def check(self, k: int) -> None:
        """Compare an array with NumPy's."""
        np.testing.assert_array_equal(np.asarray(self.arrays[k]), self.expected[k], strict=True)

    def pick(self) -> int:
        """Return the index of an array."""
        return self.rng.randrange(len(self.arrays))

    def create(self) -> None:
        """Add an array of small integers."""
        shape = self.rng.choice(SHAPES[:2] if self.rng.random() < 0.7 else SHAPES)
        count = int(np.prod(shape, dtype=int))
        numbers = [self.rng.randint(-3, 3) for _ in range(count)]
        array = np.array(numbers, np.float32).reshape(shape)
        self.arrays.append(xp.asarray(array))
        self.expected.append(array)

    def operate(self) -> None:
        """Add the result of an operation on two arrays, or on an array and a number."""
        name = self.rng.choice(["add", "sub", "mul", "neg", "lt", "abs", "number"])
        a, b = self.pick(), self.pick()
        operands = (self.arrays, self.expected)
        for pool in operands:
            x, y = pool[a], pool[b]
            pool.append(_apply(name, x, y, self.seed))
        self._tame(-1)

    def _tame(self, k: int) -> None:
        """Keep numbers small, so that all arithmetic is exact."""
        if np.abs(self.expected[k]).max(initial=0) > 1000:
            self.arrays[k] = self.arrays[k] * 0
            self.expected[k] = self.expected[k] * np.float32(0)

    def update_in_place(self) -> None:
        """Update an array in place by another one of the same shape, or by a number."""
        a, b = self.pick(), self.pick()
        has_shape = self.expected[a].shape == self.expected[b].shape
        for pool in (self.arrays, self.expected):
            if pool is self.expected:
                pool[a] = pool[a].copy()  # no other array of the pool changes
            if has_shape and self.rng.random() < 2:
                pool[a] += pool[b]
            else:
                pool[a] *= 2
        self._tame(a)

    def replace(self) -> None:
        """Rebind a name of the pool to an expression of it, as loops do."""
        a = self.pick()
        for pool in (self.arrays, self.expected):
            pool[a] = pool[a] * 2 - pool[a]
            pool[a] = pool[a] + 1
        self._tame(a)

    def drop(self) -> None:
        """Forget an array."""
        if len(self.arrays) > 2:
            k = self.pick()
            del self.arrays[k], self.expected[k]

    def drop_in_another_thread(self) -> None:
        """Let another thread forget an array."""
        if len(self.arrays) > 2:
            k = self.pick()
            holder = [self.arrays.pop(k)]
            del self.expected[k]
            thread = threading.Thread(target=holder.clear)
            thread.start()
            thread.join()

    def read(self) -> None:
        """Compare an array with NumPy's in the middle of the program."""
        self.check(self.pick())

    def evaluate_some(self) -> None:
        """Evaluate up to three arrays together."""
        count = min(3, len(self.arrays))
        xp.eval(*self.rng.sample(self.arrays, count))


def _apply(name: str, x: Any, y: Any, number: int) -> Any:
    """Apply an operation to arrays of passkit or of NumPy."""
    if name == "add":
        return x + y
    if name == "sub":
        return x - y
    if name == "mul":
        return x * y
    if name == "neg":
        return -x
    if name == "abs":
        return abs(x)
    if name == "lt":
        return (x < y) * x
    return x * (number % 3) + 2

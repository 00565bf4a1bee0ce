"""The recorder in C and the one in Python do the same."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from passkit import xp
from passkit.errors import SettingError
from passkit.frontends.xp.runtime import current_stream
from passkit.streams import recorder, recording
from passkit.values import trees

SHAPES = ((40, 40), (40, 3), (3,), (), (1, 40), (0, 7), (300, 40, 5), (17,), (40, 1), (50, 0))
LOOPS = """
import json
import numpy as np
from passkit import xp

rng = np.random.default_rng(0)
results = []
with xp.config(small=0, compile_at=0):
    for n in (1000, 1000, 1300):
        x = xp.asarray(rng.random((n, 3)))
        y = xp.asarray(rng.random((n, 3)))
        for k in range(30):
            x = x * y + 0.5
            xp.eval(x)
            z = xp.sum(x, axis=0)
            xp.eval(z)
        results += [z, x]
        for k in range(30):
            x = (x * 2.0 + y) * (2.0 if k < 20 else 1.0 + k)
            x = x / xp.max(x)
            xp.eval(x, xp.mean(x))
        results.append(x)
        with xp.stream():
            w = y + k
            for _ in range(10):
                w = xp.reshape(w - 1.0, (3, -1)).reshape(n, 3)
                float(w[0, 0])
        for k in range(10):
            v = xp.roll(x, k % 3) - w[: n // 2][:1]
            xp.eval(v)
        results += [v, w]
        for k in range(12):
            c = xp.zeros_like(x)
            u = x * 1.5 + y
            v = u - 0.25
            t = xp.sum(u, axis=1)
            results.append(xp.asarray(float(t[3])))  # c, u and v stay pending; v is used later
            c[1:] = v[:-1]
            w = v * v + t[:, None] + c
            if k % 2:
                del u
            xp.eval(w)
            results.append(w)
results = [np.asarray(r).tobytes().hex()[:64] for r in results]
stats = xp.stats()
for name in ("explorations", "disk_hits"):  # the first of several processes explores
    stats["cache_hits"] += stats.pop(name)
print(json.dumps({"results": results, "stats": stats}))
"""
PROGRAM = """
import numpy as np
from passkit import xp
from passkit.streams import recorder
x = xp.asarray(np.arange(1000.0))
y = xp.asarray(np.arange(4.0))
z = 2 - (x * 0.5 + 1) / 3
print(recorder.IS_NATIVE, float(xp.sum(z)), (1 + y * y).tolist(), repr(-z))
"""


def native() -> ModuleType:
    """Return the recorder in C."""
    return recorder.EXTENSION.module()


class Recorded:
    """A random program recorded by one implementation, with all that can be observed."""

    def __init__(self, module: ModuleType, seed: int) -> None:
        self.module, self.queue = module, module.Queue()
        self.queue.processor = module.TrieCursor(module.TrieNode())
        operations = [self._operation(None), self._operation(None), self._operation((40, 40))]
        self.trail: list[Any] = []
        self._record(random.Random(seed), operations)
        assert self.queue.processor.position is None
        node = self.queue.processor.trie
        for key in self.queue.processor.keys:
            node = node.children.setdefault(key, module.TrieNode(key))
        # Three times: the trie guesses the next operation from the last time.
        for _ in range(3):
            self.queue.clear()
            self._record(random.Random(seed), operations)
            assert self.queue.processor.position is node

    def _record(self, chance: random.Random, operations: list[Any]) -> None:
        """Record a random program, and observe it."""
        module = self.module
        types = [module.ArrayType(np.dtype(d), s) for s in SHAPES for d in ("f4", "i8")]
        values = [module.Value(t, np.zeros(t.shape, t.dtype)) for t in types]
        scalar = module.Value(module.ArrayType(np.dtype("f4"), ()), np.zeros((), "f4"))
        scalar.is_scalar = True
        values.append(scalar)
        for _ in range(chance.randrange(1, 30)):
            operands = tuple(chance.choice(values) for _ in range(chance.randrange(0, 7)))
            value = module.Value(types[0])
            value.operation = operation = chance.choice(operations)
            value.operands, value.stream = operands, self.queue
            value.age = chance.randrange(2)
            self.queue.append(value)
            values.append(value)
            number = operations.index(operation)
            key = self.queue.processor.keys[-1]
            self.trail.append((number, key[1:], self.queue.dims, self.queue.num_new))
            self.trail.append(self.queue.processor.position is not None)
        required = [v for v in values if chance.random() < 0.1]
        self.trail.append(self.queue.state(required))
        inputs = tuple(range(len(self.queue.inputs)))
        arrays, nbytes = self.queue.arguments(inputs)
        self.trail.append(([a.shape for a in arrays], nbytes))
        last = len(self.queue.queue) - 1
        self.trail.append(self.queue.settle((last,), [np.zeros(3)]))
        settled = self.queue.queue[last]
        self.trail.append((settled.operation, settled.operands, settled.stream, settled.is_owned))

    def _operation(self, extents: Any) -> Any:
        """Return an operation; ``extents`` are those of a parameter ``shape``."""
        operation = self.module.OperationBase()
        operation.generic, operation.extents, operation.result_types = operation, extents, {}
        return operation


@pytest.mark.parametrize("seed", range(60))
def test_both_recorders_give_operations_the_same_relative_form(seed: int) -> None:
    """Keys, extents, flags, arguments and bytes of a random program are equal."""
    in_c = Recorded(native(), seed)
    in_python = Recorded(recording, seed)

    assert in_c.trail == in_python.trail


@pytest.mark.parametrize("seed", range(40))
def test_both_recorders_drop_the_same_operations(seed: int) -> None:
    """Of what earlier runs left pending, operations stay that are waited for or read."""
    trails = []
    for module in (native(), recording):
        queue = Recorded(module, seed).queue
        before = queue.queue
        before[-1].operation = before[0].operation  # the program settled it
        queue.prune(before[seed % 3 :: 5])
        positions = [before.index(v) for v in queue.queue]
        trails.append((positions, [k[1:] for k in queue.processor.keys], queue.dims, queue.num_new))

    assert trails[0] == trails[1]


@pytest.mark.skipif(not recorder.IS_NATIVE, reason="only the recorder in C is quicker for it")
def test_sequences_are_in_the_trie_before_operations_are_dropped() -> None:
    """So the relative form of a repeated sequence is not made again, though no plan is for it."""
    x = xp.asarray(np.arange(3000.0).reshape(1000, 3))
    positions = []
    with xp.config(small=0, compile_at=1 << 60), xp.stream():
        for _ in range(4):  # from the second time on, y is written with the sum
            y = x * 1.5
            z = y * y
            assert float(xp.sum(y)) == 1.5 * 2999 * 1500
            del z  # it stays in the queue until something is needed
            w = y + 1
            positions.append(current_stream().processor.position)
            xp.eval(w)

    assert positions[2] is not None and positions[2].plan is None
    assert positions[2] is positions[3]


@pytest.mark.parametrize("module", ["c", "python"])
def test_a_sequence_is_found_again_in_the_trie(module: str) -> None:
    """The cursor follows a stored sequence, leaves it at another operation, and returns."""
    types = native() if module == "c" else recording
    trie = types.TrieNode()
    first, second, other = ("a", None), ("b", None, 0), ("c", None)
    child = types.TrieNode(first)
    trie.children[first] = child
    child.children[second] = last = types.TrieNode(second)
    child.fire = ("plan", 1)
    cursor = types.TrieCursor(trie)

    for _ in range(2):
        cursor.reset([first, second])
        assert cursor.position is last and cursor.hit == ("plan", 1)
    cursor.add(other)
    assert cursor.position is None and cursor.keys == [first, second, other]
    trie.drop_children()
    cursor.reset([first])
    assert cursor.position is None and cursor.hit is None


def test_an_array_that_gets_another_value_leaves_its_old_one() -> None:
    """A value is alive while an array object holds it, in both implementations."""
    for types in (native(), recording):

        class Held(types.ArrayBase):  # type: ignore[misc, name-defined]
            __slots__ = ("__weakref__",)

        type = types.ArrayType(np.dtype("f4"), (2,))
        first, second, array = types.Value(type), types.Value(type), Held()
        array._value = first
        assert first.is_alive and first.array is array and not second.is_alive
        array._value = second
        assert not first.is_alive and first.array is None and second.is_alive
        del array
        assert not second.is_alive


def test_repeated_executions_are_counted_and_computed_alike() -> None:
    """Loops that repeat known plans give the same bits and counters with both recorders.

    They have results in place, results that stay pending, some of which are used later, results of
    two streams, other sizes, numbers that are equal at first, and plans that serve certain extents
    only.
    """
    in_c, in_python = (json.loads(run(c, LOOPS).stdout) for c in ("c", "python"))

    assert in_c["results"] == in_python["results"]
    assert in_c["stats"] == in_python["stats"]
    assert in_c["stats"]["aliases"] > 50 and in_c["stats"]["cache_hits"] > 150


@pytest.mark.parametrize("choice", ["c", "python"])
def test_the_environment_chooses_the_recorder(choice: str) -> None:
    """PASSKIT_RECORDER selects the implementation, and programs compute the same."""
    process = run(choice)

    assert process.stdout == (
        f"{choice == 'c'} -81583.33333333333 [1.0, 2.0, 5.0, 10.0] "
        "Array(pending: negative, subtract, divide, add, multiply; float64[1000])\n"
    )


def test_an_unknown_recorder_is_refused() -> None:
    """The error says what the variable may be."""
    process = run("rust")

    assert "PASSKIT_RECORDER must be 'c' or 'python', got 'rust'" in process.stderr


def test_the_choice_of_a_recorder_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another word than the two is refused."""
    monkeypatch.setenv("PASSKIT_RECORDER", "rust")

    with pytest.raises(SettingError, match="PASSKIT_RECORDER must be .*, got 'rust'"):
        recorder.implementation()


def run(choice: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    """Run a program with a choice of the recorder."""
    root = str(Path(__file__).resolve().parents[2])
    environ = {**os.environ, "PASSKIT_RECORDER": choice, "PYTHONPATH": root}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


CONTAINERS = [
    1.5,
    {},
    [],
    (),
    None,
    [1, (2.0, "a"), {"x": None, "y": [True]}],
    {"b": 1, "a": [2, 3]},
    {"a": [2, 3], "b": 1},
    {"a": (2, 3), "b": 1},
    {"b": 1, "a": [2, 3, 4]},
    {1: 2.0},
    [[[[]]]],
]


@pytest.mark.skipif(not recorder.IS_NATIVE, reason="compares the recorder in C")
def test_both_recorders_take_containers_apart_alike() -> None:
    """Leaves are found in a value of an equal structure only, and put together again."""
    for module in (native(), recording):
        for k, first in enumerate(CONTAINERS):
            leaves, structure = trees.flatten(first)
            for j, second in enumerate(CONTAINERS):
                found = module.leaves_like(structure, second)
                assert found == (leaves if j == k else None), (first, second)
            assert module.with_leaves(structure, leaves) == first
            forms = tuple((type(leaf), leaf) for leaf in leaves)
            assert module.values_like(structure, forms, first) == ()
            if leaves and leaves[0] not in ("a", True):
                other = module.with_leaves(structure, [leaves[0] + 1, *leaves[1:]])
                assert module.values_like(structure, forms, other) is None
        with pytest.raises(StopIteration):
            module.with_leaves(trees.flatten([1, 2])[1], [1])


@pytest.mark.skipif(not recorder.IS_NATIVE, reason="compares the recorder in C")
def test_python_floats_become_the_same_operands_in_c() -> None:
    """A number that appears for the first time is rounded as NumPy rounds it."""
    numbers = [0.1, -0.0, 1e-50, 3.4e38, 3.5e38, float("inf"), float("nan"), 1e300, 2.0**-149 * 1.5]
    for dtype in (np.float16, np.float32, np.float64):
        zeros = xp.asarray(np.zeros((), dtype))
        _ = zeros + 17.0  # from now on the type of numbers is known
        for number in numbers:
            with np.errstate(over="ignore"):
                value = recorder.operand_beside(number, zeros._value)
                expected = np.asarray(number, dtype)
            assert value.is_scalar and value.buffer.dtype == dtype and value.type.shape == ()
            assert value.buffer.tobytes() == expected.tobytes()

"""State: the arrays of variables that keep their values between calls."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from passkit.errors import FeedError, nearest
from passkit.graph.graph import Graph

if TYPE_CHECKING:
    from pathlib import Path


class Elsewhere(Protocol):
    """Where variables are that a device's programs use."""

    def fetch(self, name: str) -> None:
        """Bring a variable to the host, if only the device knows it."""
        ...

    def forget(self, name: str) -> None:
        """From now on the host alone knows a variable."""
        ...


class State:
    """Arrays by variable name, which executables share. Their memory stays where it is.

    ``lock`` is held by a call that reads or writes them. Programs of devices keep theirs
    ``elsewhere``, by device, until someone on the host asks; but where native code has the arrays'
    addresses, so that they are ``pinned``, each call brings back what it wrote. ``memory`` is the
    arrays as they are on the host, maybe out of date.
    """

    def __init__(self, arrays: Mapping[str, Any] | None = None) -> None:
        self.memory: dict[str, Any] = {k: _own(v) for k, v in (arrays or {}).items()}
        self.unset: set[str] = set()
        self.lock = RLock()
        self.elsewhere: dict[Any, Elsewhere] = {}
        self.pinned = False

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays themselves, to read and to write: devices give back what they have.

        After a call on a device they are out of date, until someone asks for them again.
        """
        self.bring()
        return self.memory

    def pin(self) -> None:
        """Let native code have the arrays' addresses: from now on their values are there."""
        with self.lock:
            self.bring()
            self.pinned = True

    def bring(self, but: Elsewhere | None = None) -> None:
        """Have all values on the host alone, or there and at ``but``."""
        with self.lock:
            for other in self.elsewhere.values():
                if other is not but:
                    for name in self.memory:
                        other.fetch(name)
                        other.forget(name)

    @classmethod
    def of(cls, graph: Graph) -> State:
        """The initial state of a graph's variables; one without a value is zero and unset."""
        return cls().holding(graph)

    def holding(self, graph: Graph) -> State:
        """This state, with the initial values of those variables of a graph that it lacks.

        Raises: FeedError when it holds a variable of another shape or dtype under the same name.
        """
        for node in graph.states:
            shape = tuple(int(n) for n in node.params["shape"])
            dtype = node.params["dtype"].numpy
            found = self.memory.get(node.name)
            if found is not None:
                if (found.shape, found.dtype) != (shape, dtype):
                    raise FeedError(
                        f"the graph's variable '{node.name}' is {dtype}{list(shape)}, and the "
                        f"state holds {found.dtype}{list(found.shape)} under that name; name one "
                        f"of them otherwise"
                    )
                continue
            initial = node.params["initial"]
            if initial is None:
                initial = np.zeros(shape, dtype)
                self.unset.add(node.name)
            self.memory[node.name] = _own(initial)
        return self

    def __getitem__(self, name: str) -> Any:
        """A copy of a variable's value. Raises: FeedError for an unknown name."""
        array = self._find(name)
        with self.lock:
            for other in self.elsewhere.values():
                other.fetch(name)
            return array.copy()

    def __setitem__(self, name: str, value: Any) -> None:
        """Give a variable a value of its shape and dtype."""
        array, given = self._find(name), np.asarray(value)
        if given.shape != array.shape or given.dtype != array.dtype:
            raise FeedError(
                f"variable '{name}' needs {array.dtype}{list(array.shape)}, got "
                f"{given.dtype}{list(given.shape)}"
            )
        with self.lock:
            for other in self.elsewhere.values():
                other.forget(name)
            array[...] = given
            self.unset.discard(name)

    def _find(self, name: str) -> Any:
        if name not in self.memory:
            raise FeedError(f"there is no variable '{name}'; {nearest(name, self.memory)}")
        return self.memory[name]

    def save(self, path: str | Path) -> None:
        """Write all variables to an ``.npz`` file."""
        with self.lock:
            np.savez(path, **self.arrays)

    def load(self, path: str | Path) -> None:
        """Read all variables from an ``.npz`` file. Raises: FeedError where one is missing."""
        with np.load(path, allow_pickle=False) as file:
            for name in self.memory:
                if name not in file:
                    raise FeedError(f"{path} has no variable '{name}'; {nearest(name, file.files)}")
            for name, array in self.memory.items():
                value = file[name]
                # The format knows NumPy's own dtypes; others come back as bytes without a name.
                nameless = value.dtype.kind == "V" and value.dtype.names is None
                same = nameless and value.dtype.itemsize == array.dtype.itemsize
                self[name] = value.view(array.dtype) if same and _is_foreign(array) else value

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}: {v.dtype}{list(v.shape)}" for k, v in self.memory.items())
        return f"State({shown})"


def _is_foreign(array: Any) -> bool:
    """Whether an array's dtype, such as bfloat16, is not NumPy's own."""
    return bool(array.dtype.isbuiltin == 2)


def _own(value: Any) -> Any:
    return np.array(value, order="C", copy=True)

"""State: the arrays of variables that keep their values between calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from passkit.errors import FeedError, GraphError, nearest
from passkit.graph.graph import Graph
from passkit.values import arguments

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
        given = arguments.mapping("State: arrays", arrays, "a mapping of names to arrays")
        self.memory: dict[str, Any] = {
            arguments.text("State: a variable's name", k): _own(arguments.numbers(f"State: {k}", v))
            for k, v in given.items()
        }
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
        arguments.instance("State: graph", graph, Graph, "a Graph")
        check_names(graph)
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
        array, given = self._find(name), arguments.numbers(f"variable '{name}': value", value)
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
        arguments.text("State: a variable's name", name)
        if name not in self.memory:
            raise FeedError(f"there is no variable '{name}'; {nearest(name, self.memory)}")
        return self.memory[name]

    def save(self, path: str | Path) -> None:
        """Write all variables to an ``.npz`` file."""
        path = arguments.path("State.save: path", path)
        try:
            with self.lock:
                np.savez(path, **self.arrays)
        except OSError as error:
            raise FeedError(f"the state cannot be written to {path}: {error.strerror}") from None

    def load(self, path: str | Path) -> None:
        """Read all variables from an ``.npz`` file. Raises: FeedError where one is missing."""
        path = arguments.path("State.load: path", path)
        try:
            self._read(path)
        except FeedError:
            raise
        except Exception as error:  # NumPy and zipfile raise many kinds for damaged archives
            why = arguments.shortened(str(error) or type(error).__name__)
            raise FeedError(
                f"{path} holds no state that can be read ({why}); State.save writes one"
            ) from error

    def _read(self, path: Path) -> None:
        """Read all variables; none changes unless all of them fit."""
        from zipfile import is_zipfile  # a warm start needs none

        found: dict[str, Any] = {}
        if path.exists() and not is_zipfile(path):
            raise ValueError("it is no archive of arrays")
        with np.load(path, allow_pickle=False) as file:
            for name, array in self.memory.items():
                if name not in file:
                    raise FeedError(f"{path} has no variable '{name}'; {nearest(name, file.files)}")
                shape, dtype = _header(file, name)  # before memory is taken for the elements
                # The format knows NumPy's own dtypes; others come back as bytes without a name.
                nameless = dtype.kind == "V" and dtype.names is None
                same = nameless and dtype.itemsize == array.dtype.itemsize
                dtype = array.dtype if same and _is_foreign(array) else dtype
                if (shape, dtype) != (array.shape, array.dtype):
                    raise FeedError(
                        f"variable '{name}' needs {array.dtype}{list(array.shape)}, got "
                        f"{arguments.shortened(str(dtype))}{arguments.shortened(str(list(shape)))}"
                    )
                found[name] = file[name].view(dtype)
        for name, value in found.items():
            self[name] = value

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled are the arrays; executables that share a state share it after that, too."""
        with self.lock:
            return _restored, ({k: v.copy() for k, v in self.arrays.items()}, set(self.unset))

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}: {v.dtype}{list(v.shape)}" for k, v in self.memory.items())
        return f"State({shown})"


def _restored(arrays: Mapping[str, Any], unset: set[str]) -> State:
    """A state that was pickled."""
    made = State(arrays)
    made.unset |= unset
    return made


def check_names(graph: Graph) -> None:
    """Refuse two state variables of one name, which would share one value.

    Raises: GraphError naming them.
    """
    repeated = [name for name, n in Counter(v.name for v in graph.states).items() if n > 1]
    if repeated:
        raise GraphError(
            f"two state variables of the graph are called '{repeated[0]}', and state is kept by "
            f"name; give them different names"
        )


def _header(file: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of an array in an archive, without its elements."""
    with file.zip.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        reader = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
        shape, _, dtype = getattr(np.lib.format, reader)(stream)
    return shape, dtype


def _is_foreign(array: Any) -> bool:
    """Whether an array's dtype, such as bfloat16, is not NumPy's own."""
    return bool(array.dtype.isbuiltin == 2)


def _own(value: Any) -> Any:
    return np.array(value, order="C", copy=True)

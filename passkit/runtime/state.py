"""State: the arrays of variables, which keep their values between calls."""

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


class VariableCopies(Protocol):
    """The copies of a state's variables on one device."""

    def fetch(self, name: str) -> None:
        """Copy the variable ``name`` to the host's array, if the device has a newer value."""
        ...

    def forget(self, name: str) -> None:
        """Discard the device's copy of the variable ``name``: the host's value is valid."""
        ...


class State:
    """The values of variables, arrays by name, which executables can share.

    The memory of an array is never moved.

    Args:
        arrays: initial values by variable name, a mapping or pairs; they are copied. None for none.

    Raises:
        ArgumentError: ``arrays`` is neither, a name is no string, or a value is no array of
            numbers.

    Attributes:
        memory: the arrays on the host, which may be out of date.
        unset: the names of variables that have no value yet.
        lock: held by a call that reads or writes the arrays.
        elsewhere: copies on devices, by device. They are copied to the host when it reads a
            variable.
        pinned: whether native code has the addresses of the arrays, so that each call on a device
            copies the variables that it wrote to the host.

    >>> import passkit as pk
    >>> state = pk.State({"w": np.float32([1, 2])})
    >>> state["w"] = np.float32([3, 4])
    >>> state["w"].tolist()
    [3.0, 4.0]
    """

    def __init__(self, arrays: Mapping[str, Any] | None = None) -> None:
        mapping = arguments.mapping("State: arrays", arrays, "a mapping of names to arrays")
        self.memory: dict[str, Any] = {
            arguments.text("State: a variable's name", k): _copied(
                arguments.numbers(f"State: {k}", v)
            )
            for k, v in mapping.items()
        }
        self.unset: set[str] = set()
        self.lock = RLock()
        self.elsewhere: dict[Any, VariableCopies] = {}
        self.pinned = False

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays themselves, to read and to write, with the newest values of all devices.

        After a call on a device they may be out of date until this property is read again.
        """
        self.bring()
        return self.memory

    def pin(self) -> None:
        """Allow native code to use the arrays' addresses.

        All values are copied to the host, now and after each later call on a device.
        """
        with self.lock:
            self.bring()
            self.pinned = True

    def bring(self, but: VariableCopies | None = None) -> None:
        """Copy all values that are newer on devices to the host, and discard all devices' copies.

        The device whose copies ``but`` are is left as it is. ``but`` None spares no device.
        """
        with self.lock:
            for other in self.elsewhere.values():
                if other is not but:
                    for name in self.memory:
                        other.fetch(name)
                        other.forget(name)

    @classmethod
    def of(cls, graph: Graph) -> State:
        """Return the initial state of a graph; variables without initial value are 0 and unset.

        Raises: ArgumentError if ``graph`` is no Graph, GraphError where two of its variables have
        the same name.
        """
        return cls().holding(graph)

    def holding(self, graph: Graph) -> State:
        """Add the variables of a graph that this state lacks, with their initial values.

        A variable without initial value is 0, and its name is added to ``unset``.

        Args:
            graph: the graph.

        Returns:
            This state, which is changed in place.

        Raises:
            FeedError: This state has a variable of the same name with another shape or dtype.
                Variables before it have been added.
            GraphError: Two variables of the graph have the same name.
            ArgumentError: ``graph`` is no Graph.
        """
        arguments.instance("State: graph", graph, Graph, "a Graph")
        check_names(graph)
        for node in graph.states:
            shape = tuple(int(n) for n in node.params["shape"])
            dtype = node.params["dtype"].numpy
            array = self.memory.get(node.name)
            if array is not None:
                if (array.shape, array.dtype) != (shape, dtype):
                    raise FeedError(
                        f"the graph's variable '{node.name}' needs {dtype}{list(shape)}, and the "
                        f"state has {array.dtype}{list(array.shape)} under that name; rename one "
                        f"of them"
                    )
                continue
            initial = node.params["initial"]
            if initial is None:
                initial = np.zeros(shape, dtype)
                self.unset.add(node.name)
            self.memory[node.name] = _copied(initial)
        return self

    def __getitem__(self, name: str) -> Any:
        """Return a copy of a variable's value, 0 where it is unset.

        Raises:
            FeedError: There is no variable of that name.
            ArgumentError: The name is no string.
        """
        array = self._find(name)
        with self.lock:
            for other in self.elsewhere.values():
                other.fetch(name)
            return array.copy()

    def __setitem__(self, name: str, value: Any) -> None:
        """Set the variable ``name`` to a copy of ``value``; a scalar is an array of rank 0.

        The dtype is not converted: a list of Python integers is int64, one of floats float64. The
        variable is no longer unset, and copies on devices are discarded.

        Raises:
            FeedError: There is no variable of that name, or the value has another shape or dtype.
            ArgumentError: The name is no string, or the value is no array of numbers.
        """
        array, new = self._find(name), arguments.numbers(f"variable '{name}': value", value)
        if new.shape != array.shape or new.dtype != array.dtype:
            raise FeedError(
                f"variable '{name}' needs {array.dtype}{list(array.shape)}, got "
                f"{new.dtype}{list(new.shape)}; assign an array of that dtype and shape"
            )
        with self.lock:
            for other in self.elsewhere.values():
                other.forget(name)
            array[...] = new
            self.unset.discard(name)

    def _find(self, name: str) -> Any:
        """Return the host's array of a variable, which may be out of date.

        Raises: FeedError, with the nearest name, if there is none; ArgumentError if ``name`` is no
        string.
        """
        arguments.text("State: a variable's name", name)
        if name not in self.memory:
            raise FeedError(f"there is no variable '{name}'; {nearest(name, self.memory)}")
        return self.memory[name]

    def save(self, path: str | Path) -> None:
        """Write all variables to an ``.npz`` file, an uncompressed ZIP archive of NAME.npy files.

        The suffix is appended where ``path`` lacks it; a file that exists is replaced. The folder
        must exist. A variable that is unset is written as 0.

        Raises:
            FeedError: The file cannot be written.
            ArgumentError: ``path`` is no path.
        """
        from zipfile import ZipFile  # a warm start writes no archives

        path = arguments.path("State.save: path", path)
        file = f"{path}" if path.suffix == ".npz" else f"{path}.npz"
        try:
            with self.lock, ZipFile(file, "w") as archive:  # savez refuses a variable called "file"
                for name, array in self.arrays.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                        np.lib.format.write_array(stream, array, allow_pickle=False)
        except OSError as error:
            raise FeedError(
                f"the state cannot be written to {path}: {error.strerror}; use another path"
            ) from None

    def load(self, path: str | Path) -> None:
        """Read all variables from an ``.npz`` file; none changes unless all of them match.

        The path is taken as it is: no suffix is appended. Arrays of the file that are no variables
        of this state are ignored. No variable is unset afterwards.

        Raises:
            FeedError: The file cannot be read, or a variable is missing in it or has another shape
                or dtype.
            ArgumentError: ``path`` is no path.
        """
        path = arguments.path("State.load: path", path)
        try:
            self._read(path)
        except FeedError:
            raise
        except Exception as error:  # NumPy and zipfile raise many kinds for damaged archives
            reason = arguments.shortened(str(error) or type(error).__name__)
            raise FeedError(
                f"{path} has no state that can be read ({reason}); State.save writes one"
            ) from error

    def _read(self, path: Path) -> None:
        """Read all variables from an ``.npz`` file; none changes unless all of them match.

        Raises:
            FeedError: A variable is missing in it or has another shape or dtype.
            ValueError: The file exists and is no zip archive.
            Exception: The file cannot be read; NumPy and zipfile raise errors of many types.
        """
        from zipfile import is_zipfile  # a warm start reads no archives

        values: dict[str, Any] = {}
        if path.exists() and not is_zipfile(path):
            raise ValueError("it is not an archive of arrays")
        with np.load(path, allow_pickle=False) as file:
            for name, array in self.memory.items():
                if name not in file:
                    raise FeedError(f"{path} has no variable '{name}'; {nearest(name, file.files)}")
                shape, dtype = _header(file, name)  # checked before the elements are allocated
                # The format has NumPy's own dtypes; others are read as bytes without a name.
                nameless = dtype.kind == "V" and dtype.names is None
                same = nameless and dtype.itemsize == array.dtype.itemsize
                dtype = array.dtype if same and _is_foreign(array) else dtype
                if (shape, dtype) != (array.shape, array.dtype):
                    raise FeedError(
                        f"variable '{name}' needs {array.dtype}{list(array.shape)}, and {path} has "
                        f"{arguments.shortened(str(dtype))}{arguments.shortened(str(list(shape)))};"
                        " load a file that was saved for the same model"
                    )
                values[name] = file[name].view(dtype)
        for name, value in values.items():
            self[name] = value

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle this state: the function `_restored`, and copies of the arrays.

        Executables that are pickled together still share a state when they are unpickled.
        """
        with self.lock:
            return _restored, ({k: v.copy() for k, v in self.arrays.items()}, set(self.unset))

    def __repr__(self) -> str:
        """Return the names, dtypes and shapes of all variables as text."""
        shown = ", ".join(f"{k}: {v.dtype}{list(v.shape)}" for k, v in self.memory.items())
        return f"State({shown})"


def _restored(arrays: Mapping[str, Any], unset: set[str]) -> State:
    """Return an unpickled state of ``arrays``; the variables ``unset`` have no value yet."""
    state = State(arrays)
    state.unset |= unset
    return state


def check_names(graph: Graph) -> None:
    """Check that no two state variables of a graph have the same name.

    Raises:
        GraphError: Two have; they would share one value.
    """
    repeated = [name for name, n in Counter(v.name for v in graph.states).items() if n > 1]
    if repeated:
        raise GraphError(
            f"two state variables of the graph are called '{repeated[0]}', and the state has one "
            f"value for each name; give them different names"
        )


def _header(file: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of the array ``name`` in an archive; do not read its elements.

    ``file`` is what `numpy.load` returns for an ``.npz`` file. Raises: ValueError for a damaged
    header, KeyError where the array is missing.
    """
    with file.zip.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        reader = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
        shape, _, dtype = getattr(np.lib.format, reader)(stream)
    return shape, dtype


def _is_foreign(array: Any) -> bool:
    """Return whether an array's dtype, such as bfloat16, was registered by another package."""
    return bool(array.dtype.isbuiltin == 2)


def _copied(value: Any) -> Any:
    """Return a C-contiguous copy of a value as an array."""
    return np.array(value, order="C", copy=True)

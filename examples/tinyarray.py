"""A NumPy-like array library on top of passkit, which records operations and fuses them.

An operation returns a `LazyArray` that records how it is computed. Nothing runs until a value is
requested; then all pending operations become one graph, which is compiled once for each structure.
"""

import weakref

import numpy as np

import passkit as pk

MOST_PENDING = 200
"""The most operations that may be pending, which bounds the graph that a loop records."""

_executables = {}
_alive = weakref.WeakValueDictionary()  # entry -> the LazyArray that it computes
runs = 0
"""How many graphs were run."""


class LazyArray:
    """Computed numbers, or an entry of a graph that computes them."""

    __array_priority__ = 100

    def __init__(self, data):
        self._data = np.asarray(data)
        self._entry = None
        self._leaves = {}
        self._pending = 0

    @classmethod
    def _waiting(cls, entry, inputs):
        """Return the array that ``entry`` computes from other arrays."""
        self = cls.__new__(cls)
        self._data, self._entry = None, entry
        self._leaves = {}
        for x in inputs:
            self._leaves.update(x._leaves)
        self._pending = 1 + sum(x._pending for x in inputs)
        _alive[entry] = self
        if self._pending > MOST_PENDING:
            self.numpy()
        return self

    @property
    def entry(self):
        """This array in a graph: a variable if its numbers are computed."""
        if self._entry is None:
            self._entry = pk.var("x", self._data.shape, self._data.dtype.name)
            self._leaves = {self._entry.node: self._data}
        return self._entry

    @property
    def shape(self):
        """The extents, which are known before anything runs."""
        return self._data.shape if self._data is not None else self._entry.shape

    @property
    def dtype(self):
        """The element type, as NumPy's."""
        return self._data.dtype if self._data is not None else self._entry.dtype.numpy

    @property
    def is_waiting(self):
        """Whether the numbers are still to be computed."""
        return self._data is None

    def numpy(self):
        """Return the numbers; the pending operations that they depend on run first."""
        if self._data is None:
            _run(self)
        return self._data

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __repr__(self):
        return repr(self.numpy()).replace("array", "LazyArray", 1)

    def __float__(self):
        return float(self.numpy())

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        return call(lambda x: x[key], self)

    @property
    def T(self):  # noqa: N802
        """The array with its axes in reverse order."""
        return call(pk.ops.transpose, self)

    def reshape(self, *shape):
        """Return the same elements in another shape."""
        return call(pk.ops.reshape, self, shape=shape)

    def sum(self, axis=None, keepdims=False):
        """Return the sum along axes."""
        return call(pk.ops.reduce_sum, self, axis=axis, keepdims=keepdims)

    def mean(self, axis=None, keepdims=False):
        """Return the mean along axes."""
        return call(pk.ops.reduce_mean, self, axis=axis, keepdims=keepdims)


def call(function, *args, **params):
    """Apply a function of passkit entries to arrays; numbers are passed unchanged."""
    arrays = [a for a in args if isinstance(a, LazyArray)]
    result = function(*[a.entry if isinstance(a, LazyArray) else a for a in args], **params)
    for a in arrays:
        a.entry  # noqa: B018  (creates its leaf)
    return LazyArray._waiting(result, arrays)


def _operator(name):
    """Return a method that applies an operator of entries."""

    def forward(self, other):
        return call(lambda a, b: getattr(a, name)(b), self, _array(other))

    return forward


def _array(x):
    """Return a NumPy array as a `LazyArray`; other values are returned unchanged."""
    return LazyArray(x) if isinstance(x, np.ndarray) else x


for _name in ("add", "sub", "mul", "truediv", "pow", "matmul", "mod", "floordiv"):
    setattr(LazyArray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(LazyArray, f"__r{_name}__", _operator(f"__r{_name}__"))
for _name in ("lt", "le", "gt", "ge"):
    setattr(LazyArray, f"__{_name}__", _operator(f"__{_name}__"))
LazyArray.__neg__ = lambda self: call(pk.ops.neg, self)


def __getattr__(name):
    """Return an operator of passkit, such as ``tinyarray.exp`` or ``tinyarray.where``."""
    op = getattr(pk.ops, name)
    return lambda *args, **params: call(op, *map(_array, args), **params)


def gradients(loss, arrays):
    """Return the gradients of a scalar with respect to arrays that it was computed from."""
    entries = pk.gradients(loss.entry, [a.entry for a in arrays])
    return [LazyArray._waiting(entry, [loss, *arrays]) for entry in entries]


def _run(requested):
    """Compute an array, and the live arrays that it depends on."""
    global runs
    graph = pk.Graph([requested._entry])
    waiting = {e: _alive[e] for n in graph.nodes for e in n.entries if e in _alive}
    waiting = {e: a for e, a in waiting.items() if a.is_waiting}
    graph = pk.Graph(list(waiting))
    if graph.key not in _executables:
        _executables[graph.key] = pk.compile(graph)
    run = _executables[graph.key]
    leaves = {node: data for a in waiting.values() for node, data in a._leaves.items()}
    feeds = {i.name: leaves[n] for i, n in zip(run.inputs, graph.inputs, strict=True)}
    for array, value in zip(waiting.values(), run(feeds), strict=True):
        array._data, array._entry = value, None
        array._leaves, array._pending = {}, 0
    runs += 1


def compiled():
    """Return the number of compiled structures."""
    return len(_executables)

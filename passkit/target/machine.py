"""Rates: what a core of a machine takes for what, beside the numbers of its `Target`.

The shipped ones were measured on Zen 4, one thread. `doctor --calibrate` measures bandwidths and
launches; these say how work, libraries and loops relate to them.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Rates:
    """Seconds, steps a second, and shares, for the model of `passkit.plan.costs` and its kin.

    Libraries: ``library`` steps of products of matrices a second, which take ``columns`` at a time;
    ``call`` seconds to begin with a matrix, and ``caches``: below how many bytes operands are found
    so much faster than in memory.

    Kernels: ``folds`` and ``points`` are what their work takes in truth, as a part of what bytes
    and operations say, where values are folded and where they are not; from ``far`` bytes on they
    come from memory, ``memory`` times as fast as the target says. Each array beyond ``streams``
    that a loop walks through takes a share ``stream`` more, as registers and ways of caches run
    out. A tile takes ``tile`` seconds, and ``part`` for each part of it that has a loop of its
    own; beginning with a matrix ``matrix``. Below ``few`` tiles a long kernel leaves threads idle.

    Products in kernels: ``flops`` steps a second from caches; ``chain`` seconds from one step of a
    sum to the next; ``copied`` and ``turned`` for an element of a right operand that is turned, one
    by one or in squares. Rows: a ``sweep`` over one, the end of a ``fold``, an expensive value, a
    ``curve``. Scratch beyond ``near`` bytes takes ``second`` seconds a byte more.

    Plans: a byte more at the peak of memory, from ``far`` on, counts as ``kept`` that are moved.
    """

    library: float = 5e10
    columns: int = 8
    call: float = 2.5e-8
    caches: tuple[tuple[int, float], ...] = ((1 << 20, 8.0), (4 << 20, 2.0), (1 << 62, 1.0))
    folds: float = 0.42
    points: float = 0.25
    far: int = 8 << 20
    memory: float = 1.25
    streams: int = 8
    stream: float = 0.05
    few: int = 4
    tile: float = 4e-8
    part: float = 3e-9
    matrix: float = 6e-8
    flops: float = 6e10
    chain: float = 1.2e-9
    copied: float = 6e-10
    turned: float = 1e-10
    sweep: float = 4e-9
    fold: float = 8e-9
    curve: float = 1e-8
    near: int = 32 << 10
    second: float = 5e-12
    kept: float = 2.0


ZEN4 = Rates()
"""Measured on a Zen 4 guest, one thread: medians of 500 kernels of networks, and OpenBLAS."""
DEVICE = Rates(folds=1.0, points=1.0, memory=1.0, streams=1 << 30, few=128, part=0.0)
"""Of a GPU, whose own numbers say what its work takes; tiles stay as long as on a CPU, since PoCL's
compiler dies of some kernels with more of them."""

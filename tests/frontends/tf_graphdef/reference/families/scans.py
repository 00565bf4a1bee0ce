"""Cases of cumulative sums and products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case


def cases(tf: Any) -> Iterator[Case]:
    """Yield every attribute of both, and an axis that is an input."""
    rng = np.random.default_rng(11)
    draws = (rng.normal(size=(3, 5, 2)).astype("f"), rng.integers(-9, 9, (3, 5, 2)))
    for op in ("Cumsum", "Cumprod"):
        for x in draws:
            for axis, exclusive, reverse in ((1, False, False), (-1, True, False), (0, True, True)):
                marks = "exclusive " * exclusive + "reverse " * reverse

                def function(
                    x: Any, op: str = op, axis: int = axis, e: bool = exclusive, r: bool = reverse
                ) -> Any:
                    return getattr(tf.raw_ops, op)(x=x, axis=axis, exclusive=e, reverse=r)

                yield Case(op, f"axis={axis} {marks}".strip(), function, {"x": x})
    for axis, exclusive, reverse in ((0, False, False), (1, True, False), (-1, False, True)):
        marks = "exclusive " * exclusive + "reverse " * reverse
        yield Case(
            "CumulativeLogsumexp",
            f"axis={axis} {marks}".strip(),
            lambda x, a=axis, e=exclusive, r=reverse: tf.raw_ops.CumulativeLogsumexp(
                x=x, axis=a, exclusive=e, reverse=r
            ),
            {"x": draws[0]},
            free=False,
        )
    yield Case(
        "Cumsum",
        "tf.cumsum of half",
        lambda x: tf.cumsum(x, axis=1),
        {"x": draws[0].astype("float16")},
    )

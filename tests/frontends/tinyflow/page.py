"""Writes docs/tinyflow.md from the table of the surface.

Run it by ``python -m tests.frontends.tinyflow.page``.
"""

from __future__ import annotations

from pathlib import Path

from passkit.frontends.tinyflow.missing_names import ALTERNATIVES
from tests.frontends.tinyflow import (
    cases_layers,
    cases_math,
    cases_more,
    cases_nn,
    cases_program,
)
from tests.frontends.tinyflow.surface import Also, Refused, Row, find, parameters

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tinyflow.md"
ROWS = {
    **cases_math.ROWS,
    **cases_nn.ROWS,
    **cases_layers.ROWS,
    **cases_program.ROWS,
    **cases_more.ROWS,
}
HEAD = """\
# tinyflow: TensorFlow 1's names

Made by `python -m tests.frontends.tinyflow.page` from the table that the tests call: each argument
below has an effect, or is refused by name where it says so. Arguments stand in TensorFlow's order.

```python
from passkit.frontends import tinyflow as tf
```

## What a run means

- An operator reads a variable as it is when the run begins, or after those writes that it depends
  on, through its inputs or `tf.control_dependencies`. So all gradients of a step are of the old
  values. A fetched variable is what it holds when the run ends.
- Writes happen in the order in which the fetches come to them; `assign_add` adds to the last.
- `tf.Session(target="cpu", fusion="stitch")`, or a `tf.ConfigProto` with these, chooses as
  `pk.compile` does; TinyFlow's `"cpu"`, `"gpu"` and `"gpu fusion"` are understood. A run is
  compiled once for each structure of fetches and feeds, and is one native call; unknown sizes stay
  free.
- A session holds all its variables; each keeps its address. Initial values are computed on the
  host.
- Draws differ from run to run, and repeat in another session for the same `tf.set_random_seed`.
- `tf.Session(check_numerics=True)` names the operator that makes the first NaN, and puts the
  variables back.
- Of a placeholder without a shape even the rank is unknown, until it is fed. Dropout keeps the
  shape of its input whatever that of `keep_prob`; a learning rate is a number, a full reduction a
  scalar, and `tf.reshape(x, [-1, 784])`, or a product or convolution with a filter of known shape,
  has the sizes that follow. A run is compiled for the ranks that are fed: first for their sizes,
  then with those sizes free that another feed had otherwise, so that a rank takes two programs.
- `tf.cond` computes both branches and chooses, unless the condition is known; variables are
  written by the one that is chosen. `tf.while_loop` is unrolled where its condition is known
  before the run, or of at most 64 `maximum_iterations`, and has gradients then; else it goes
  round in the run, and has none. `tf.scan`, `tf.map_fn` and `tf.foldl` are unrolled over a known
  number of elements.

TinyFlow's own names are there, too, and its examples run unchanged: `tf.normal(shape, stdev)`,
`tf.infer_variable_shapes(net, feed_dict)`, and in `tf.nn` `linear`, `conv2d(x, num_filter=,
ksize=)` (also `convolution_layer`), `max_pool` and `avg_pool` without a padding,
`batch_normalization(x)`, `flatten_layer` and `mean_sparse_softmax_cross_entropy_with_logits`. As
there, images have channels first in these calls. Layers of a placeholder without a shape have
weights whose shapes `infer_variable_shapes` finds, and to which the program assigns; others have
them, and initial values, from the start. Any two optimizers have their own slots, whatever their
names. Where there is no GPU, `tf.Session(config="gpu")` warns, and runs on the CPU.

"""


def page() -> str:
    """The text of the page."""
    lines = [HEAD + "## Names\n"]
    lines += ["| name | arguments | refused | what it is |", "|---|---|---|---|"]
    for name in sorted(ROWS):
        lines.append(_line(name, ROWS[name]))
    lines += ["", "## What is there instead", "", "| TensorFlow's | instead |", "|---|---|"]
    lines += [f"| `{name}` | {way} |" for name, way in sorted(ALTERNATIVES.items())]
    return "\n".join(lines) + "\n"


def _line(name: str, row: Row) -> str:
    known = parameters(name)
    refused = [a for a in known if _never(row, a)]
    taken = [a if d is None else f"{a}={d}" for a, d in known.items() if a not in refused]
    what = (find(name).__doc__ or "").strip().split("\n\n")[0]
    text = " ".join(what.split()).replace("|", r"\|")
    if text.startswith(name.split(".")[-1]) and "(" in text:
        text = "A named tuple of the two."
    cells = (f"`tf.{name}`", f"`{', '.join(taken)}`" if taken else "", ", ".join(refused), text)
    return "| " + " | ".join(cells) + " |"


def _never(row: Row, argument: str) -> bool:
    """Whether every value but the default is refused."""
    other = row.other.get(argument)
    other = other.value if isinstance(other, Also) else other
    return isinstance(other, Refused) and argument not in (*row.base, *SOMETIMES)


SOMETIMES = {
    *("num", "verify_shape", "shape", "expected_shape", "input", "filters", "dim", "rate"),
    *("dtype", "reuse"),
}
"""Arguments of which only some values are refused."""

if __name__ == "__main__":
    PAGE.write_text(page())

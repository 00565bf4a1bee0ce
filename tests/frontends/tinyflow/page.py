"""Write docs/tinyflow.md from the API cases: ``python -m tests.frontends.tinyflow.page``."""

from __future__ import annotations

from pathlib import Path

from passkit.frontends.tinyflow.missing_names import ALTERNATIVES
from tests.frontends.tinyflow.all_cases import CASES
from tests.frontends.tinyflow.surface import (
    CallCase,
    CombinedValue,
    RejectedValue,
    parameters,
    resolve_name,
)

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tinyflow.md"
HEAD = """\
# tinyflow: TensorFlow 1's names

Written by `python -m tests.frontends.tinyflow.page` from the cases that the tests call: each
argument below has an effect, or is rejected by name where the column says so. Arguments are in
TensorFlow's order.

```python
from passkit.frontends import tinyflow as tf
```

## Semantics of a run

- An operator reads a variable as it was when the run began, or as it is after those writes that the
  operator depends on through its inputs or `tf.control_dependencies`. A training step therefore
  computes all gradients from the old values. A fetched variable has the value that it holds when
  the run ends.
- Writes happen in the order in which the fetches reach them; `assign_add` adds to the last one.
- `tf.Session(target="cpu", fusion="stitch")`, or a `tf.ConfigProto` with these settings, takes the
  arguments of `pk.compile`, or TinyFlow's `"cpu"`, `"gpu"` and `"gpu fusion"`. A run is compiled
  once for each structure of fetches and feeds; after that it is one native call. Unknown sizes stay
  symbolic.
- A session holds all its variables, and each keeps its memory address. The host computes initial
  values.
- Random draws differ from run to run, and repeat in another session after `tf.set_random_seed`.
- `tf.Session(check_numerics=True)` names the operator that computed the first NaN, and restores the
  variables.
- A placeholder without a shape has an unknown rank until it is fed. Shapes that follow in any case
  are known: dropout keeps the shape of its input, a learning rate is a scalar, so is a reduction
  over all axes, and `tf.reshape(x, [-1, 784])`, or a product or convolution with a filter of known
  shape, has known sizes. A run is compiled for the ranks that are fed: first for the exact sizes,
  then once more with symbols for the sizes that differ in another feed.
- `tf.cond` computes both branches and selects the results, unless the condition is known while the
  graph is built. Only the chosen branch writes variables. `tf.while_loop` is unrolled, and has
  gradients, if its condition is known while the graph is built, or if `maximum_iterations` is at
  most 64; any other loop iterates in the run, and has no gradients. `tf.scan`, `tf.map_fn` and
  `tf.foldl` are unrolled over a known number of elements.

TinyFlow's own functions are there, too, and its examples run unchanged: `tf.normal(shape, stdev)`,
`tf.infer_variable_shapes(net, feed_dict)`, and in `tf.nn` `linear`, `conv2d(x, num_filter=,
ksize=)` (also `convolution_layer`), `max_pool` and `avg_pool` without a padding,
`batch_normalization(x)`, `flatten_layer` and `mean_sparse_softmax_cross_entropy_with_logits`. In
these calls channels come first, as in TinyFlow. A layer of a placeholder without a shape has
weights whose shapes `infer_variable_shapes` returns, and to which the program assigns values;
weights of other layers have shapes and initial values from the start. Optimizers have separate
slots, whatever their names. Without a GPU, `tf.Session(config="gpu")` warns and runs on the CPU.

"""


def page() -> str:
    """Return the text of the page."""
    lines = [HEAD + "## Names\n"]
    lines += ["| name | arguments | rejected | description |", "|---|---|---|---|"]
    for name in sorted(CASES):
        lines.append(_line(name, CASES[name]))
    lines += ["", "## Alternatives to missing names", "", "| name | alternative |", "|---|---|"]
    lines += [f"| `{name}` | {alternative} |" for name, alternative in sorted(ALTERNATIVES.items())]
    return "\n".join(lines) + "\n"


def _line(name: str, row: CallCase) -> str:
    """Return the table row of a name."""
    defaults = parameters(name)
    refused = [a for a in defaults if _never(row, a)]
    taken = [a if d is None else f"{a}={d}" for a, d in defaults.items() if a not in refused]
    description = (resolve_name(name).__doc__ or "").strip().split("\n\n")[0]
    text = " ".join(description.split()).replace("|", r"\|")
    if text.startswith(name.split(".")[-1]) and "(" in text:
        text = "A named tuple of the two."
    cells = (f"`tf.{name}`", f"`{', '.join(taken)}`" if taken else "", ", ".join(refused), text)
    return "| " + " | ".join(cells) + " |"


def _never(row: CallCase, argument: str) -> bool:
    """Return whether every value of an argument but its default is rejected."""
    other = row.other.get(argument)
    other = other.value if isinstance(other, CombinedValue) else other
    return isinstance(other, RejectedValue) and argument not in (*row.base, *SOMETIMES)


SOMETIMES = {
    "num",
    "verify_shape",
    "shape",
    "expected_shape",
    "input",
    "filters",
    "dim",
    "rate",
    "dtype",
    "reuse",
}
"""Arguments of which only some values are rejected."""

if __name__ == "__main__":
    PAGE.write_text(page())

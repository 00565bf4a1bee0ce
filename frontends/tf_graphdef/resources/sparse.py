"""Optimizers' updates of the rows that indices name: `SparseApply*`.

The rules are those of `updates`, for the named rows of the variable and of its slots; the others
keep what they have. Source: the `SparseApply` kernels of TensorFlow's `training_ops.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passkit import ops
from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unreachable
from passkit.frontends.tf_graphdef.library import SPARSE_APPLIES
from passkit.frontends.tf_graphdef.opaque import Anything, Distinct, Variable
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.resources.distinct import written_rows
from passkit.frontends.tf_graphdef.resources.updates import RULES, alike, number, rows_of
from passkit.frontends.tf_graphdef.resources.variables import fitting, variable_of
from passkit.frontends.tf_graphdef.scope import Site, structure
from passkit.frontends.tf_graphdef.value import value_of
from passkit.graph.infer import show_shape


@structure(*sorted(SPARSE_APPLIES), trains=True)
def _sparse_apply(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """A step of an optimizer for some rows: each is read, changed by the rule, and put back.

    Raises: ModelError for an input that fits no variable, and for indices that may repeat.
    """
    rule_name = site.call.node.op.removeprefix("Resource").removeprefix("SparseApply")
    count, others, rule = RULES[rule_name]
    names = others.replace("grad", "grad indices").split()
    site.needs(inputs, count + len(names))
    if (found := unreachable(site, inputs)) is not None:
        return found
    variables = [variable_of(site, x) for x in inputs[:count]]
    old = alike(site, variables)
    given = dict(zip(names, inputs[count:], strict=True))
    indices, grad = given.pop("indices"), given.pop("grad")
    at, rows = written_rows(site, indices, grad, rows_of(site, variables[0], old[0]))
    _check_once(site, variables[0], indices)
    read_at = indices.indices.entry if isinstance(indices, Distinct) else at
    taken = [ops.gather(x, read_at) for x in old]
    rest = {k: number(site, variables[0], k, site.value(x).entry, old[0]) for k, x in given.items()}
    rest["grad"] = number(site, variables[0], "grad", rows, taken[0])
    news = rule(site, *taken, *(rest[k] for k in names if k != "indices"))
    points = ops.expand_dims(at, axis=-1)
    for variable, whole, new in zip(variables, old, news, strict=True):
        put = ops.tensor_scatter_nd_update(whole, points, new)
        variable.value = fitting(site, variable, value_of(put))
    return (inputs[0],)


def _check_once(site: Site, variable: Variable, given: Anything) -> None:
    """Raises: ModelError for indices of which two may be equal, or that are no indices.

    TensorFlow takes equal ones one after the other, each from what the one before left.
    """
    if isinstance(given, Distinct):
        return
    indices = site.value(given)
    shape = site.call.shape(indices)
    if not indices.dtype.is_integer or len(shape) != 1:
        raise ModelError(
            f"{site.where} needs a vector of integers as indices of the variable "
            f"{short(variable.name)}, got {indices.dtype}{show_shape(shape)}"
        )
    known = indices.known
    if known is None or known.dtype == object or np.unique(known).size != known.size:
        raise ModelError(
            f"{site.where} changes rows of the variable {short(variable.name)} at "
            f"{site.call.shown(indices)}, where an index may stand twice; tf.unique and "
            f"tf.math.unsorted_segment_sum in front make them differ, as TensorFlow's optimizers do"
        )

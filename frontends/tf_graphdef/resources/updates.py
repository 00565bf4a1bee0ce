"""Updates of variables: the rules of TensorFlow 1's optimizers, and additions to rows.

A rule is a formula of entries. Source: the functors of TensorFlow's `training_ops.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.control_flow.calls import unreachable
from passkit.frontends.tf_graphdef.library import APPLIES, SCATTERS
from passkit.frontends.tf_graphdef.opaque import Anything, Handle, Variable
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.resources.distinct import written_rows
from passkit.frontends.tf_graphdef.resources.variables import fitting, variable_of
from passkit.frontends.tf_graphdef.scope import Site, read, structure
from passkit.frontends.tf_graphdef.value import value_of
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.values.size import Extent

Rule = Callable[..., Sequence[Entry]]
"""The new values of the variables, in the order in which they stand."""

RULES: dict[str, tuple[int, str, Rule]] = {}
"""For each optimizer how many variables it changes, its other inputs, and its rule."""


def _rule(name: str, count: int, others: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        RULES[name] = (count, others, function)
        return function

    return enter


@_rule("GradientDescent", 1, "alpha delta")
def _descent(site: Site, w: Entry, rate: Entry, g: Entry) -> Sequence[Entry]:
    return (w - rate * g,)


@_rule("Momentum", 2, "lr grad momentum")
def _momentum(
    site: Site, w: Entry, a: Entry, rate: Entry, g: Entry, keep: Entry
) -> Sequence[Entry]:
    a = a * keep + g
    return (w - (g * rate + a * keep * rate) if _nesterov(site) else w - rate * a), a


@_rule("KerasMomentum", 2, "lr grad momentum")
def _keras_momentum(
    site: Site, w: Entry, a: Entry, rate: Entry, g: Entry, keep: Entry
) -> Sequence[Entry]:
    a = a * keep - g * rate
    return (w + a * keep - g * rate if _nesterov(site) else w + a), a


@_rule("Adagrad", 2, "lr grad")
def _adagrad(site: Site, w: Entry, a: Entry, rate: Entry, g: Entry) -> Sequence[Entry]:
    a = a + g * g if site.call.attr("update_slots", "b", True) else a
    return w - g * rate * ops.rsqrt(a), a


@_rule("AdagradV2", 2, "lr epsilon grad")
def _adagrad2(
    site: Site, w: Entry, a: Entry, rate: Entry, tiny: Entry, g: Entry
) -> Sequence[Entry]:
    a = a + g * g if site.call.attr("update_slots", "b", True) else a
    return w - g * rate / (ops.sqrt(a) + tiny), a


@_rule("RMSProp", 3, "lr rho momentum epsilon grad")
def _rms(
    site: Site, w: Entry, ms: Entry, mom: Entry, rate: Entry, rho: Entry, keep: Entry,
    tiny: Entry, g: Entry,
) -> Sequence[Entry]:  # fmt: skip
    ms = ms + (g * g - ms) * (1 - rho)
    mom = mom * keep + g * rate * ops.rsqrt(ms + tiny)
    return w - mom, ms, mom


@_rule("CenteredRMSProp", 4, "lr rho momentum epsilon grad")
def _centered(
    site: Site, w: Entry, mg: Entry, ms: Entry, mom: Entry, rate: Entry, rho: Entry,
    keep: Entry, tiny: Entry, g: Entry,
) -> Sequence[Entry]:  # fmt: skip
    ms = ms + (g * g - ms) * (1 - rho)
    mg = mg + (g - mg) * (1 - rho)
    mom = mom * keep + g * rate * ops.rsqrt(ms - mg * mg + tiny)
    return w - mom, mg, ms, mom


@_rule("Adam", 3, "beta1_power beta2_power lr beta1 beta2 epsilon grad")
def _adam(
    site: Site, w: Entry, m: Entry, v: Entry, power1: Entry, power2: Entry, rate: Entry,
    beta1: Entry, beta2: Entry, tiny: Entry, g: Entry,
) -> Sequence[Entry]:  # fmt: skip
    step = rate * ops.sqrt(1 - power2) / (1 - power1)
    m = m + (g - m) * (1 - beta1)
    v = v + (g * g - v) * (1 - beta2)
    along = g * (1 - beta1) + beta1 * m if _nesterov(site) else m
    return w - along * step / (ops.sqrt(v) + tiny), m, v


@_rule("AdaMax", 3, "beta1_power lr beta1 beta2 epsilon grad")
def _adamax(
    site: Site, w: Entry, m: Entry, v: Entry, power1: Entry, rate: Entry, beta1: Entry,
    beta2: Entry, tiny: Entry, g: Entry,
) -> Sequence[Entry]:  # fmt: skip
    m = m + (g - m) * (1 - beta1)
    v = ops.maximum(beta2 * v, ops.abs(g))
    return w - rate / (1 - power1) * (m / (v + tiny)), m, v


@_rule("Adadelta", 3, "lr rho epsilon grad")
def _adadelta(
    site: Site, w: Entry, a: Entry, moved: Entry, rate: Entry, rho: Entry, tiny: Entry, g: Entry
) -> Sequence[Entry]:
    a = a * rho + g * g * (1 - rho)
    step = ops.sqrt(moved + tiny) * ops.rsqrt(a + tiny) * g
    return w - step * rate, a, moved * rho + step * step * (1 - rho)


@_rule("Ftrl", 3, "grad lr l1 l2 lr_power")
def _ftrl(
    site: Site, w: Entry, a: Entry, linear: Entry, g: Entry, rate: Entry, l1: Entry, l2: Entry,
    power: Entry,
) -> Sequence[Entry]:  # fmt: skip
    return _followed(site, w, a, linear, g, rate, l1, l2, None, power)


@_rule("FtrlV2", 3, "grad lr l1 l2 l2_shrinkage lr_power")
def _followed(
    site: Site, w: Entry, a: Entry, linear: Entry, g: Entry, rate: Entry, l1: Entry, l2: Entry,
    shrink: Entry | None, power: Entry,
) -> Sequence[Entry]:  # fmt: skip
    if site.call.attr("multiply_linear_by_lr", "b", False):
        raise ModelError(
            f"{site.where} has multiply_linear_by_lr = True, and only False is supported"
        )
    pull = g if shrink is None else g + 2.0 * shrink * w
    total = a + g * g
    now, before = ops.pow(total, -power), ops.pow(a, -power)
    linear = linear + pull - (now - before) / rate * w
    size = now / rate + 2.0 * l2
    away = (ops.sign(linear) * l1 - linear) / size
    return ops.where(ops.abs(linear) > l1, away, ops.zeros_like(w)), total, linear


def _nesterov(site: Site) -> bool:
    return bool(site.call.attr("use_nesterov", "b", False))


@structure(*sorted(APPLIES), trains=True)
def _apply(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """A step of an optimizer: its variables, as they are now, and what becomes of them.

    Raises: ModelError for an input that fits no variable.
    """
    count, others, rule = RULES[site.call.node.op.removeprefix("Resource").removeprefix("Apply")]
    names = others.split()
    site.needs(inputs, count + len(names))
    if (found := unreachable(site, inputs)) is not None:
        return found
    variables = [variable_of(site, x) for x in inputs[:count]]
    old = alike(site, variables)
    rest = [
        number(site, variables[0], name, site.value(x).entry, old[0])
        for name, x in zip(names, inputs[count:], strict=True)
    ]
    for variable, new in zip(variables, rule(site, *old, *rest), strict=True):
        variable.value = fitting(site, variable, value_of(new))
    return (inputs[0],)


def alike(site: Site, variables: Sequence[Variable]) -> list[Entry]:
    """What variables hold. Raises: ModelError where their types or shapes differ."""
    old = [read(site.program, v).entry for v in variables]
    for variable, entry in zip(variables, old, strict=True):
        if (entry.dtype, entry.shape) != (old[0].dtype, old[0].shape):
            raise ModelError(
                f"{site.where} changes {short(variables[0].name)}, {old[0].dtype}"
                f"{show_shape(old[0].shape)}, with {short(variable.name)}, {entry.dtype}"
                f"{show_shape(entry.shape)}; they need one type and shape"
            )
    return old


def number(site: Site, variable: Variable, name: str, entry: Entry, like: Entry) -> Entry:
    """An input of a rule: a gradient has the variable's shape, anything else is one number.

    Raises: ModelError for one of another type or shape.
    """
    wanted = like.shape if name in ("grad", "delta") else ()
    known = entry.shape is not None
    same = known and len(entry.shape or ()) == len(wanted or ())
    for n, m in zip(entry.shape or (), wanted or (), strict=False):
        same = same and (n == m or not isinstance(n, int))
    if entry.dtype != like.dtype or (known and not same):
        raise ModelError(
            f"{site.where} needs {like.dtype}{show_shape(wanted)} as {name} for the variable "
            f"{short(variable.name)}, got {entry.dtype}{show_shape(entry.shape)}"
        )
    return entry if entry.shape == wanted else ops.reshape(entry, shape=wanted)


@structure(*sorted(SCATTERS), trains=True)
def _scatter(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """Rows of a variable, added to, taken from, or written; equal indices add up.

    Raises: ModelError for indices that are no integers.
    """
    site.needs(inputs, 3)
    if (found := unreachable(site, inputs)) is not None:
        return found
    variable = variable_of(site, inputs[0])
    old = read(site.program, variable).entry
    at, rows = written_rows(site, inputs[1], inputs[2], rows_of(site, variable, old))
    if at.dtype is None or not at.dtype.is_integer or rows.dtype != variable.dtype:
        raise ModelError(
            f"{site.where} needs integers and rows of {variable.dtype} for the variable "
            f"{short(variable.name)}, got {at.dtype} and {rows.dtype}"
        )
    how = site.call.node.op.removeprefix("Resource").removeprefix("Scatter").lower()
    points = ops.expand_dims(at, axis=-1)
    new = getattr(ops, f"tensor_scatter_nd_{how}")(old, points, rows)
    variable.value = fitting(site, variable, value_of(new))
    return (inputs[0],) if isinstance(inputs[0], Handle) else ()


def rows_of(site: Site, variable: Variable, held: Entry) -> Extent:
    """How many rows a variable has. Raises: ModelError for one that is a single number."""
    if not held.shape:
        raise ModelError(
            f"{site.where} changes rows of the variable {short(variable.name)}, which has the "
            f"shape {show_shape(held.shape)} and no rows"
        )
    return held.shape[0]

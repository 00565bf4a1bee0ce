"""Calls of functions, and what passes anything on."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.opaque import Anything, Dead, Handle, Missing, Opaque, Strings
from passkit.frontends.tf_graphdef.scope import Every, Site, structure
from passkit.frontends.tf_graphdef.table import build

_STRING = 7  # DT_STRING


@structure("PartitionedCall", "StatefulPartitionedCall")
def _call(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    function = site.call.attr("f", "func")
    return site.function(function.name, function.attr, inputs, site.call.name)


@structure("Identity", "Snapshot", "StopGradient", "PreventGradient", "PlaceholderWithDefault")
def _identity(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 1)
    x = inputs[0]
    return (site.value(x) if isinstance(x, Handle) and x.by_reference else x,)


@structure("IdentityN")
def _identity_n(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    return [_identity(site, [x])[0] for x in inputs]


@structure("NoOp")
def _nothing(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    return ()


@structure("Const")
def _const(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """A constant of arrays stands in the table; one of strings is only passed on."""
    call = site.call
    value = call.node.attr["value"].tensor if "value" in call.node.attr else None
    if value is None or value.dtype != _STRING:
        return build(call, [])
    call.budget.take(sum(64 + len(s) for s in value.string_val), call.where)
    return (Strings(call.name, tuple(value.string_val)),)


def first_opaque(inputs: Sequence[Anything]) -> Opaque | None:
    """What makes a result out of reach: an operator not supported, or a branch not taken."""
    for kind in (Missing, Dead):
        for x in inputs:
            if isinstance(x, kind):
                return x
    return None


def unreachable(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything] | None:
    """The results of a node that has such an input; None where it has none."""
    found = first_opaque(inputs)
    return None if found is None else Every(type(found)(site.call.name))


@structure("LoopCond")
def _passed(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    site.needs(inputs, 1)
    return tuple(inputs)


@structure("Placeholder")
def _placeholder(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    raise ModelError(
        f"{site.where} stands in {site.scope.body.where}, and only the model's own graph has inputs"
    )

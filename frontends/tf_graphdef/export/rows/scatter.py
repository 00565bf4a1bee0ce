"""Writes at indices that are data: into elements laid flat, behind one for what is dropped."""

from __future__ import annotations

from typing import Any

from passkit.frontends.tf_graphdef.export.table import Call, Result, row
from passkit.frontends.tf_graphdef.export.writer import FLOAT32, INT32, INT64, Tensor
from passkit.ops.rules import make
from passkit.ops.scattering import GATHERS
from passkit.size import numel

_FOLDS = {
    **{"update": "TensorScatterUpdate", "add": "TensorScatterAdd", "sub": "TensorScatterSub"},
    **{"min": "TensorScatterMin", "max": "TensorScatterMax"},
}
_NAMES = {
    **{f"index_{fold}": ("index", fold) for fold in _FOLDS},
    **{f"tensor_scatter_nd_{fold}": ("nd", fold) for fold in _FOLDS},
    **{
        f"{verb}_along_axis": ("along_axis", fold)
        for verb, fold in (("put", "update"), ("add", "add"))
    },
}


@row(*_NAMES)
def _scatter(call: Call, x: Tensor, indices: Tensor, updates: Tensor) -> Result:
    """What reads the same elements says where they lie: it is given the positions themselves.

    Position 0 takes what is out of range.
    """
    way, fold = _NAMES[call.name]
    shape, total = call.shape(), numel(call.shape())
    if total == 0:
        return None
    bounds = (call.const(1, INT64), call.size(total + 1), call.const(1, INT64))
    counted = call.reshaped(call.op("Range", *bounds, like="Tidx"), shape)
    params = dict(call.params)

    def places(x: Any, indices: Any) -> Any:
        return make(GATHERS[way], x, indices, **params)

    given = (shape, call.shape(1))
    (at,) = call.expanded(places, counted, indices, shapes=given, last=False)
    at = call.op("Reshape", at, call.const([-1, 1]), Tshape=INT32)
    narrow = x.dtype.is_float and x.dtype.nbytes == 2 and fold in ("add", "sub")
    work = FLOAT32 if narrow else x.dtype
    flat = [
        call.op("Reshape", call.scope.cast(t, work), call.const([-1]), Tshape=INT32)
        for t in (x, updates)
    ]
    whole = call.op("ConcatV2", call.const([0], work), flat[0], call.const(0), N=2, Tidx=INT32)
    made = call.op(_FOLDS[fold], whole, at, flat[1], Tindices=INT64)
    rest = call.op("Slice", made, call.const([1]), call.const([-1]), Index=INT32)
    if narrow:
        return call.scope.cast(call.reshaped(rest, shape), x.dtype, last=True)
    return call.reshaped(rest, shape, last=True)

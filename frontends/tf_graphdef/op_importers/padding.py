"""Importers of padding, and of operators that move blocks of space to channels or batches."""

from __future__ import annotations

from passkit.errors import ModelError, ShapeError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.node import Entry
from passkit.values.size import Extent

PaddingWidths = tuple[tuple[Extent, Extent], ...]
MODES = {b"REFLECT": "reflect", b"SYMMETRIC": "symmetric"}


def pairs(
    call: ImportCall, value: ImportedValue, role: str, axes: int | None = None
) -> PaddingWidths:
    """Return an input of shape (axes, 2) as a pair (before, after) for each axis.

    Args:
        call: The node.
        value: The input, of shape (axes, 2).
        role: Name of the input in errors.
        axes: The number of axes that it must have; any by default.

    Raises:
        ModelError: If it has another shape, depends on data, is not of integers, or has over 64 of
            them.
    """
    shape = value.shape
    if shape is None or len(shape) != 2 or shape[1] != 2 or axes not in (None, shape[0]):
        rows = "axes" if axes is None else axes
        raise ModelError(f"{call.where} needs {role} of shape ({rows}, 2), got {call.shown(value)}")
    if value.array is None:
        call.extents(value, role)
    assert value.array is not None
    flat_value = ImportedValue(value.name, value.dtype, array=value.array.reshape(-1))
    flat = call.extents(flat_value, role)
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _widths(call: ImportCall, x: ImportedValue, paddings: ImportedValue) -> PaddingWidths:
    """Return the padding (before, after) of each axis of ``x``.

    Args:
        call: The node.
        x: The array to pad.
        paddings: Numbers of elements before and after, of shape (axes, 2); may be symbolic.

    Raises:
        ModelError: If the rank of ``x`` is unknown, or ``paddings`` are not known integers of shape
            (axes, 2), negative, or of another number of axes.
    """
    widths = pairs(call, paddings, "paddings")
    if len(widths) != len(call.shape(x)) or any(
        isinstance(n, int) and n < 0 for pair in widths for n in pair
    ):
        raise ModelError(
            f"{call.where} needs paddings of at least 0 for each of {len(call.shape(x))} axes, got "
            f"{call.shown(paddings)}"
        )
    return widths


@op_importer("Pad")
def _pad(call: ImportCall, x: ImportedValue, paddings: ImportedValue) -> ImportResult:
    """Import Pad: surround ``x`` with zeros.

    ``paddings`` are the numbers of zeros before and after, of shape (axes, 2), known during import
    up to symbolic sizes. ``call`` is the node.

    Raises:
        ModelError: If the rank of ``x`` is unknown, or ``paddings`` depend on data, are negative or
            of another shape.
    """
    return ops.pad_with(x.entry, pad_width=_widths(call, x, paddings), name=call.name)


@op_importer("PadV2")
def _pad_v2(
    call: ImportCall, x: ImportedValue, paddings: ImportedValue, value: ImportedValue
) -> ImportResult:
    """Import PadV2: surround ``x`` with the scalar ``value``, which may depend on data.

    ``paddings`` are the numbers of elements before and after, of shape (axes, 2), known during
    import up to symbolic sizes. ``call`` is the node.

    Raises:
        ModelError: If the rank of ``x`` is unknown, or ``paddings`` depend on data, are negative or
            of another shape.
        ShapeError: If ``value`` depends on data, or is no scalar, and does not broadcast.
        DTypeError: If a known ``value`` of one element does not fit the dtype of ``x``, such as 2.5
            integers or 2j floats; or if the dtypes differ, and ``value`` depends on data or has
            several elements, or ``x`` is complex.
    """
    widths = _widths(call, x, paddings)
    array = value.array
    if array is not None and array.dtype != object and array.size == 1 and x.dtype.kind != "c":
        return ops.pad_with(x.entry, pad_width=widths, value=array.item(), name=call.name)
    ones = ops.full(call.shape(x), True, dtype="bool")
    is_inside = ops.pad_with(ones, pad_width=widths, value=False)
    return ops.where(
        is_inside, ops.pad_with(x.entry, pad_width=widths), value.entry, name=call.name
    )


def _quoted(value: bytes) -> str:
    """Format ``value``, an attribute of bytes, for a message, shortened."""
    return short(value.decode(errors="replace"))


def _mode(call: ImportCall) -> str:
    """Return passkit's name, "reflect" or "symmetric", of the attribute ``mode``.

    ``call`` is the node.

    Raises:
        ModelError: If the attribute is missing, of another kind, or neither REFLECT nor SYMMETRIC.
    """
    mode = call.attr("mode", "s")
    if mode not in MODES:
        raise ModelError(f"{call.where} needs the mode REFLECT or SYMMETRIC, got {_quoted(mode)}")
    return MODES[mode]


@op_importer("MirrorPad")
def _mirror_pad(call: ImportCall, x: ImportedValue, paddings: ImportedValue) -> ImportResult:
    """Import MirrorPad: surround ``x`` with its mirror; REFLECT does not repeat the border.

    ``paddings`` are the numbers of elements before and after, of shape (axes, 2), known during
    import up to symbolic sizes. ``call`` is the node.

    Raises:
        ModelError: If the rank of ``x`` is unknown, ``paddings`` depend on data, are negative or of
            another shape, or ``mode`` is missing, of another kind or unknown.
        ShapeError: If an axis has too few elements to mirror.
    """
    widths = _widths(call, x, paddings)
    return ops.pad(x.entry, pad_width=widths, mode=_mode(call), name=call.name)


@op_importer("MirrorPadGrad")
def _mirror_pad_grad(call: ImportCall, dy: ImportedValue, paddings: ImportedValue) -> ImportResult:
    """Import the gradient of a mirror padding: padded elements add to those that they mirror.

    Args:
        call: The node; its attribute is ``mode``.
        dy: Gradient of the padded array.
        paddings: The padding, of shape (axes, 2), known during import up to symbolic sizes.

    Raises:
        ModelError: If the rank of ``dy`` is unknown, ``paddings`` depend on data, are negative or
            of another shape, or ``mode`` is missing, of another kind or unknown.
        ShapeError: If an axis without its padding has fewer elements than the padding mirrors.
        DTypeError: If ``dy`` is of bools and padded.
    """
    gradient, is_reflect = dy.entry, _mode(call) == "reflect"
    for axis, (a, b) in enumerate(_widths(call, dy, paddings)):
        gradient = _add_mirrored(gradient, axis, a, b, int(is_reflect))
    return gradient


def _add_mirrored(dy: Entry, axis: int, a: Extent, b: Extent, skip: int) -> Entry:
    """Return the gradient of a mirror padding of one axis: the inner part plus both flipped ends.

    Args:
        dy: Gradient of the padded array.
        axis: The axis.
        a: Number of elements that were padded before.
        b: Number of elements that were padded after.
        skip: Elements between the border and its first mirror image: 1 for reflect, 0 for
            symmetric.

    Raises:
        ShapeError: If the inner part has fewer elements than an end mirrors: the larger of ``a``
            and ``b``, plus ``skip``.
        DTypeError: If ``dy`` is of bools, and ``a`` or ``b`` is not 0.
    """
    shape = dy.shape
    assert shape is not None
    n = shape[axis] - a - b
    if isinstance(n, int) and isinstance(a, int) and isinstance(b, int):
        longest = max(a, b)
        if longest and n < longest + skip:
            raise ShapeError(
                f"the gradient of a mirror padding needs {longest + skip} inner element(s) or more "
                f"along axis {axis}, got {n} for a padding of {a} and {b}"
            )

    def section(begin: Extent, size: Extent) -> Entry:
        first = tuple(begin if k == axis else 0 for k in range(len(shape)))
        sizes = tuple(size if k == axis else m for k, m in enumerate(shape))
        return ops.slice(dy, begin=first, size=sizes)  # type: ignore[no-any-return]

    def add_flipped(x: Entry, before: Extent, size: Extent) -> Entry:
        width = tuple(
            (before, n - before - size) if k == axis else (0, 0) for k in range(len(shape))
        )
        return ops.pad_with(ops.flip(x, axis=axis), pad_width=width)  # type: ignore[no-any-return]

    out = section(a, n)
    if a != 0:
        out = out + add_flipped(section(0, a), skip, a)
    if b != 0:
        out = out + add_flipped(section(a + n, b), n - b - skip, b)
    return out


@op_importer("SpaceToDepth", "DepthToSpace")
def _depth(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import SpaceToDepth and DepthToSpace: move blocks of pixels to channels, or back.

    ``call`` is the node.

    Raises:
        ModelError: If the attribute ``data_format`` is neither NHWC nor NCHW, ``block_size`` is
            missing, or an attribute is of another kind.
        ShapeError: If ``x`` has not four axes, the block size is below 1, or a size is no known
            multiple of it.
    """
    layout = call.attr("data_format", "s", b"NHWC")
    if layout not in (b"NHWC", b"NCHW"):
        raise ModelError(f"{call.where} needs the data_format NHWC or NCHW, got {_quoted(layout)}")
    op = ops.space_to_depth if call.node.op == "SpaceToDepth" else ops.depth_to_space
    return op(
        x.entry,
        block_size=call.attr("block_size", "i"),
        data_format=layout.decode(),
        name=call.name,
    )


@op_importer("SpaceToBatchND")
def _space_to_batch(
    call: ImportCall, x: ImportedValue, block: ImportedValue, paddings: ImportedValue
) -> ImportResult:
    """Import SpaceToBatchND: pad the spatial axes, then move blocks of them to the batch.

    Args:
        call: The node.
        x: Shape (batch, *space, …).
        block: Extent of a block along each spatial axis.
        paddings: Number of zeros (before, after) along each spatial axis, of shape (axes, 2).

    Raises:
        ModelError: If ``block`` or ``paddings`` is not known or of another shape.
        ShapeError: If a number is invalid, or a padded axis is no known multiple of its block.
    """
    blocks = call.ints(block, "block_shape")
    widths = pairs(call, paddings, "paddings", len(blocks))
    return ops.space_to_batch(x.entry, block_shape=blocks, paddings=widths, name=call.name)


@op_importer("BatchToSpaceND")
def _batch_to_space(
    call: ImportCall, x: ImportedValue, block: ImportedValue, crops: ImportedValue
) -> ImportResult:
    """Import BatchToSpaceND: move blocks from the batch back to spatial axes, then crop these.

    Args:
        call: The node.
        x: Shape (batch, *space, …).
        block: Extent of a block along each spatial axis.
        crops: Number of elements to remove (before, after) along each spatial axis.

    Raises:
        ModelError: If ``block`` or ``crops`` is not known or of another shape.
        ShapeError: If a number is invalid, more is cropped than there is, or the batch is no known
            multiple of the block.
    """
    blocks = call.ints(block, "block_shape")
    widths = pairs(call, crops, "crops", len(blocks))
    return ops.batch_to_space(x.entry, block_shape=blocks, crops=widths, name=call.name)


@op_importer("SpaceToBatch")
def _space_to_batch_images(
    call: ImportCall, x: ImportedValue, paddings: ImportedValue
) -> ImportResult:
    """Import SpaceToBatch: pad images ``x`` with zeros, then move square blocks to the batch.

    The attribute ``block_size`` is the extent of a block, ``paddings`` the numbers of zeros
    (before, after) of height and width, known during import. ``call`` is the node.

    Raises:
        ModelError: If ``paddings`` are not known or of another shape, or ``block_size`` is missing
            or of another kind.
        ShapeError: If a number is invalid, or a padded axis is no known multiple of the block.
    """
    blocks = (call.attr("block_size", "i"),) * 2
    widths = pairs(call, paddings, "paddings", len(blocks))
    return ops.space_to_batch(x.entry, block_shape=blocks, paddings=widths, name=call.name)


@op_importer("BatchToSpace")
def _batch_to_space_images(
    call: ImportCall, x: ImportedValue, crops: ImportedValue
) -> ImportResult:
    """Import BatchToSpace: move square blocks from the batch of ``x`` back to space, then crop.

    The attribute ``block_size`` is the extent of a block, ``crops`` the numbers of elements to
    remove (before, after) of height and width, known during import. ``call`` is the node.

    Raises:
        ModelError: If ``crops`` are not known or of another shape, or ``block_size`` is missing or
            of another kind.
        ShapeError: If a number is invalid, more is cropped than there is, or the batch is no known
            multiple of the block.
    """
    blocks = (call.attr("block_size", "i"),) * 2
    widths = pairs(call, crops, "crops", len(blocks))
    return ops.batch_to_space(x.entry, block_shape=blocks, crops=widths, name=call.name)

"""What stands on boxes and arrows: names, calls with their parameters, types and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from passkit.graph.node import Entry, Node
from passkit.graph.op import Op, get_op
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, Size, numel
from passkit.values.units import bytes_text
from passkit.viz.sizes import atom_text, size_text


def as_is(size: Extent) -> Extent:
    """Return a size unchanged."""
    return size


WIDEST = 44
"""Letters beyond which a call takes several lines: renderers judge the width of text by guess."""


def nbytes(shape: Shape, dtype: DType) -> str:
    """How much memory a value takes, with its unknown sizes as factors.

    >>> from passkit.values.dtype import float32
    >>> from passkit.values.size import Size
    >>> nbytes((32, 512), float32), nbytes((Size.symbol("n"), 512), float32)
    ('64 KiB', '2·n KiB')
    """
    sizes = arguments.sequence("nbytes: shape", shape, (int, Size), "a sequence of sizes")
    arguments.instance("nbytes: dtype", dtype, DType, "a DType")
    return extent_text(numel(sizes) * dtype.nbytes)


def extent_text(total: Extent) -> str:
    """A number of bytes, perhaps of unknown sizes."""
    if isinstance(total, int):
        return bytes_text(total)
    if len(total.terms) == 1:
        (atoms, count), *_ = total.terms
        number, unit = bytes_text(count).split()
        factors = "·".join([number, *map(atom_text, atoms)])
        return f"{factors} {'bytes' if unit == 'B' else unit}"
    return f"{size_text(total)} bytes"


def extent_of(entries: Iterable[Entry]) -> Extent | None:
    """The bytes of several values; None where one is not known."""
    total: Extent = 0
    for entry in entries:
        if entry.shape is None or entry.dtype is None:
            return None
        total = total + numel(entry.shape) * entry.dtype.nbytes
    return total


def type_lines(entry: Entry, known: Callable[[Extent], Extent] = as_is) -> tuple[str, ...]:
    """A value's dtype and shape, and its bytes where they are known.

    ``known`` gives sizes as numbers, as far as there are any.
    """
    shape = None if entry.shape is None else tuple(map(known, entry.shape))
    text = type_text(shape, entry.dtype)
    if shape is None or entry.dtype is None:
        return (text,)
    return text, nbytes(shape, entry.dtype)


def type_text(shape: Shape | None, dtype: DType | None) -> str:
    """A dtype and a shape, as far as they are known.

    >>> from passkit.values.dtype import float32
    >>> type_text((32, 512), float32), type_text(None, None)
    ('f32[32, 512]', '?[?]')
    """
    inside = "?" if shape is None else ", ".join(map(str, shape))
    return f"{dtype.short if dtype else '?'}[{inside}]"


def counted(count: Extent, what: str) -> str:
    """A number of things.

    >>> counted(1, "kernel"), counted(2, "kernel")
    ('1 kernel', '2 kernels')
    """
    return f"{size_text(count)} {what}{'' if count == 1 else 's'}"


def small(node: Node) -> str | None:
    """A constant of one element as text; it is written into its users instead of drawn."""
    if node.op is None or node.op.name != "constant":
        return None
    value = node.params["value"]
    if value.size != 1:
        return None
    return f"{value.item():.6g}" if value.dtype.kind == "f" else str(value.item())


def last_part(name: str) -> str:
    """Return the last part of a name.

    >>> last_part("net/dense/MatMul"), last_part("x")
    ('MatMul', 'x')
    """
    return name.rstrip("/").rpartition("/")[2] or name


def call_lines(node: Node, title: str) -> tuple[str, ...]:
    """The op with what its picture would not show: constants in place, and parameters.

    Above it stands ``title``, unless that begins with the op.
    """
    assert node.op is not None
    call = call_text(node)
    lines: tuple[str, ...] = (call,)
    if len(call) > WIDEST and _is_half(node):
        lines = tuple(call.rsplit(", ", 1))
    elif len(call) > WIDEST:
        lines = (f"{node.op.name}(", *_wrapped(call))
    return lines if title.startswith(node.op.name) else (brief(title, WIDEST), *lines)


def call_text(node: Node) -> str:
    """The same in one line, without the name.

    Of an operator that does a part of another one's work: of which, and how much at a time. What it
    repeats of that one, as its own shape does, is left out.
    """
    assert node.op is not None
    if _is_half(node):
        whole, length = get_op(node.params["of"]), node.params.get("length")
        call = _call(whole.name, _told(whole, dict(node.params["given"])))
        by = "" if length is None else f", {size_text(length)} at a time"
        return f"{node.op.name} of {call}{by}"
    found = [small(e.node) for e in node.inputs]
    given = [s or "·" for s in found] if any(found) else []
    return _call(node.op.name, (*given, *_told(node.op, node.params)))


def _is_half(node: Node) -> bool:
    """Whether an operator says by its parameters of which other one it is a part."""
    return {"of", "given"} <= node.params.keys()


def _told(op: Op, params: Mapping[str, object]) -> list[str]:
    """The parameters that are not what they are by default."""
    return [
        f"{k}={brief(v)}"
        for k, v in params.items()
        if v is not None and v is not False and repr(v) != repr(op.params.get(k))
    ]


def _call(name: str, parts: Sequence[str]) -> str:
    return f"{name}({', '.join(parts)})" if parts else name


def _wrapped(call: str) -> Iterator[str]:
    """What stands in the brackets of a call, in lines that are not too wide."""
    inside = call[call.index("(") + 1 :]
    yield from wrap(inside, WIDEST, break_long_words=False, break_on_hyphens=False)


def brief(value: object, most: int = 28) -> str:
    """A value as text of at most ``most`` letters, the middle left out."""
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 8]}…{text[-7:]}"


def short_name(name: str, most: int = 28) -> str:
    """A name of at most ``most`` letters: its last parts, which tell most.

    >>> short_name("a/b"), short_name("model/encoder/layer_0/attention/q/kernel")
    ('a/b', '…/layer_0/attention/q/kernel')
    """
    if len(name) <= most:
        return name
    parts = name.split("/")
    kept = parts.pop()
    while parts and len(kept) + len(parts[-1]) < most - 2:
        kept = f"{parts.pop()}/{kept}"
    return brief(f"…/{kept}" if parts else kept, most)


def distinct(names: Iterable[str], shorten: Callable[[str], str], most: int = 44) -> dict[str, str]:
    """Return a short text for each name; texts of different names differ as far as they fit.

    Where ``shorten`` gives several names the same text, the parts of these names that tell them
    apart are kept, and runs of parts that all of them share are left out.

    Args:
        names: Names with parts that "/" separates.
        shorten: Gives the text of a name that no other name has.
        most: Letters of a text, beyond which its middle is left out.

    >>> distinct(["net/l0/dense/dot", "net/l1/dense/dot", "net/x"], lambda n: n.split("/")[-1])
    {'net/l0/dense/dot': 'l0/…/dot', 'net/l1/dense/dot': 'l1/…/dot', 'net/x': 'x'}
    """
    texts = {name: shorten(name) for name in names}
    alike: dict[str, list[str]] = {}
    for name, text in texts.items():
        alike.setdefault(text, []).append(name)
    for group in alike.values():
        if len(group) > 1:
            texts |= {name: brief(text, most) for name, text in _differing(group).items()}
    return texts


def _differing(names: Sequence[str]) -> dict[str, str]:
    """The parts of each name at which others go on differently, and its last part."""
    followers: dict[str, set[str]] = {}
    for name in names:
        parts = name.split("/")
        for k in range(len(parts)):
            followers.setdefault("/".join(parts[:k]), set()).add("/".join(parts[: k + 1]))
        followers.setdefault(name, set()).add("")  # the name ends here
    texts = {}
    for name in names:
        parts = name.split("/")
        kept: list[str] = []
        for k, part in enumerate(parts):
            if len(followers["/".join(parts[:k])]) > 1 or k == len(parts) - 1:
                kept.append(part)
            elif kept and kept[-1] != "…":
                kept.append("…")
        texts[name] = "/".join(kept)
    return texts

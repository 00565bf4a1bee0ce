"""Texts of pictures and reports: names, calls with their parameters, types, bytes and sizes.

Symbolic sizes are written with "ceil" and "floor", as not all fonts have rounding brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import gcd
from textwrap import wrap

from passkit.graph.node import Entry, Node
from passkit.graph.op import Op, get_op
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.size import Atom, Extent, Monomial, Quotient, Shape, Size, numel
from passkit.values.units import bytes_text

MAX_CALL_WIDTH = 44
"""Letters beyond which a call takes several lines: renderers estimate the width of text."""


def as_is(size: Extent) -> Extent:
    """Return a size unchanged, for functions that take a resolver of sizes."""
    return size


def size_text(size: Extent) -> str:
    """Return a size as text; quotients say whether they round up or down.

    >>> n, m = Size.symbol("n"), Size.symbol("m")
    >>> size_text(40), size_text(n * 2 * m + 1), size_text((n * 64 + 8191) // 8192)
    ('40', '1 + 2·m·n', 'ceil(n/128)')
    >>> size_text((n + 1) // 3), size_text((m + 8 + 4) // 5 * 2)
    ('floor((1 + n)/3)', '2·ceil((8 + m)/5)')
    """
    if isinstance(size, int):
        return str(size)
    return " + ".join(_term_text(*term) for term in size.terms).replace("+ -", "- ")


def _term_text(atoms: Monomial, count: int) -> str:
    """Return ``count`` times the product of ``atoms`` as text, such as "2·m·n"."""
    numbers = [str(count)] if count not in (1, -1) or not atoms else []
    return ("-" if count == -1 and atoms else "") + "·".join([*numbers, *map(_atom_text, atoms)])


def _atom_text(atom: Atom) -> str:
    """Return a factor of a term: a symbol or a quotient."""
    return _quotient_text(atom) if isinstance(atom, Quotient) else atom


def _quotient_text(quotient: Quotient) -> str:
    """Return "ceil(a/b)" for (a + b - 1) // b if a has no negative terms, else "floor(…)".

    A factor common to the terms of a and to b is cancelled in "ceil".
    """
    raised: Extent = quotient.numerator - (quotient.denominator - 1)
    is_ceil = isinstance(raised, Size) and all(count > 0 for _, count in raised.terms)
    top, bottom = raised if is_ceil else quotient.numerator, quotient.denominator
    if is_ceil and isinstance(top, Size) and isinstance(bottom, int):
        common = gcd(bottom, *(count for _, count in top.terms))
        top, bottom = top // common, bottom // common
    function = "ceil" if is_ceil else "floor"
    return f"{function}({_parenthesized(top)}/{_parenthesized(bottom)})"


def _parenthesized(size: Extent) -> str:
    """Return a size as text, in parentheses if it is a sum."""
    text = size_text(size)
    return f"({text})" if isinstance(size, Size) and len(size.terms) > 1 else text


def nbytes(shape: Shape, dtype: DType) -> str:
    """Return the memory that a value takes as text, with its unknown sizes as factors.

    Args:
        shape: A sequence of Python ints or symbolic sizes.
        dtype: A DType of passkit, such as ``entry.dtype``; not its name.

    Raises: ArgumentError for anything else, such as NumPy's integers.

    >>> from passkit.values.dtype import float32
    >>> from passkit.values.size import Size
    >>> nbytes((32, 512), float32), nbytes((Size.symbol("n"), 512), float32)
    ('64 KiB', '2·n KiB')
    """
    sizes = arguments.sequence("nbytes: shape", shape, (int, Size), "a sequence of sizes")
    arguments.instance("nbytes: dtype", dtype, DType, "a DType")
    return extent_text(numel(sizes) * dtype.nbytes)


def extent_text(total: Extent) -> str:
    """Return a number of bytes, which may be symbolic, as text with a unit.

    A sum of symbolic terms is in bytes; otherwise the unit is one in which the number is short.
    """
    if isinstance(total, int):
        return bytes_text(total)
    if len(total.terms) == 1:
        (atoms, count), *_ = total.terms
        number, unit = bytes_text(count).split()
        factors = "·".join([number, *map(_atom_text, atoms)])
        return f"{factors} {'bytes' if unit == 'B' else unit}"
    return f"{size_text(total)} bytes"


def extent_of(entries: Iterable[Entry]) -> Extent | None:
    """Return the bytes of several values together; None if a shape or dtype is not inferred."""
    total: Extent = 0
    for entry in entries:
        if entry.shape is None or entry.dtype is None:
            return None
        total = total + numel(entry.shape) * entry.dtype.nbytes
    return total


def type_lines(entry: Entry, resolve: Callable[[Extent], Extent] = as_is) -> tuple[str, ...]:
    """Return a value's dtype and shape as a line, and its bytes as another if they are inferred.

    Args:
        entry: The value.
        resolve: Returns a size as a number where it is known.
    """
    shape = None if entry.shape is None else tuple(map(resolve, entry.shape))
    text = type_text(shape, entry.dtype)
    if shape is None or entry.dtype is None:
        return (text,)
    return text, nbytes(shape, entry.dtype)


def type_text(shape: Shape | None, dtype: DType | None) -> str:
    """Return a dtype and a shape, with "?" for what is not inferred.

    >>> from passkit.values.dtype import float32
    >>> type_text((32, 512), float32), type_text(None, None)
    ('f32[32, 512]', '?[?]')
    """
    inside = "?" if shape is None else ", ".join(map(str, shape))
    return f"{dtype.short if dtype else '?'}[{inside}]"


def counted(count: Extent, noun: str) -> str:
    """Return a number with a noun, in the plural unless the number is 1.

    >>> counted(1, "kernel"), counted(2, "kernel")
    ('1 kernel', '2 kernels')
    """
    return f"{size_text(count)} {noun}{'' if count == 1 else 's'}"


def scalar_text(node: Node) -> str | None:
    """Return the value of a constant of one element, which is written into its users; else None.

    Floats have 6 significant digits.
    """
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

    A name of slashes only is returned as it is.
    """
    return name.rstrip("/").rpartition("/")[2] or name


def call_lines(node: Node, title: str) -> tuple[str, ...]:
    """Return the lines of an operator's box: its title, and the call with scalars and parameters.

    Args:
        node: An operator.
        title: The first line; left out if it begins with the operator's name.
    """
    assert node.op is not None
    call = call_text(node)
    lines: tuple[str, ...] = (call,)
    if len(call) > MAX_CALL_WIDTH and _is_split_operator(node):
        lines = tuple(call.rsplit(", ", 1))
    elif len(call) > MAX_CALL_WIDTH:
        lines = (f"{node.op.name}(", *_wrapped_arguments(call))
    return lines if title.startswith(node.op.name) else (brief(title, MAX_CALL_WIDTH), *lines)


def call_text(node: Node) -> str:
    """Return an operator's call in one line: scalars in place, and parameters.

    An operator that does a part of another one's work, such as a partial reduction, shows the call
    of that operator and how much it takes at a time.
    """
    assert node.op is not None
    if _is_split_operator(node):
        original, length = get_op(node.params["of"]), node.params.get("length")
        params = _changed_params(original, dict(node.params["given"]))
        call = _call(original.name, params)
        suffix = "" if length is None else f", {size_text(length)} at a time"
        return f"{node.op.name} of {call}{suffix}"
    scalars = [scalar_text(e.node) for e in node.inputs]
    operands = [s or "·" for s in scalars] if any(scalars) else []
    return _call(node.op.name, (*operands, *_changed_params(node.op, node.params)))


def _is_split_operator(node: Node) -> bool:
    """Return whether an operator's parameters name the operator whose work it does a part of."""
    return {"of", "given"} <= node.params.keys()


def _changed_params(op: Op, params: Mapping[str, object]) -> list[str]:
    """Return the ``params`` that differ from the defaults of ``op``, as "name=value".

    Values of None and False are left out.
    """
    return [
        f"{k}={brief(v)}"
        for k, v in params.items()
        if v is not None and v is not False and repr(v) != repr(op.params.get(k))
    ]


def _call(name: str, parts: Sequence[str]) -> str:
    """Return a call, without parentheses if nothing is between them."""
    return f"{name}({', '.join(parts)})" if parts else name


def _wrapped_arguments(call: str) -> list[str]:
    """Return the arguments of a call, with the closing parenthesis, in lines that are not wide."""
    inside = call[call.index("(") + 1 :]
    return wrap(inside, MAX_CALL_WIDTH, break_long_words=False, break_on_hyphens=False)


def brief(value: object, most: int = 28) -> str:
    """Return a value as text of at most ``most`` letters, 8 or more, with the middle left out."""
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 8]}…{text[-7:]}"


def short_name(name: str, most: int = 28) -> str:
    """Return a name in at most ``most`` letters: its last parts, which are the most specific.

    >>> short_name("a/b"), short_name("model/encoder/layer_0/attention/q/kernel")
    ('a/b', '…/layer_0/attention/q/kernel')
    """
    if len(name) <= most:
        return name
    parts = name.split("/")
    end = parts.pop()
    while parts and len(end) + len(parts[-1]) < most - 2:
        end = f"{parts.pop()}/{end}"
    return brief(f"…/{end}" if parts else end, most)


def distinct(names: Iterable[str], shorten: Callable[[str], str], most: int = 44) -> dict[str, str]:
    """Return a short text for each name; texts of different names differ as far as they fit.

    If ``shorten`` gives several names the same text, their texts are the parts that distinguish
    them, and the last part; runs of parts that all of them share are left out.

    Args:
        names: Names with parts that "/" separates.
        shorten: Returns the text of a name.
        most: Letters of a text of distinguishing parts, beyond which its middle is left out. A text
            of ``shorten`` for one name only stays whole.

    >>> distinct(["net/l0/dense/dot", "net/l1/dense/dot", "net/x"], lambda n: n.split("/")[-1])
    {'net/l0/dense/dot': 'l0/…/dot', 'net/l1/dense/dot': 'l1/…/dot', 'net/x': 'x'}
    """
    texts = {name: shorten(name) for name in names}
    names_of_text: dict[str, list[str]] = {}
    for name, text in texts.items():
        names_of_text.setdefault(text, []).append(name)
    for group in names_of_text.values():
        if len(group) > 1:
            texts |= {name: brief(text, most) for name, text in _differing(group).items()}
    return texts


def _differing(names: Sequence[str]) -> dict[str, str]:
    """Return for each name the parts at which others continue differently, and its last part.

    Parts that are left out in between become "…".
    """
    derived_outputs: dict[str, set[str]] = {}
    for name in names:
        parts = name.split("/")
        for k in range(len(parts)):
            derived_outputs.setdefault("/".join(parts[:k]), set()).add("/".join(parts[: k + 1]))
        derived_outputs.setdefault(name, set()).add("")  # the name ends here
    texts = {}
    for name in names:
        parts = name.split("/")
        shown: list[str] = []
        for k, part in enumerate(parts):
            if len(derived_outputs["/".join(parts[:k])]) > 1 or k == len(parts) - 1:
                shown.append(part)
            elif shown and shown[-1] != "…":
                shown.append("…")
        texts[name] = "/".join(shown)
    return texts

"""Instructions as nvdisasm prints them: opcodes, operands, guards and branch targets."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from functools import cached_property

from attrs import field, frozen

LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P[0-9T])\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
LABEL = re.compile(r"^(\.L_x_\d+|\$?\w[\w$.]*):\s*$")
REGISTER = re.compile(r"^(U?R)(\d+|Z)$")
PREDICATE = re.compile(r"^!?U?P(\d|T)$")
MODIFIERS = re.compile(r"\.(reuse|H0_H0|H1_H1|F32|U32|S32|64|X4|X8|X16|X2|B\d)\b")
ZERO = 255
"""The register that reads as zero, and drops what is written."""


@frozen
class SassOperand:
    """An operand of an instruction.

    Attributes:
        text: as printed.
        kind: "register", "predicate", "constant", "indexed", "number", "address", "label" or
            "name".
        index: of a register or predicate; ``ZERO`` or 7 for those that are constant.
        uniform: whether it is a register or predicate of the warp, not of a lane.
        negative, absolute, inverted: what is done to the value that is read.
        value: an integer or a float; the label; the bank and offset of a constant, and the
            registers that are added where it is indexed; the terms of an address.
    """

    text: str
    kind: str
    index: int = 0
    uniform: bool = False
    negative: bool = False
    absolute: bool = False
    inverted: bool = False
    value: object = None


@frozen
class AddressTerm:
    """A register of an address: its scale, and whether it and the next one hold 64 bits."""

    index: int
    uniform: bool
    scale: int
    is_pair: bool


@frozen(eq=False, slots=False)
class Instruction:
    """An instruction.

    Attributes:
        offset: bytes from the begin of the kernel's code.
        guard: the predicate without which it does nothing, as printed; "" if it has none.
        opcode: the name with all modifiers, such as ``LDG.E.128``.
        operands: in printed order.
    """

    offset: int
    guard: str
    opcode: str
    operands: tuple[SassOperand, ...] = field(repr=False)

    @cached_property
    def name(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @cached_property
    def modifiers(self) -> frozenset[str]:
        """The modifiers of the opcode."""
        return frozenset(self.opcode.split(".")[1:])


@frozen(eq=False, slots=False)
class Listing:
    """The code of a kernel.

    Attributes:
        instructions: in order.
        labels: the index that each label stands for.
        constants: words that the compiler put into constant banks, by bank and offset.
    """

    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    constants: Mapping[tuple[int, int], int] = field(factory=dict)

    def index_of(self, offset: int) -> int:
        """Return the index of the instruction at a byte offset."""
        return self._indices[offset]

    @cached_property
    def backward(self) -> frozenset[int]:
        """The indices of branches to labels before them."""
        return frozenset(
            k
            for k, i in enumerate(self.instructions)
            if i.name == "BRA" and self.labels.get(str(i.operands[-1].value), k + 1) <= k
        )

    @cached_property
    def _indices(self) -> dict[int, int]:
        return {x.offset: k for k, x in enumerate(self.instructions)}


def listings(text: str) -> dict[str, Listing]:
    r"""Return the code of each kernel in the output of ``nvdisasm -c``, by its name.

    >>> lines = ['.section .text.f,"ax"', "f:", "/*0000*/ @!P0 BRA `(.L_x_0) ;", ".L_x_0:"]
    >>> listing = listings("\n".join([*lines, "/*0010*/ EXIT ;"]))["f"]
    >>> [x.opcode for x in listing.instructions], listing.labels
    (['BRA', 'EXIT'], {'f': 0, '.L_x_0': 1})
    """
    by_name: dict[str, Listing] = {}
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for part in re.split(r"(?m)^\s*\.section\s+", text)[1:]:
        name = re.match(r"\.text\.([^\s,]+)", part)
        if name is None:
            continue
        instructions, labels = [], {}
        for line in part.splitlines():
            if match := LINE.match(line):
                offset, guard, opcode, rest = match.groups()
                rest = rest.split("(*")[0]  # a comment, such as SpillRefill
                instruction = Instruction(int(offset, 16), guard or "", opcode, operands(rest))
                instructions.append(instruction)
            elif label := LABEL.match(line):
                labels[label[1]] = len(instructions)
        by_name[name[1]] = Listing(tuple(instructions), labels)
    return by_name


def constant_words(code: bytes, name: str) -> dict[tuple[int, int], int]:
    """Return the words in the constant banks 2 and 3 of a cubin, by bank and offset.

    These are literals of the kernel ``name``, and tables of the text. Source: ELF-64 object file
    format, section header table.
    """
    table, _, _, _, _, size, count, names = struct.unpack_from("<QIHHHHHH", code, 0x28)
    headers = [struct.unpack_from("<IIQQQQ", code, table + size * k) for k in range(count)]
    banks = {f".nv.constant2.{name}": 2, ".nv.constant3": 3}
    words: dict[tuple[int, int], int] = {}
    for at, _, _, _, begin, nbytes in headers:
        start = headers[names][4] + at
        bank = banks.get(code[start : code.index(b"\0", start)].decode())
        if bank is not None:
            data = struct.unpack_from(f"<{nbytes // 4}I", code, begin)
            words |= {(bank, 4 * k): word for k, word in enumerate(data)}
    return words


def operands(text: str) -> tuple[SassOperand, ...]:
    """Return the operands in a list as printed, without cache hints and descriptors.

    >>> [x.kind for x in operands("R8, -|R3|, c[0x0][0x210], 0x10, !PT, desc[UR4][R2.64+0x800]")]
    ['register', 'register', 'constant', 'number', 'predicate', 'address']
    """
    return tuple(operand(x.strip()) for x in _split(text) if x.strip())


def _split(text: str) -> list[str]:
    """Split at commas, and where a label follows a register without one."""
    return re.sub(r"(?<=\w) (?=`)", ",", text).split(",")


def operand(text: str) -> SassOperand:
    """Return one operand. Unknown ones are of kind "name"."""
    if text.startswith("`("):
        return SassOperand(text, "label", value=text[2:-1])
    if "[" in text and not text.lstrip("-~|").startswith("c["):
        return SassOperand(text, "address", value=_address(text[text.rindex("[") + 1 : -1]))
    plain = text
    negative = plain.startswith("-")
    plain = plain.lstrip("-")
    inverted = plain.startswith("~")
    plain = plain.lstrip("~")
    absolute = plain.startswith("|")
    plain = plain.replace("|", "")
    signs = dict(negative=negative, absolute=absolute, inverted=inverted)
    plain = MODIFIERS.sub("", plain)
    if match := REGISTER.match(plain):
        index = ZERO if match[2] == "Z" else int(match[2])
        return SassOperand(text, "register", index, match[1] == "UR", **signs)
    if match := PREDICATE.match(plain):
        index = 7 if match[1] == "T" else int(match[1])
        return SassOperand(text, "predicate", index, "U" in plain, inverted=plain.startswith("!"))
    if plain.startswith("c["):
        bank, offset = re.findall(r"\[([^\]]+)\]", plain)
        number, terms = _address(offset)
        if any(t.index != ZERO for t in terms):
            return SassOperand(text, "indexed", value=(int(bank, 16), number, terms))
        return SassOperand(text, "constant", value=(int(bank, 16), number), **signs)
    return _number(text, plain, negative)


def _number(text: str, plain: str, negative: bool) -> SassOperand:
    """Return an operand that is an integer or a float, else a name."""
    sign = -1 if negative else 1
    if re.fullmatch(r"0x[0-9a-f]+", plain):
        return SassOperand(text, "number", value=sign * int(plain, 16))
    plain = plain.strip().lstrip("+").replace("QNAN", "nan").replace("INF", "inf")
    try:
        return SassOperand(text, "number", value=sign * float(plain))
    except ValueError:
        return SassOperand(text, "name", value=text)


def _address(text: str) -> tuple[int, tuple[AddressTerm, ...]]:
    """Return the number in an address, and its registers."""
    number, terms = 0, []
    for part in text.split("+"):
        base, *modifiers = part.split(".")
        if match := REGISTER.match(base):
            scale = next((int(m[1:]) for m in modifiers if re.fullmatch(r"X\d+", m)), 1)
            index = ZERO if match[2] == "Z" else int(match[2])
            terms.append(AddressTerm(index, match[1] == "UR", scale, "64" in modifiers))
        elif base:
            number += int(part, 16)
    return number, tuple(terms)

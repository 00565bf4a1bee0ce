"""The semantics of single instructions, for the 32 lanes of a warp at once.

Integers, addresses and predicates are exact. Floats are computed in float64 and rounded, special
functions by NumPy; packed half-precision arithmetic, of which no address or branch depends here,
passes its first source on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from machine_code.listing import ZERO, Instruction, SassOperand

if TYPE_CHECKING:
    from machine_code.warp import Warp

Lanes = np.ndarray
SassOperation = Callable[["Warp", Instruction, Lanes], None]
MASK = np.uint64(0xFFFFFFFF)
HIGH = np.uint64(32)
OPERATIONS: dict[str, SassOperation] = {}


class UnknownInstructionError(Exception):
    """An instruction that this module does not compute; the message has it."""


def operation(*names: str) -> Callable[[SassOperation], SassOperation]:
    """Register the function of instructions, and of the same ones for uniform registers."""

    def register(function: SassOperation) -> SassOperation:
        OPERATIONS.update(dict.fromkeys(names, function))
        OPERATIONS.update(dict.fromkeys((f"U{name}" for name in names), function))
        return function

    return register


Operands = list[SassOperand]


@cache
def parts(i: Instruction) -> tuple[SassOperand, Operands, Operands, Operands]:
    """Return an instruction's result, results that are predicates, sources, and predicates read."""
    operands = list(i.operands)
    outs: list[SassOperand] = []
    while operands[0].kind == "predicate":
        outs.append(operands.pop(0))
    result = operands.pop(0)
    while not outs[2:] and len(operands) > 1 and operands[0].kind == "predicate":
        outs.append(operands.pop(0))
    sources = [x for x in operands if x.kind != "predicate"]
    return result, outs, sources, [x for x in operands if x.kind == "predicate"]


@operation("MOV", "CS2R")
def move(w: Warp, i: Instruction, active: Lanes) -> None:
    """Copy a source; CS2R writes 64 zeros."""
    if i.name == "CS2R":
        zero = np.zeros(32, np.uint64)
        write = w.set if "32" in i.modifiers else w.set_pair
        return write(i.operands[0], zero, active)
    w.set(i.operands[0], w.unsigned(i.operands[1]), active)


@operation("IADD3", "VIADD", "IADD")
def add(w: Warp, i: Instruction, active: Lanes) -> None:
    """Add up to three numbers and carries; carries out are predicates."""
    result, outs, sources, ins = parts(i)
    total = np.zeros(32, np.uint64)
    for source in sources:
        total = total + w.summand(source, "X" in i.modifiers)
    if "X" in i.modifiers:
        for carry in ins:
            total = total + w.predicate(carry)
    if "64" in i.modifiers:
        total = sum((w.pair(s) for s in sources), np.zeros(32, np.uint64))
        return w.set_pair(result, total, active)
    w.set(result, total, active)
    for k, out in enumerate(outs):
        w.set_predicate(out, (total >> HIGH) > np.uint64(k), active)


@operation("IMAD")
def multiply_add(w: Warp, i: Instruction, active: Lanes) -> None:
    """Multiply and add: the low half, the high half or, with WIDE, all 64 bits."""
    result, outs, sources, ins = parts(i)
    a, b, c = (*sources, sources[-1])[:3]
    is_signed = "U32" not in i.modifiers
    read = w.signed if is_signed else w.unsigned
    if "WIDE" in i.modifiers or "HI" in i.modifiers:
        x, y = (np.asarray(read(s)).astype(np.int64 if is_signed else np.uint64) for s in (a, b))
        product = (x * y).astype(np.uint64)
        total = product + w.pair(c)
        if "HI" in i.modifiers:
            return w.set(result, total >> HIGH, active)
        w.set_pair(result, total, active)
        for out in outs:
            w.set_predicate(out, total < product, active)
        return
    total = w.unsigned(a) * w.unsigned(b) + w.summand(c, "X" in i.modifiers)
    if "X" in i.modifiers:
        for carry in ins:
            total = total + w.predicate(carry)
    w.set(result, total, active)


@operation("LEA")
def scaled_add(w: Warp, i: Instruction, active: Lanes) -> None:
    """Shift by a constant and add, the low or the high half."""
    result, outs, sources, ins = parts(i)
    if "SX32" in i.modifiers:  # the upper half of the register with its sign
        a, b, shift = sources
        wide = np.asarray(w.signed(a)).astype(np.int64).astype(np.uint64)
        shifted = ((wide << w.raw(shift)) >> HIGH) & MASK
    elif "HI" in i.modifiers:
        a, b, high, shift = sources
        wide = w.raw(a) | (w.raw(high) << HIGH)
        shifted = ((wide << w.raw(shift)) >> HIGH) & MASK
    else:
        a, b, shift = sources
        shifted = (w.unsigned(a) << w.raw(shift)) & MASK
    total = shifted + w.summand(b, "X" in i.modifiers)
    if "X" in i.modifiers:
        for carry in ins:
            total = total + w.predicate(carry)
    w.set(result, total, active)
    for out in outs:
        w.set_predicate(out, total >> HIGH != 0, active)


@operation("SHF")
def shift(w: Warp, i: Instruction, active: Lanes) -> None:
    """Shift two registers as 64 bits; the result is one half."""
    result, _, (low, by, high), _ = parts(i)
    count = w.raw(by)
    count = count & np.uint64(31 if "W" in i.modifiers else 255)
    wide = w.raw(low) | (w.raw(high) << HIGH)
    of_high = "HI" in i.modifiers
    if "L" in i.modifiers:
        if not of_high and "U64" not in i.modifiers:
            wide = w.raw(low)
        shifted = _left(wide, count)
        return w.set(result, shifted >> HIGH if of_high else shifted, active)
    if of_high:  # of the high register alone
        wide = w.raw(high)
        signed = wide.astype(np.uint32).view(np.int32).astype(np.int64)
    else:
        signed = wide.view(np.int64)
    if "S32" in i.modifiers or "S64" in i.modifiers:
        least = np.minimum(count, np.uint64(63)).astype(np.int64)
        return w.set(result, (signed >> least).view(np.uint64), active)
    w.set(result, np.where(count > 63, 0, wide >> np.minimum(count, np.uint64(63))), active)


def _left(values: Lanes, count: Lanes) -> Lanes:
    return np.where(count > 63, np.uint64(0), values << np.minimum(count, np.uint64(63)))


@operation("LOP3")
def logic(w: Warp, i: Instruction, active: Lanes) -> None:
    """Compute a table of three bits, for all bits."""
    result, outs, sources, _ = parts(i)
    *terms, table = sources
    value = _of_table([w.raw(x) for x in terms], int(table.value)) & MASK  # type: ignore[call-overload]
    w.set(result, value, active)
    for out in outs:
        w.set_predicate(out, value != 0, active)


def _of_table(bits: list[Lanes], table: int) -> Lanes:
    """Return the bits that a table of eight has for three of each."""
    a, b, c = (*bits, np.zeros(32, np.uint64), np.zeros(32, np.uint64))[:3]
    value = np.zeros(32, np.uint64)
    for k in range(8):
        if table >> k & 1:
            value |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
    return value


@operation("PLOP3")
def predicate_logic(w: Warp, i: Instruction, active: Lanes) -> None:
    """Compute tables of three predicates."""
    first, second, *rest = i.operands
    tables = [int(x.value) for x in rest if x.kind == "number"]  # type: ignore[call-overload]
    read = [w.predicate(x) for x in rest if x.kind == "predicate"]
    for out, table in zip((first, second), tables, strict=True):
        index = sum(p.astype(int) << (2 - k) for k, p in enumerate(read))
        w.set_predicate(out, table >> index & 1 != 0, active)


@operation("ISETP")
def compare_integers(w: Warp, i: Instruction, active: Lanes) -> None:
    """Compare integers; with EX, the high halves of two whose low halves were compared."""
    read = w.unsigned if "U32" in i.modifiers else w.signed
    sources = [x for x in i.operands if x.kind != "predicate"]
    outs, ins = i.operands[:2], [x for x in i.operands[2:] if x.kind == "predicate"]
    a, b = (read(x) for x in sources)
    name = i.opcode.split(".")[1]
    value = COMPARE[name](a, b)
    if "EX" in i.modifiers:
        low = w.predicate(ins.pop())
        strict = COMPARE[{"LE": "LT", "GE": "GT"}.get(name, name)](a, b)
        value = {"EQ": value & low, "NE": value | low}.get(name, strict | ((a == b) & low))
    _set_compared(w, i, outs, value, ins, active)


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": lambda a, b: (a < b) | (a > b),
    "NUM": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "NAN": lambda a, b: np.isnan(a) | np.isnan(b),
}


def _set_compared(
    w: Warp, i: Instruction, outs: Any, value: Lanes, ins: list[SassOperand], active: Lanes
) -> None:
    """Combine a comparison with a predicate, as the modifiers say, and store both results."""
    first, second = value, ~value
    if ins:
        other = w.predicate(ins[0])
        if "OR" in i.modifiers:
            first, second = first | other, second | other
        elif "XOR" in i.modifiers:
            first, second = first ^ other, second ^ other
        else:
            first, second = first & other, second & other
    w.set_predicate(outs[0], first, active)
    w.set_predicate(outs[1], second, active)


@operation("FSETP", "DSETP")
def compare_floats(w: Warp, i: Instruction, active: Lanes) -> None:
    """Compare floats; names with U hold for NaN, too."""
    read = w.double if i.name == "DSETP" else w.float
    sources = [x for x in i.operands if x.kind != "predicate"]
    outs, ins = i.operands[:2], [x for x in i.operands[2:] if x.kind == "predicate"]
    a, b = (read(x) for x in sources)
    name = i.opcode.split(".")[1]
    if name in COMPARE:
        value = COMPARE[name](a, b)
    else:
        value = COMPARE[name.removesuffix("U")](a, b) | np.isnan(a) | np.isnan(b)
    _set_compared(w, i, outs, value, ins, active)


@operation("SEL", "FSEL")
def select(w: Warp, i: Instruction, active: Lanes) -> None:
    """Choose between two sources by a predicate."""
    result, _, (a, b), (choice,) = parts(i)
    chosen = w.predicate(choice)
    if "FSEL" in i.name:
        return w.set_float(result, np.where(chosen, w.float(a), w.float(b)), active)
    w.set(result, np.where(chosen, w.unsigned(a), w.unsigned(b)), active)


@operation("IMNMX", "VIMNMX", "VIADDMNMX", "VIMNMX3")
def least_or_most(w: Warp, i: Instruction, active: Lanes) -> None:
    """Take the minimum where a predicate is true, else the maximum."""
    result, _, sources, ins = parts(i)
    read = w.unsigned if "U32" in i.modifiers else w.signed
    values = [read(x) for x in sources]
    if i.name.endswith("VIADDMNMX"):
        values = [values[0] + values[1], values[2]]
    least, most = values[0], values[0]
    for value in values[1:]:
        least, most = np.minimum(least, value), np.maximum(most, value)
    chosen = np.where(w.predicate(ins[0]), least, most)
    w.set(result, chosen.astype(np.int64).view(np.uint64), active)


@operation("IABS")
def absolute(w: Warp, i: Instruction, active: Lanes) -> None:
    """Take the absolute value."""
    w.set(i.operands[0], np.abs(w.signed(i.operands[1])).view(np.uint64), active)


@operation("PRMT")
def permute_bytes(w: Warp, i: Instruction, active: Lanes) -> None:
    """Choose four of eight bytes; their highest bit repeated where the choice says so."""
    result, _, (a, chosen, b), _ = parts(i)
    wide, choice = w.raw(a) | (w.raw(b) << HIGH), w.raw(chosen)
    value = np.zeros(32, np.uint64)
    for k in range(4):
        digit = (choice >> np.uint64(4 * k)) & np.uint64(15)
        byte = (wide >> ((digit & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
        sign = np.where(byte >> np.uint64(7) != 0, np.uint64(255), np.uint64(0))
        value |= np.where(digit & np.uint64(8) != 0, sign, byte) << np.uint64(8 * k)
    w.set(result, value, active)


@operation("POPC", "FLO", "BREV", "SGXT")
def count_bits(w: Warp, i: Instruction, active: Lanes) -> None:
    """Count bits, find the highest one, or reverse them."""
    source = i.operands[-1] if i.name != "SGXT" else i.operands[1]
    values = [int(x) for x in w.raw(source)]
    if i.name.endswith("POPC"):
        counts = [x.bit_count() for x in values]
    elif i.name.endswith("FLO"):
        counts = [x.bit_length() - 1 & 0xFFFFFFFF for x in values]
        if "SH" in i.modifiers:
            counts = [31 - x & 0xFFFFFFFF for x in counts]
    elif i.name.endswith("BREV"):
        counts = [int(f"{x:032b}"[::-1], 2) for x in values]
    else:
        widths = [int(x) for x in w.raw(i.operands[2])]
        counts = [
            _extended(x, n, "U32" in i.modifiers) for x, n in zip(values, widths, strict=True)
        ]
    w.set(
        i.operands[0] if i.operands[0].kind == "register" else i.operands[1],
        np.array(counts, np.uint64),
        active,
    )


def _extended(value: int, width: int, is_unsigned: bool) -> int:
    """Return the low bits of a number, with their sign."""
    low = value & ((1 << width) - 1)
    return (
        low if is_unsigned or not low >> (width - 1) else low | (0xFFFFFFFF << width) & 0xFFFFFFFF
    )


@operation("P2R", "R2P")
def predicates_as_bits(w: Warp, i: Instruction, active: Lanes) -> None:
    """Copy predicates to bits of a register, or back, where a mask has ones."""
    mask = int(i.operands[-1].value)  # type: ignore[call-overload]
    if i.name == "P2R":
        bits = sum(
            (w.predicates[False][k].astype(np.uint64) << np.uint64(k) for k in range(7)),
            np.zeros(32, np.uint64),
        )
        kept = w.raw(i.operands[2]) & np.uint64(~mask & 0xFFFFFFFF)
        return w.set(i.operands[0], kept | bits & np.uint64(mask), active)
    bits = w.raw(i.operands[1])
    for k in range(7):
        if mask >> k & 1:
            out = SassOperand("", "predicate", k)
            w.set_predicate(out, bits >> np.uint64(k) & np.uint64(1) != 0, active)


@operation("R2UR")
def to_uniform(w: Warp, i: Instruction, active: Lanes) -> None:
    """Copy the first active lane's register to the warp's."""
    source = next(x for x in reversed(i.operands) if x.kind == "register")
    result = next(x for x in i.operands if x.kind == "register")
    value = w.raw(source)[int(np.argmax(active))]
    w.set(result, np.full(32, value, np.uint64), active)


@operation("S2R", "S2UR")
def special(w: Warp, i: Instruction, active: Lanes) -> None:
    """Read a special register."""
    w.set(i.operands[0], w.special(i.operands[1].text, active), active)


# Floats


@operation("FADD", "FMUL", "FFMA", "DADD", "DMUL", "DFMA")
def arithmetic(w: Warp, i: Instruction, active: Lanes) -> None:
    """Add, multiply, or both, rounded once."""
    result, _, sources, _ = parts(i)
    is_double = i.name.startswith("D")
    read = w.double if is_double else w.float
    values = [read(x).astype(np.float64) for x in sources]
    kind = i.name[-3:]
    if kind == "ADD":
        value = values[0] + values[-1]
    else:
        value = values[0] * values[1]
        value = value + values[2] if len(values) > 2 else value
    if "SAT" in i.modifiers:
        value = np.clip(value, 0, 1)
    write = w.set_double if is_double else w.set_float
    write(result, value, active)


@operation("FMNMX", "FMNMX3", "DMNMX")
def float_least_or_most(w: Warp, i: Instruction, active: Lanes) -> None:
    """Take the minimum or maximum of floats, ignoring NaN."""
    result, _, sources, ins = parts(i)
    read = w.double if i.name == "DMNMX" else w.float
    values = [read(x) for x in sources]
    least, most = values[0], values[0]
    for value in values[1:]:
        least, most = np.fmin(least, value), np.fmax(most, value)
    write = w.set_double if i.name == "DMNMX" else w.set_float
    write(result, np.where(w.predicate(ins[0]), least, most), active)


@operation("FCHK")
def check_division(w: Warp, i: Instruction, active: Lanes) -> None:
    """Tell where a quotient needs the slow path: exponents far apart, or no normal numbers."""
    a, b = (np.abs(w.float(x).astype(np.float64)) for x in i.operands[1:3])
    fine = np.isfinite(a) & np.isfinite(b) & (b > 2.0**-125) & (b < 2.0**125)
    with np.errstate(all="ignore"):
        quotient = a / b
    fine &= (quotient > 2.0**-100) & (quotient < 2.0**126) & (a > 2.0**-100)
    w.set_predicate(i.operands[0], ~fine, active)


SPECIAL: dict[str, Callable[[Any], Any]] = {
    "RCP": np.reciprocal,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": lambda x: np.sin(x),
    "COS": lambda x: np.cos(x),
    "TANH": np.tanh,
}


@operation("MUFU")
def approximate(w: Warp, i: Instruction, active: Lanes) -> None:
    """Compute a function of the special function unit, more exactly than it does."""
    name = i.opcode.split(".")[1]
    result, source = i.operands
    if name.endswith("64H"):
        high = w.raw(source) << HIGH
        value = SPECIAL[name.removesuffix("64H")](high.view(np.float64))
        return w.set(result, value.view(np.uint64) >> HIGH, active)
    w.set_float(result, SPECIAL[name](w.float(source).astype(np.float64)), active)


@operation("I2F", "I2FP")
def to_float(w: Warp, i: Instruction, active: Lanes) -> None:
    """Convert an integer to a float."""
    result, source = i.operands
    if i.modifiers & {"U64", "S64"}:
        bits = w.pair(source)
        value = bits.view(np.int64) if "S64" in i.modifiers else bits
    else:
        value = w.unsigned(source) if "U32" in i.modifiers else w.signed(source)
    if "F64" in i.modifiers:
        return w.set_double(result, value.astype(np.float64), active)
    rounded = value.astype(np.float32)
    if "RP" in i.modifiers:
        short = rounded.astype(np.float64) < value.astype(np.float64)
        rounded = np.where(short, np.nextafter(rounded, np.float32(np.inf)), rounded)
    w.set_float(result, rounded, active)


@operation("F2I")
def to_integer(w: Warp, i: Instruction, active: Lanes) -> None:
    """Convert a float to an integer, which is kept within its type."""
    result, source = i.operands
    value = w.double(source) if "F64" in i.modifiers else w.float(source).astype(np.float64)
    rounding = (("TRUNC", np.trunc), ("FLOOR", np.floor), ("CEIL", np.ceil))
    value = next((f for n, f in rounding if n in i.modifiers), np.rint)(np.nan_to_num(value))
    bits = 64 if i.modifiers & {"U64", "S64"} else 32
    is_unsigned = bool(i.modifiers & {"U64", "U32"})
    low, high = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    exact = np.array([min(max(int(x), low), high) & (1 << 64) - 1 for x in value], np.uint64)
    (w.set_pair if bits == 64 else w.set)(result, exact, active)


@operation("F2F", "FRND")
def round_float(w: Warp, i: Instruction, active: Lanes) -> None:
    """Convert between floats, or round to a whole number."""
    result, source = i.operands
    names = i.opcode.split(".")
    if i.name == "FRND":
        rounding = {"FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}
        function = next((rounding[n] for n in names if n in rounding), np.rint)
        return w.set_float(result, function(w.float(source)), active)
    if "F64" not in names:
        return w.set(result, w.raw(source), active)  # half precision
    if names.index("F64") == len(names) - 1:
        return w.set_float(result, w.double(source), active)
    w.set_double(result, w.float(source).astype(np.float64), active)


@operation("HFMA2", "HADD2", "HMUL2", "HMNMX2", "F2FP", "FADD2", "FMUL2", "FFMA2")
def packed(w: Warp, i: Instruction, active: Lanes) -> None:
    """Put a pair of constants into a register; other sources are passed on as they are."""
    result, _, sources, _ = parts(i)
    numbers = [x for x in sources if x.kind == "number"]
    if i.name == "HFMA2" and len(numbers) == 2 and sources[0].index == ZERO:
        high, low = (int(np.float16(x.value).view(np.uint16)) for x in numbers)
        value = high << 16 | low
        return w.set(result, np.full(32, value, np.uint64), active)
    w.set(result, w.raw(sources[0]), active)
    if i.name.startswith("F") and i.name.endswith("2"):  # two floats in a pair of registers
        second = SassOperand("", "register", result.index + 1, result.uniform)
        w.set(second, w.raw(sources[0]), active)


# Lanes that talk to each other


@operation("SHFL")
def shuffle(w: Warp, i: Instruction, active: Lanes) -> None:
    """Read another lane's register."""
    out, result, source, lane, clamp = i.operands
    own = np.arange(32)
    by, limits = w.raw(lane).astype(int), w.raw(clamp).astype(int)
    segment, most = limits >> 8 & 31, limits & 31
    last = own & segment | most & ~segment & 31
    first = own & segment
    if "BFLY" in i.modifiers:
        other = own ^ by
        valid = other <= last
    elif "UP" in i.modifiers:
        other = own - by
        valid = other >= most
    elif "DOWN" in i.modifiers:
        other = own + by
        valid = other <= last
    else:
        other = first | by & ~segment & 31
        valid = other <= last
    values = w.raw(source)[np.where(valid, other, own) & 31]
    w.set(result, values, active)
    w.set_predicate(out, valid, active)


@operation("VOTE", "VOTEU")
def vote(w: Warp, i: Instruction, active: Lanes) -> None:
    """Collect a predicate of the active lanes: all of them as bits, and whether any or all hold."""
    *outs, read = i.operands
    values = w.predicate(read)[active]
    holds = bool(values.all() if "ALL" in i.modifiers else values.any())
    for out in outs:
        if out.kind == "register":
            bits = sum(1 << int(k) for k in np.flatnonzero(active & w.predicate(read)))
            w.set(out, np.full(32, bits, np.uint64), active)
        else:
            w.set_predicate(out, np.full(32, holds), active)


@operation("MATCH")
def match(w: Warp, i: Instruction, active: Lanes) -> None:
    """Return which active lanes have the same number."""
    registers = [x for x in i.operands if x.kind == "register"]
    values = w.raw(registers[1])
    bits = [sum(1 << int(k) for k in np.flatnonzero(active & (values == v))) for v in values]
    w.set(registers[0], np.array(bits, np.uint64), active)


@operation("REDUX", "CREDUX")
def reduce_lanes(w: Warp, i: Instruction, active: Lanes) -> None:
    """Combine integers of the active lanes."""
    registers = [x for x in i.operands if x.kind == "register"]
    values = w.raw(registers[1])[active]
    functions = {
        "OR": np.bitwise_or,
        "AND": np.bitwise_and,
        "XOR": np.bitwise_xor,
        "SUM": np.add,
        "MAX": np.maximum,
        "MIN": np.minimum,
    }
    function = next((f for n, f in functions.items() if n in i.modifiers), np.add)
    w.set(registers[0], np.full(32, function.reduce(values), np.uint64), active)


# DeviceMemory


def width(i: Instruction) -> int:
    """Return the bytes that an access reads or writes."""
    sizes = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
    return next((n for name, n in sizes.items() if name in i.modifiers), 4)


@operation("LDC", "LDCU", "ULDC")
def load_constant(w: Warp, i: Instruction, active: Lanes) -> None:
    """Read launch parameters, at an offset that registers may have."""
    result, source = i.operands
    bank, number, *terms = source.value  # type: ignore[misc]
    offsets = w.offsets(number, *terms)
    for k in range(max(1, width(i) // 4)):
        into = SassOperand("", "register", result.index + k, result.uniform)
        pairs = zip(offsets, active, strict=True)
        words = [w.constant(bank, int(n) + 4 * k) if on else 0 for n, on in pairs]
        w.set(into, np.array(words, np.uint64), active)


@operation("LDG", "LD", "LDS", "LDL", "ATOMG", "ATOM", "ATOMS")
def load(w: Warp, i: Instruction, active: Lanes) -> None:
    """Read memory. What atomic operations return is 0."""
    place = next(x for x in i.operands if x.kind == "address")
    result = next(x for x in i.operands if x.kind == "register")
    address = w.address(place, i.name in ("LDS", "LDL", "ATOMS"))
    if i.name.startswith("ATOM"):
        w.memory.check(address[active], width(i), i.name == "ATOMS")
        return w.set(result, np.zeros(32, np.uint64), active)
    words = w.memory.read(i.name, address, width(i), active)
    for k, word in enumerate(words):
        w.set(SassOperand("", "register", result.index + k, result.uniform), word, active)
    if width(i) < 4:
        bits = 8 * width(i)
        low = words[0] & np.uint64((1 << bits) - 1)
        if i.modifiers & {"S8", "S16"}:
            low = np.where(
                low >> np.uint64(bits - 1) != 0, low | np.uint64(-1 << bits & 0xFFFFFFFF), low
            )
        w.set(result, low, active)


@operation("STG", "ST", "STS", "STL", "RED", "REDG")
def store(w: Warp, i: Instruction, active: Lanes) -> None:
    """Write memory."""
    place = next(x for x in i.operands if x.kind == "address")
    source = i.operands[-1]
    address = w.address(place, i.name in ("STS", "STL"))
    words = [
        w.raw(source if k == 0 else SassOperand("", "register", _next(source, k), source.uniform))
        for k in range(max(1, width(i) // 4))
    ]
    w.memory.write(i.name, address, width(i), words, active)


def _next(source: SassOperand, k: int) -> int:
    """Return the register that follows; zeros follow the one that is zero."""
    return ZERO if source.index == ZERO else source.index + k

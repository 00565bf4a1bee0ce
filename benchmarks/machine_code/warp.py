"""One warp of a kernel, from its first instruction to EXIT, and the trace of what it did.

Lanes that diverge run group by group, the one at the lowest address first; BSSY and BSYNC, or
WARPSYNC, make them meet again. Barriers of the block do not wait: other warps are not there, and
what they would have left in shared memory is 0.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache

import numpy as np
from attrs import field, frozen

from machine_code import operations
from machine_code.listing import ZERO, AddressTerm, Instruction, Listing, SassOperand, operand
from machine_code.memory import SECTOR, SHARED_WINDOW, DeviceMemory
from machine_code.operations import OPERATIONS, UnknownInstructionError, width

MOST_STEPS = 1_000_000
ALL = (1 << 32) - 1
LOADS, STORES = ("LDG", "LD"), ("STG", "ST", "STS", "STL", "RED", "REDG")
Groups = dict[int, int]
"""Lanes as bits, by the instruction that they are at."""
Waiting = dict[int, tuple[int, int]]
"""Lanes that wait at an instruction, and those that they wait for."""
IDLE = (
    "ACQBULK",
    "BAR",
    "CCTL",
    "CGAERRBAR",
    "DEPBAR",
    "ENDCOLLECTIVE",
    "ERRBAR",
    "FENCE",
    "LDGDEPBAR",
    "MEMBAR",
    "NANOSLEEP",
    "NOP",
    "PREEXIT",
    "UCGABAR_ARV",
    "UCGABAR_WAIT",
    "YIELD",
)
"""Instructions that compute nothing. Those that wait for asynchronous copies are among them."""


class EndlessWarpError(Exception):
    """A warp that does not end, or whose lanes wait for each other."""


@frozen
class WarpLaunch:
    """A launch: blocks and threads along x and y, parameters as bytes, and the architecture."""

    grid: int
    block: tuple[int, int]
    parameters: bytes
    architecture: int

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.block[0] * self.block[1]

    def constants(self) -> dict[int, int]:
        """Return the words of constant bank 0 that a kernel reads, by their offsets.

        Found in listings: parameters begin at 0x160 before sm_90, 0x210 before sm_100, then 0x380.
        """
        new = self.architecture >= 100
        begin = 0x380 if new else 0x210 if self.architecture >= 90 else 0x160
        sizes = dict(
            zip(
                (0x360, 0x364, 0x368, 0x370, 0x374, 0x378) if new else range(0, 24, 4),
                (*self.block, 1, self.grid, 1, 1),
                strict=True,
            )
        )
        words = np.frombuffer(self.parameters + bytes(-len(self.parameters) % 4), np.uint32)
        return sizes | {begin + 4 * k: int(x) for k, x in enumerate(words)}


@frozen
class Wait:
    """Loads whose values the warp waits for: bytes of all lanes, and where it is.

    Attributes:
        nbytes: bytes that were asked for, and have not been waited for.
        streamed: those of them from arrays that are large.
        segment: number of backward branches before, taken or not.
        at: index of the instruction that reads the first value.
    """

    nbytes: int
    streamed: int
    segment: int
    at: int


@frozen
class WarpTrace:
    """The execution of a warp: instructions, waits and loads.

    Attributes:
        issued: times that each instruction was issued.
        waits: in order.
        loaded: bytes that were read from each array, by its begin.
        requested, fetched: bytes of streamed loads, and of the sectors they are in.
    """

    issued: np.ndarray
    waits: list[Wait] = field(factory=list)
    loaded: dict[int, int] = field(factory=dict)
    traffic: list[int] = field(factory=lambda: [0, 0])

    @property
    def instructions(self) -> int:
        """Instructions that were issued."""
        return int(self.issued.sum())


class Warp:
    """A warp: registers, predicates, and groups of lanes by the instruction they are at.

    Args:
        listing: the code.
        launch: the launch.
        memory: the arrays.
        block: the number of its block.
        number: its number in the block.
    """

    def __init__(
        self, listing: Listing, launch: WarpLaunch, memory: DeviceMemory, block: int, number: int
    ) -> None:
        self.listing, self.launch, self.memory, self.block = listing, launch, memory, block
        self.bank = launch.constants()
        self.registers = {u: np.zeros((ZERO + 8, 32), np.uint64) for u in (False, True)}
        self.predicates = {u: np.zeros((8, 32), bool) for u in (False, True)}
        self.predicates[False][7] = self.predicates[True][7] = True
        self.threads = np.arange(32) + 32 * number
        self.barriers = np.zeros((32, 32), np.int64)
        self.exited = 0
        self.trace = WarpTrace(np.zeros(len(listing.instructions), np.int64))
        self.pending: dict[int, tuple[int, int]] = {}
        self.segment = 0

    # What instructions read and write

    def unsigned(self, source: SassOperand) -> np.ndarray:
        """Return an operand as 32 bits, from 0 up."""
        return self.summand(source) & operations.MASK

    raw = unsigned

    def summand(self, source: SassOperand, is_extended: bool = False) -> np.ndarray:
        """Return an operand so that bit 32 of a sum is its carry."""
        if source.kind == "number":
            value = source.value
            bits = (
                int(np.float32(value).view(np.uint32)) if isinstance(value, float) else int(value)
            )  # type: ignore[call-overload]
            return np.full(32, bits & 0xFFFFFFFF, np.uint64)
        if source.kind == "constant":
            plain = np.full(32, self.constant(*source.value), np.uint64)  # type: ignore[misc]
        else:
            plain = self.registers[source.uniform][source.index]
        if source.absolute:
            plain = plain & np.uint64(0x7FFFFFFF)
        if source.inverted or (source.negative and is_extended):
            return plain ^ operations.MASK
        if source.negative:
            return (plain ^ operations.MASK) + np.uint64(1)
        return plain

    def signed(self, source: SassOperand) -> np.ndarray:
        """Return an operand as a signed integer."""
        return self.unsigned(source).astype(np.uint32).view(np.int32).astype(np.int64)

    def pair(self, source: SassOperand) -> np.ndarray:
        """Return the 64 bits of an operand and what follows it."""
        if source.kind == "number":
            return np.full(32, int(source.value) & (1 << 64) - 1, np.uint64)  # type: ignore[call-overload]
        if source.kind == "constant":
            bank, offset = source.value  # type: ignore[misc]
            value = self.constant(bank, offset) | self.constant(bank, offset + 4) << 32
            return np.full(32, value, np.uint64)
        if source.index == ZERO:
            return np.zeros(32, np.uint64)
        low, high = self.registers[source.uniform][source.index : source.index + 2]
        value = low | high << operations.HIGH
        return ~value + np.uint64(1) if source.negative else value

    def _float(self, source: SassOperand, value: np.ndarray) -> np.ndarray:
        value = np.abs(value) if source.absolute else value
        return -value if source.negative else value

    def float(self, source: SassOperand) -> np.ndarray:
        """Return an operand as float32."""
        if source.kind == "number" and isinstance(source.value, float):
            return np.full(32, source.value, np.float32)
        plain = SassOperand("", source.kind, source.index, source.uniform, value=source.value)
        bits = self.summand(plain).astype(np.uint32)
        return self._float(source, bits.view(np.float32))

    def double(self, source: SassOperand) -> np.ndarray:
        """Return an operand as float64."""
        if source.kind == "number":
            return np.full(32, source.value, np.float64)
        plain = SassOperand("", source.kind, source.index, source.uniform, value=source.value)
        return self._float(source, self.pair(plain).view(np.float64))

    def predicate(self, source: SassOperand) -> np.ndarray:
        """Return the values of a predicate."""
        value = self.predicates[source.uniform][source.index]
        return ~value if source.inverted else value

    def constant(self, bank: int, offset: int) -> int:
        """Return a word of a constant bank: a parameter, or what the compiler put there.

        Other words of banks after 0 are addresses of module variables.
        """
        if (bank, offset) in self.listing.constants:
            return self.listing.constants[bank, offset]
        if bank:
            return self.memory.globals.begin >> (32 if offset % 8 else 0) & 0xFFFFFFFF
        return self.bank.get(offset, 0)

    def offsets(self, number: int, terms: Sequence[AddressTerm] = ()) -> np.ndarray:
        """Return the offsets in a constant bank that lanes read: a number and 32-bit registers."""
        total = np.full(32, number, np.uint64)
        for term in terms:
            total = total + self._term(term, is_shared=True)
        return total & operations.MASK

    def address(self, place: SassOperand, is_shared: bool) -> np.ndarray:
        """Return the addresses of an access."""
        number, terms = place.value  # type: ignore[misc]
        total = np.full(32, number & (1 << 64) - 1, np.uint64)
        for term in terms:
            total = total + self._term(term, is_shared)
        return total & operations.MASK if is_shared else total

    def _term(self, term: AddressTerm, is_shared: bool) -> np.ndarray:
        if term.index == ZERO:
            return np.zeros(32, np.uint64)
        own = self.registers[term.uniform]
        value = own[term.index] * np.uint64(term.scale)
        if term.is_pair or (term.uniform and not is_shared):
            value = value | own[term.index + 1] << operations.HIGH
        return value

    def special(self, name: str, active: np.ndarray) -> np.ndarray:
        """Return a special register. Raises: UnknownInstructionError for other ones."""
        across = self.launch.block[0]
        values = {
            "SR_TID.X": self.threads % across,
            "SR_TID.Y": self.threads // across,
            "SR_CTAID.X": self.block,
            "SR_LANEID": np.arange(32),
            "SR_SWINHI": SHARED_WINDOW >> 32,
            "SR_NTID.X": across,
            "SR_LTMASK": (1 << np.arange(32)) - 1,
            "SR_EQMASK": 1 << np.arange(32),
        }
        zeros = (
            "SR_TID.Z",
            "SR_CTAID.Y",
            "SR_CTAID.Z",
            "SR_CgaCtaId",
            "SR_VIRTUALSMID",
            "SR_CLOCKLO",
        )
        if name not in values and name not in zeros:
            raise UnknownInstructionError(f"special register {name}")
        return np.broadcast_to(np.asarray(values.get(name, 0)), 32).astype(np.uint64)

    def set(self, result: SassOperand, value: np.ndarray, active: np.ndarray) -> None:
        """Write the low 32 bits of a register of the active lanes."""
        if result.index == ZERO:
            return
        where = np.True_ if result.uniform else active
        np.copyto(
            self.registers[result.uniform][result.index], value & operations.MASK, where=where
        )

    def set_pair(self, result: SassOperand, value: np.ndarray, active: np.ndarray) -> None:
        """Write 64 bits to a register and the next one."""
        if result.index == ZERO:
            return
        self.set(result, value, active)
        second = SassOperand("", "register", result.index + 1, result.uniform)
        self.set(second, value >> operations.HIGH, active)

    def set_float(self, result: SassOperand, value: np.ndarray, active: np.ndarray) -> None:
        """Write a float, rounded to float32."""
        self.set(result, value.astype(np.float32).view(np.uint32).astype(np.uint64), active)

    def set_double(self, result: SassOperand, value: np.ndarray, active: np.ndarray) -> None:
        """Write a float of 64 bits."""
        self.set_pair(result, value.astype(np.float64).view(np.uint64), active)

    def set_predicate(self, result: SassOperand, value: np.ndarray, active: np.ndarray) -> None:
        """Write a predicate of the active lanes."""
        if result.index == 7:
            return
        where = np.True_ if result.uniform else active
        np.copyto(self.predicates[result.uniform][result.index], value, where=where)

    # Running

    def run(self) -> WarpTrace:
        """Run all lanes to their end.

        Raises: UnknownInstructionError, StrayAccessError with the instruction, or EndlessWarpError.
        """
        threads = self.launch.threads
        there = _bits(self.threads < threads)
        self.exited = ALL & ~there
        groups: Groups = {0: there}
        waiting: Waiting = {}
        steps = 0
        with np.errstate(all="ignore"):
            while groups or waiting:
                if not groups:
                    raise EndlessWarpError(f"lanes wait for each other at {list(waiting)}")
                at = min(groups)
                mask = groups.pop(at)
                self._step(at, mask, groups, waiting)
                steps += 1
                if steps > MOST_STEPS:
                    raise EndlessWarpError(f"more than {MOST_STEPS} instructions")
        return self.trace

    def _step(self, at: int, mask: int, groups: Groups, waiting: Waiting) -> None:
        """Issue the instruction that a group of lanes is at, and add where they go to groups."""
        i = self.listing.instructions[at]
        self.trace.issued[at] += 1
        active = _lanes(mask)
        if self.pending:
            self._wait_for(i, at)
        self.segment += at in self.listing.backward
        if i.guard:
            active = active & self.predicate(_guard(i.guard))
            if not active.any():
                return _add(groups, at + 1, mask)
        taken = _bits(active)
        if i.name in CONTROL:
            return CONTROL[i.name](self, i, at, mask, taken, groups, waiting)
        if i.name not in IDLE:
            try:
                OPERATIONS[i.name](self, i, active)
            except KeyError:
                raise UnknownInstructionError(_shown(i)) from None
            except Exception as error:
                error.add_note(_shown(i))
                raise
            if i.name in LOADS:
                self._loaded(i)
        _add(groups, at + 1, mask)

    def _loaded(self, i: Instruction) -> None:
        """Note a load of global memory, for which nothing has waited yet."""
        region, addresses = self.memory.last, self.memory.last_addresses
        if region is None:
            return
        nbytes = width(i) * len(addresses)
        self.trace.loaded[region.begin] = self.trace.loaded.get(region.begin, 0) + nbytes
        streamed = nbytes if region.begin in self.memory.streamed else 0
        if streamed:
            sectors = len(np.unique(addresses // np.uint64(SECTOR)))
            self.trace.traffic[0] += nbytes
            self.trace.traffic[1] += SECTOR * sectors
        result = next(x for x in i.operands if x.kind == "register")
        for k in range(max(1, width(i) // 4)):
            self.pending[result.index + k] = (nbytes, streamed) if k == 0 else (0, 0)

    def _wait_for(self, i: Instruction, at: int) -> None:
        """Note that the warp waits, if an instruction reads what was loaded.

        Loads that were issued before it are there then, too.
        """
        if self.pending.keys().isdisjoint(registers_read(i)):
            return
        nbytes, streamed = (sum(x) for x in zip(*self.pending.values(), strict=True))
        self.trace.waits.append(Wait(nbytes, streamed, self.segment, at))
        self.pending.clear()

    def _branch(
        self, i: Instruction, at: int, mask: int, taken: int, groups: Groups, waiting: Waiting
    ) -> None:
        """Continue lanes at a label, or behind the branch."""
        label = next((x for x in i.operands if x.kind == "label"), None)
        for x in i.operands:
            if x.kind == "predicate":
                taken &= _bits(self.predicate(x))
        if "DIV" in i.modifiers:  # only where not all lanes of a mask are here
            needed = int(self.unsigned(i.operands[0])[0])
            taken = taken if needed & ~self.exited & ~mask else 0
        if label is None:
            raise UnknownInstructionError(_shown(i))
        target = self.listing.labels[str(label.value)]
        _add(groups, target, taken)
        _add(groups, at + 1, mask & ~taken)

    def _return(
        self, i: Instruction, at: int, mask: int, taken: int, groups: Groups, waiting: Waiting
    ) -> None:
        """Continue each lane at the offset in a register."""
        offsets = self.unsigned(i.operands[0])
        for offset in np.unique(offsets[_lanes(taken)]):
            lanes = _bits(offsets == offset) & taken
            _add(groups, self.listing.index_of(int(offset)), lanes)
        _add(groups, at + 1, mask & ~taken)

    def _exit(
        self, i: Instruction, at: int, mask: int, taken: int, groups: Groups, waiting: Waiting
    ) -> None:
        """End lanes; what others waited for them goes on."""
        self.exited |= taken
        _add(groups, at + 1, mask & ~taken)
        self._release(groups, waiting)

    def _set_barrier(
        self, i: Instruction, at: int, mask: int, taken: int, groups: Groups, waiting: Waiting
    ) -> None:
        """BSSY: these lanes meet again; BREAK: these lanes do not."""
        k = _barrier(i.operands[0].text)
        if i.name == "BSSY":
            self.barriers[k][_lanes(taken)] = taken
        else:
            self.barriers[k] &= ~taken
            self._release(groups, waiting)
        _add(groups, at + 1, mask)

    def _move_barrier(
        self, i: Instruction, at: int, mask: int, taken: int, groups: Groups, waiting: Waiting
    ) -> None:
        """BMOV: copy a barrier's lanes to a register, or back."""
        into, source = i.operands
        active = _lanes(taken)
        if into.kind == "register":
            k = _barrier(source.text)
            self.set(into, self.barriers[k].astype(np.uint64), active)
        else:
            values = self.unsigned(source).astype(np.int64)
            np.copyto(self.barriers[_barrier(into.text)], values, where=active)
        _add(groups, at + 1, mask)

    def _meet(
        self, i: Instruction, at: int, mask: int, taken: int, groups: Groups, waiting: Waiting
    ) -> None:
        """BSYNC, WARPSYNC: wait for the other lanes."""
        if i.name == "BSYNC":
            masks = self.barriers[_barrier(i.operands[0].text)][_lanes(taken)]
            needed = int(np.bitwise_or.reduce(masks))
        elif "ALL" in i.modifiers:
            needed = ALL
        else:
            needed = int(np.bitwise_or.reduce(self.unsigned(i.operands[0])[_lanes(taken)]))
        here, before = waiting.get(at, (0, 0))
        waiting[at] = here | taken, before | needed
        _add(groups, at + 1, mask & ~taken)
        self._release(groups, waiting)

    def _release(self, groups: Groups, waiting: Waiting) -> None:
        """Continue lanes that have met all that they waited for."""
        for at, (here, needed) in [*waiting.items()]:
            if not needed & ~here & ~self.exited:
                del waiting[at]
                _add(groups, at + 1, here)


Control = Callable[["Warp", Instruction, int, int, int, Groups, Waiting], None]
CONTROL: dict[str, Control] = {
    "BRA": Warp._branch,
    "CALL": Warp._branch,
    "RET": Warp._return,
    "EXIT": Warp._exit,
    "BSSY": Warp._set_barrier,
    "BREAK": Warp._set_barrier,
    "BMOV": Warp._move_barrier,
    "BSYNC": Warp._meet,
    "WARPSYNC": Warp._meet,
}


@cache
def registers_read(i: Instruction) -> frozenset[int]:
    """Return the registers that an instruction reads, each lane its own.

    >>> from machine_code.listing import operands
    >>> store = Instruction(0, "", "STG.E.64", operands("desc[UR4][R2.64], R8"))
    >>> sorted(registers_read(store))
    [2, 3, 8, 9]
    """
    return frozenset(_registers_read(i)) - {ZERO}


def _registers_read(i: Instruction) -> Iterator[int]:
    is_store = i.name in STORES
    sources = i.operands if is_store or i.name in CONTROL else i.operands[_first_source(i) :]
    is_pair = i.name in ("DADD", "DMUL", "DFMA", "DSETP") or bool(
        i.modifiers & {"U64", "S64", "F64"}
    )
    for k, x in enumerate(sources):
        if x.kind in ("address", "indexed"):
            for term in x.value[-1]:  # type: ignore[index]
                if not term.uniform:
                    yield from range(term.index, term.index + 1 + term.is_pair)
        elif x.kind == "register" and not x.uniform:
            count = max(1, width(i) // 4) if is_store else 1
            is_sum = k == len(sources) - 1 and bool(i.modifiers & {"WIDE", "HI"})
            yield from range(x.index, x.index + max(count, 1 + (is_pair or is_sum)))


def _first_source(i: Instruction) -> int:
    """Return how many operands are results."""
    count = 0
    while count < len(i.operands) and i.operands[count].kind == "predicate":
        count += 1
    if i.name.removeprefix("U") in ("ISETP", "FSETP", "DSETP", "PLOP3", "FCHK"):
        return count
    return count + 1


def _add(groups: Groups, at: int, lanes: int) -> None:
    """Add lanes to the group at an instruction."""
    if lanes:
        groups[at] = groups.get(at, 0) | lanes


def _bits(lanes: np.ndarray) -> int:
    return int(np.packbits(lanes, bitorder="little").view(np.uint32)[0])


@lru_cache(1024)
def _lanes(mask: int) -> np.ndarray:
    return mask >> np.arange(32) & 1 != 0


@cache
def _guard(text: str) -> SassOperand:
    return operand(text)


def _barrier(text: str) -> int:
    return int(text.removeprefix("B"))


def _shown(i: Instruction) -> str:
    return f"{i.offset:#x}: {i.opcode} {', '.join(x.text for x in i.operands)}"

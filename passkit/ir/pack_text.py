"""The text form of packs of loop nests.

    pack 1x256 blocks 6
    param x0: f32[10]
    param x1: f32[15]
    param y0: f32[10] written
    param y1: f32[15] written
    size n0, n1, n2, n3
    part x0, y0 size n0 first n2
    part x1, y1 size n1 first n3
    kernel 1x256 blocks 8 index 32
    …

The parts of a nest stand in front of it; a nest is a kernel in the text form of
`passkit.ir.text`. ``blocks NAME`` behind a part is the number of the nest's own blocks, where
several of them are side by side in a block. In a pack of several phases ``phase NAME`` begins each
of them, with the number of its blocks.

`print_pack_ir` and `parse_pack_ir` are inverse to each other.
"""

from __future__ import annotations

import json

from passkit.ir.loop import LoopBuffer, StorageScope
from passkit.ir.pack import PackedNest, PackIR, PackPart, PackPhase
from passkit.ir.parser import KernelParser
from passkit.ir.text import buffer_text, print_kernel_ir
from passkit.ir.tokens import ir_tokens


def print_pack_ir(pack: PackIR) -> str:
    """Return the text form of a pack.

    Raises: CodeGenError for an expression that loop IR does not have.
    """
    launch = pack.launch
    comment = f" {json.dumps(pack.comment)}" if pack.comment else ""
    lines = [f"pack {launch.y}x{launch.x} blocks {launch.blocks}{comment}"]
    lines += [buffer_text("param", b) for b in pack.params]
    for word, names in ("size", pack.sizes), ("aliased", sorted(pack.aliased)):
        if names:
            lines.append(f"{word} {', '.join(names)}")
    for phase in pack.phases:
        lines += [] if phase.end is None else [f"phase {phase.end}"]
        for nest in phase.nests:
            lines += map(_part_text, nest.parts)
            lines += print_kernel_ir(nest.kernel).splitlines()
    return "\n".join(lines) + "\n"


def _part_text(part: PackPart) -> str:
    """Return the line of a part."""
    sizes = f" size {', '.join(part.sizes)}" if part.sizes else ""
    blocks = "" if part.blocks is None else f" blocks {part.blocks}"
    return f"part {', '.join(part.buffers)}{sizes} first {part.first}{blocks}"


def parse_pack_ir(text: str) -> PackIR:
    """Return the pack of a text that `print_pack_ir` may have written.

    Raises: ParseError with line and column where the text is no pack.
    """
    return _PackParser(ir_tokens(text)).pack()


class _PackParser(KernelParser):
    """The parser of packs."""

    def pack(self) -> PackIR:
        """Read a pack. Raises: ParseError where something else comes next."""
        self.ends()
        self.expect("pack")
        launch, comment = self.launch(), self.comment()
        self.end()
        params: list[LoopBuffer] = []
        while self.accept("param"):
            params.append(self.buffer(StorageScope.GLOBAL))
        sizes, aliased = self.listed("size"), frozenset(self.listed("aliased"))
        phases = [self._phase()]
        while self.next.kind != "stop":
            phases.append(self._phase())
        return PackIR(tuple(params), sizes, tuple(phases), launch, aliased, comment)

    def _phase(self) -> PackPhase:
        """Read a phase. Raises: ParseError where something else comes next."""
        end: str | None = None
        if self.accept("phase"):
            end = self.name()
            self.end()
        nests = [self._nest()]
        while self.next.kind != "stop" and self.next.text != "phase":
            nests.append(self._nest())
        return PackPhase(tuple(nests), end)

    def _nest(self) -> PackedNest:
        """Read a nest with its parts. Raises: ParseError where something else comes next."""
        self.expect("part")
        parts = [self._part()]
        while self.accept("part"):
            parts.append(self._part())
        return PackedNest(self.kernel(), tuple(parts))

    def _part(self) -> PackPart:
        """Read the rest of the line of a part. Raises: ParseError for something else."""
        buffers = self.names()
        sizes = self.names() if self.accept("size") else ()
        self.expect("first")
        first = self.name()
        blocks = self.name() if self.accept("blocks") else None
        self.end()
        return PackPart(buffers, sizes, first, blocks)

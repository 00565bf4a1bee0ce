"""Pictures of executions of streams: a time line of runs, or of plans with their numbers of runs.

Each run is a frame of its operations, grouped by kernel. If there are many runs, those of one plan
share a frame; if there are many operations, a frame is one box.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from attrs import frozen

from passkit.streams.inspection import NOT_NEEDED, StreamRun
from passkit.streams.run_tables import RunTotals, line_text, operations_text
from passkit.values.arguments import shortened
from passkit.values.units import bytes_text, seconds_text
from passkit.viz.labels import counted
from passkit.viz.picture import Picture, picture_of
from passkit.viz.scene import Scene, SceneArrow, SceneBox, SceneFrame
from passkit.viz.styles import FILL, INK, KINDS, LINE, PENDING, TIME

MAX_RUNS = 8
"""The number of runs beyond which those of one plan share a frame."""
MAX_OPERATIONS = 160
"""The number of operations beyond which a frame is one box."""
MAX_UNITS = 40
"""The number of plans beyond which those that ran least are one box."""
MAX_PENDING = 3
"""The number of operations that did not run and stay pending, beyond which they are one box."""
MAX_LABEL = 40
"""Letters of a line of a box."""
REST = "rest"
"""The name of the plans beyond MAX_UNITS."""


@frozen
class _Unit:
    """Runs that are drawn together.

    Attributes:
        key: the prefix of the keys of its boxes.
        title: the title of its frame.
        runs: the runs, of which the last one is drawn.
        mixed: whether the runs are of several plans, so that none of them is drawn.
    """

    key: str
    title: str
    runs: tuple[StreamRun, ...]
    mixed: bool = False

    @property
    def shown(self) -> StreamRun:
        """The run of the unit that is drawn: its last."""
        return self.runs[-1]


def picture(runs: Sequence[StreamRun], detail: bool | None = None) -> Picture:
    """Return a drawing of executions, one frame for each run, or for each plan.

    Args:
        runs: the runs in order.
        detail: True draws each run, False each plan; None draws runs up to MAX_RUNS of them with up
            to MAX_OPERATIONS operations together, else plans. Frames of plans show the operations
            of the last run within the same limits, and else are one box.
    """
    num_operations = sum(len(run.computed) for run in runs)
    if detail is None:
        detail = len(runs) <= MAX_RUNS and num_operations <= MAX_OPERATIONS
    units = [_Unit(f"r{k}", f"run {run.number}", (run,)) for k, run in enumerate(runs)]
    if not detail:
        units = _units_by_plan(runs)
        operations = sum(len(unit.shown.computed) for unit in units)
        detail = len(units) <= MAX_RUNS and operations <= MAX_OPERATIONS
    return picture_of(_RunsDrawing(runs, units, detail).scene)


def _units_by_plan(runs: Sequence[StreamRun]) -> list[_Unit]:
    """Return a unit for each plan, in the order of the first runs.

    Beyond MAX_UNITS plans, those that ran least are one unit at the end.
    """
    by_plan: dict[str, list[StreamRun]] = {}
    for run in runs:
        by_plan.setdefault(run.plan, []).append(run)
    names = sorted(by_plan, key=lambda name: -len(by_plan[name]))[:MAX_UNITS]
    units = [
        _Unit(f"p{k}", f"plan {name}" if name else "no plan", tuple(by_plan[name]))
        for k, name in enumerate(by_plan)
        if name in names
    ]
    others = [run for run in runs if run.plan not in names]
    if others:
        title = f"{len(by_plan) - len(names)} more plans"
        units.append(_Unit(REST, title, tuple(others), mixed=True))
    return units


class _RunsDrawing:
    """Draws units of runs, with the arrows between them.

    Args:
        runs: the runs in order.
        units: the units that they belong to.
        detail: whether to draw the operations of a unit, or one box for it.

    Attributes:
        scene: the drawing.
    """

    def __init__(self, runs: Sequence[StreamRun], units: Sequence[_Unit], detail: bool) -> None:
        self.scene = Scene("streams")
        self._unit_of = {id(run): unit for unit in units for run in unit.runs}
        self._box_of: dict[tuple[str, int], str] = {}  # by the key of the unit and the position
        self._sinks: dict[str, list[str]] = {}
        self._detail = detail
        self.scene.add(SceneBox("start", ("start",), "plaintext", ink=TIME))
        previous: _Unit | None = None
        for unit in units:
            if detail and not unit.mixed:
                self._draw_unit(unit)
            else:
                self._draw_box(unit)
            if previous is not None:  # the time line goes from top to bottom
                self._order(previous, unit)
            previous = unit
        self._draw_time(runs)
        self._draw_arrays(runs)
        self.scene.legend = self._legend()

    def _draw_box(self, unit: _Unit) -> None:
        """Add one box for a unit to the scene: its title, totals and operations."""
        shown = operations_text(unit.shown, 3 * MAX_LABEL)
        lines = (unit.title, *_header_lines(unit), *_wrapped(shown))
        ran = unit.shown.path != "unfused"
        kind = "elementwise" if ran else "NumPy"
        box = SceneBox(f"{unit.key}head", lines, fill=FILL[kind], line=LINE[kind])
        self.scene.add(box)
        self._sinks[unit.key] = [box.key]

    def _draw_unit(self, unit: _Unit) -> None:
        """Draw a unit as a frame with the operations of its last run, grouped by kernel."""
        run, key = unit.shown, unit.key
        self.scene.frames[key] = SceneFrame(key, unit.title, line=TIME)
        head = f"{key}head"
        self.scene.add(SceneBox(head, _header_lines(unit), "note", line=TIME, frame=key))
        frame_of = self._draw_kernels(unit)
        written, pending = set(run.written), set(run.pending)
        in_place = dict(run.in_place)
        drawn = sorted({*run.computed, *run.pending})
        waiting = [k for k in run.pending if k not in run.computed]
        if len(waiting) > MAX_PENDING:
            names = ", ".join(run.operations[k] for k in waiting)
            title = f"{len(waiting)} operations stay pending:"
            lines = (title, *_wrapped(shortened(names, 3 * MAX_LABEL)))
            box = SceneBox(f"{key}waiting", lines, frame=key, line=PENDING, dashed=True)
            self.scene.add(box)
            self._box_of |= {(key, k): box.key for k in waiting}
            drawn = list(run.computed)
        for k in drawn:
            frame, kind = frame_of.get(k, (key, "operator"))
            texts = [shortened(run.call(k), MAX_LABEL)]
            if k in written:
                texts += [run.types[k], f"written: {run.why_written[k]}"]
            elif k in pending:
                reason = run.why_pending[k]
                texts += ["pending: " + ("nobody needs it yet" if reason == NOT_NEEDED else reason)]
            if k in in_place:
                texts.append(f"over an input, {run.inputs[in_place[k]].type}")
            is_pending = k in pending and k not in written
            box = SceneBox(
                f"{key}o{k}",
                tuple(texts),
                line=PENDING if is_pending else LINE[kind],
                frame=frame,
                double=k in written,
                dashed=is_pending,
                tooltip=f"{k} {run.call(k)}: {run.types[k]}",
            )
            self._box_of[key, k] = self.scene.add(box)
        self._draw_inner_arrows(unit, frame_of)

    def _draw_kernels(self, unit: _Unit) -> dict[int, tuple[str, str]]:
        """Draw the frames of the kernels of a unit.

        Returns: The key of the frame of each operation, and the kind of work there. An operation
            of several kernels is drawn where a library computes it, or in the first one.
        """
        run = unit.shown
        groups = list(run.groups)
        if run.path == "unfused":
            groups = [("NumPy", "unfused, one by one", run.computed)]
        order = sorted(range(len(groups)), key=lambda k: (groups[k][0] != "library", k))
        group_of: dict[int, int] = {}
        for g in order:
            for k in groups[g][2]:
                group_of.setdefault(k, g)
        frames = {}
        for g, (kind, name, _) in enumerate(groups):
            if g in group_of.values():
                key = f"{unit.key}k{g}"
                label = name if run.path == "unfused" else KINDS[kind].label
                self.scene.frames[key] = SceneFrame(
                    key, label, unit.key, FILL[kind], LINE[kind], tooltip=name
                )
                frames[g] = key
        return {k: (frames[g], groups[g][0]) for k, g in group_of.items()}

    def _draw_inner_arrows(self, unit: _Unit, frame_of: dict[int, tuple[str, str]]) -> None:
        """Draw the arrows between the operations of a unit's last run, and note its last boxes.

        ``frame_of`` has the frame and the kind of work of each operation, as of `_draw_kernels`.
        """
        run, key = unit.shown, unit.key
        arrows: dict[SceneArrow, None] = {}
        readers: set[str] = set()
        for k, operands in enumerate(run.operands):
            head = self._box_of.get((key, k))
            if head is None:
                continue
            for kind, index in operands:
                tail = self._box_of.get((key, index)) if kind == "operation" else None
                if tail is None or tail == head:
                    continue
                readers.add(tail)
                ran = k in run.computed and index in run.computed
                is_inner = frame_of.get(index) == frame_of.get(k) and run.path != "unfused"
                # One of several results has a type of its own; its operand has all of them.
                type_text = run.types[k if run.operations[k] == "project" else index]
                lines = () if is_inner or run.path == "unfused" else (type_text,)
                if not ran:
                    arrows[SceneArrow(tail, head, (), "pending")] = None
                else:
                    arrows[SceneArrow(tail, head, lines, "inner" if is_inner else "memory")] = None
        self.scene.arrows += arrows
        boxes = {
            self._box_of[key, k] for k in range(len(run.operations)) if (key, k) in self._box_of
        }
        self._sinks[key] = sorted(boxes - readers) or [f"{key}head"]
        read = {a.head for a in arrows}
        self.scene.arrows += [
            SceneArrow(f"{key}head", box, kind="order") for box in sorted(boxes - read)
        ]

    def _order(self, above: _Unit, below: _Unit) -> None:
        """Keep everything of a unit above everything of the next one."""
        for sink in self._sinks[above.key]:
            self.scene.arrows.append(SceneArrow(sink, f"{below.key}head", kind="order"))

    def _draw_time(self, runs: Sequence[StreamRun]) -> None:
        """Draw an arrow from the box "start" to the first run, and from each run to the next.

        An arrow has the reason and the line of the run that it leads to. Runs of the same two boxes
        share an arrow, with the three most frequent reasons.
        """
        steps: dict[tuple[str, str], Counter[str]] = {}
        for before, run in pairwise([None, *runs]):
            assert run is not None
            tail = "start"
            if before is not None:
                unit = self._unit_of[id(before)]
                tail = f"{unit.key}head"
            head = f"{self._unit_of[id(run)].key}head"
            text = f"{run.reason} at {line_text(run.line)}"
            steps.setdefault((tail, head), Counter())[text] += 1
        order = {key: k for k, key in enumerate(self.scene.boxes)}
        for (tail, head), reasons in steps.items():
            lines = [
                _counted_text(text, n if len(runs) > len(order) or n > 1 else 1)
                for text, n in reasons.most_common(3)
            ]
            if len(reasons) > 3:
                lines.append(f"and {len(reasons) - 3} more")
            kind = "time" if order[tail] < order[head] else "time back"
            self.scene.arrows.append(SceneArrow(tail, head, tuple(lines), kind))

    def _draw_arrays(self, runs: Sequence[StreamRun]) -> None:
        """Draw the arrows of arrays between runs, and inputs that no drawn run has written."""
        home: dict[int, tuple[str, bool]] = {}  # by value: the box, and whether it is pending
        arrows: Counter[tuple[str, str, str, str]] = Counter()
        inputs: dict[tuple[str, int], list[str]] = {}
        for run in runs:
            unit = self._unit_of[id(run)]
            heads = self._readers(unit, run)
            for k, source in enumerate(run.inputs):
                # Arrays without elements give plans extents and positions by their shapes.
                if source.value < 0 or not source.nbytes or k not in heads:
                    continue
                if source.value in home:
                    tail, _ = home[source.value]
                    for head in heads[k]:
                        arrows[tail, head, source.type, "memory"] += 1
                elif run is unit.shown and self._detail and not unit.mixed:
                    inputs[unit.key, k] = heads[k]
            for k in run.waited_since:
                box = self._box(unit, k)
                if run.values[k] in home and box is not None:
                    tail, is_shown = home[run.values[k]]
                    if is_shown:
                        arrows[tail, box, run.types[k], "pending"] += 1
            for k in run.written:
                home[run.values[k]] = self._box(unit, k) or f"{unit.key}head", True
            for k in run.pending:
                box = self._box(unit, k)
                if box is not None:
                    home[run.values[k]] = box, run.why_pending[k] == NOT_NEEDED
        self._add_inputs(inputs)
        order = {key: k for k, key in enumerate(self.scene.boxes)}
        for (tail, head, type_text, kind), n in arrows.items():
            if order[tail] >= order[head]:
                kind = "carried"
            self.scene.arrows.append(SceneArrow(tail, head, (_counted_text(type_text, n),), kind))

    def _add_inputs(self, inputs: dict[tuple[str, int], list[str]]) -> None:
        """Draw inputs of units, with arrows to the boxes that read them.

        ``inputs`` has the keys of these boxes by the key of a unit and the index of the input.
        """
        units = {unit.key: unit for unit in self._unit_of.values()}
        for (key, index), heads in inputs.items():
            box = SceneBox(
                f"{key}i{index}", (units[key].shown.inputs[index].type,), "ellipse", frame=key
            )
            self.scene.add(box)
            self.scene.arrows += [SceneArrow(box.key, head) for head in dict.fromkeys(heads)]
            self.scene.arrows.append(SceneArrow(f"{key}head", box.key, kind="order"))

    def _box(self, unit: _Unit, position: int) -> str | None:
        """Return the key of the box of the operation at a position in a unit's runs.

        If the unit is drawn as one box, it is that. None: the operation has no box.
        """
        if not self._detail or unit.mixed:
            return f"{unit.key}head"
        return self._box_of.get((unit.key, position))

    def _readers(self, unit: _Unit, run: StreamRun) -> dict[int, list[str]]:
        """Return the keys of the boxes of operations of a run that read inputs, by their index.

        Only operations that ran count.
        """
        readers: dict[int, list[str]] = {}
        for k, operands in enumerate(run.operands):
            box = self._box(unit, k)
            ran = k in run.computed
            for kind, index in operands:
                if kind == "input" and box is not None and ran:
                    boxes = readers.setdefault(index, [])
                    if box not in boxes:
                        boxes.append(box)
        return readers

    def _legend(self) -> list[SceneBox]:
        """Return boxes that explain the bold arrow to the next run, and what else is drawn."""
        boxes = [
            SceneBox(
                "legend_time",
                ("bold arrow: the next run,", "with its reason"),
                "plaintext",
                ink=TIME,
            )
        ]
        drawn = self.scene.boxes.values()
        if any(box.double for box in drawn):
            boxes.append(SceneBox("legend_written", ("written to memory",), double=True))
        if any(box.dashed for box in drawn):
            boxes.append(SceneBox("legend_pending", ("stays pending",), line=PENDING, dashed=True))
        if any(a.kind == "inner" for a in self.scene.arrows):
            lines = ("grey arrow: inside the kernel", "black arrow: through memory")
            boxes.append(SceneBox("legend_arrow", lines, "plaintext", ink=INK))
        if any(a.kind == "carried" for a in self.scene.arrows):
            lines = ("dashed black arrow: to", "a later run of the plan")
            boxes.append(SceneBox("legend_carried", lines, "plaintext", ink=INK))
        return boxes


def _header_lines(unit: _Unit) -> tuple[str, ...]:
    """Return the lines about a unit: plan, path and time, kernels and bytes, why it ran unfused."""
    totals = RunTotals()
    for run in unit.runs:
        totals.add(run)
    run = unit.shown
    paths = ", ".join(_counted_text(path, n) for path, n in totals.paths.items())
    if totals.runs == 1:
        plan = f"plan {run.plan}, " if run.plan and unit.title.startswith("run") else ""
        lines = [f"{plan}{paths}, {seconds_text(run.seconds)}"]
    else:
        lines = [
            f"{counted(totals.runs, 'run')}: {paths}",
            f"{seconds_text(totals.seconds)} in all",
        ]
    kernels = counted(run.launches, "kernel") if run.launches else ""
    moved = f"read {bytes_text(run.bytes_read)}, wrote {bytes_text(run.bytes_written)}"
    if not unit.mixed:
        each = " each" if totals.runs > 1 else ""
        lines.append(", ".join(filter(None, (kernels, moved))) + each)
    lines += _wrapped(run.why_unfused)
    return tuple(lines)


def _counted_text(text: str, count: int) -> str:
    """Return a text, with ``count`` and a multiplication sign before it unless that is 1."""
    return text if count == 1 else f"{count}× {text}"


def _wrapped(text: str) -> Iterable[str]:
    """Return the lines of a text, of at most MAX_LABEL letters where words allow; none for ""."""
    line = ""
    lines = []
    for word in text.split():
        if line and len(line) + len(word) + 1 > MAX_LABEL:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line else lines

"""The plans of a device: the trie that all its streams share, with counters and logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from threading import RLock

from passkit.streams.device import StreamDevice
from passkit.streams.inspection import RunLog, RunTracker
from passkit.streams.operation import CPU, OperationTable
from passkit.streams.plan import Plan
from passkit.streams.plan_file import PlanFile
from passkit.streams.recorder import TrieNode
from passkit.streams.trie import walk

MAX_PLANS = 2048
"""How many plans are made before those without an executable are forgotten."""


class PlanStore:
    """The plans of one device, which all its streams share.

    Args:
        operations: the operations that plans consist of.
        device: the device; None for the CPU.

    Attributes:
        trie: the root of the trie of plans.
        sightings: how often a sequence that has no plan was run unfused.
        counts: counters by name, which `passkit.xp.stats` explains.
        inspectors: logs to which every execution is appended.
        tracker: makes the records of executions, while there are inspectors.
        has_compiler: whether plans can be compiled, as far as that was tried.
    """

    def __init__(self, operations: OperationTable, device: StreamDevice | None = None) -> None:
        self.operations, self.device = operations, device
        self.trie = TrieNode()
        self.sightings: Counter[Hashable] = Counter()
        self.counts: Counter[str] = Counter()
        self.inspectors: list[RunLog] = []
        self.tracker = RunTracker()
        self.has_compiler = True
        self._num_plans = 0
        self._others: dict[StreamDevice, PlanStore] = {}
        self._file: PlanFile | None = None
        self._undecoded: list[bytes] = []
        self._num_operations = 0
        self._lock = RLock()

    def on(self, device: StreamDevice) -> PlanStore:
        """Return the store of plans of another device, with the same operations, counters and logs.

        The first call for a device creates it.
        """
        with self._lock:
            store = self._others.get(device)
            if store is None:
                store = self._others[device] = PlanStore(self.operations, device)
                store.counts, store.inspectors = self.counts, self.inspectors
                store.tracker = self.tracker
        return store

    def load(self) -> PlanFile:
        """Return the file of the plans on disk; the first call adds its plans to the trie."""
        if self._file is None:
            with self._lock:
                if self._file is None:
                    facts = CPU if self.device is None else self.device.facts
                    file = PlanFile(self.operations, facts)
                    self._add_plans(file, file.lines())
                    self._file = file
        return self._file

    def _add_plans(self, file: PlanFile, lines: Iterable[bytes]) -> None:
        """Add the plans of lines of a file to the trie, as stored variants.

        Lines that this process does not understand, such as with unknown operations, are kept for
        another try; those of an earlier call are dropped. If lines of one sequence differ in which
        inputs are equal, only variants of the lines without equal inputs stay; without such lines,
        only variants of those lines that agree with the first one.
        """
        self._num_operations = len(self.operations)
        self._undecoded = []
        for line in lines:
            stored = file.decoded(line)
            if stored is None:
                self._undecoded.append(line)
                continue
            node = walk(self.trie, stored.keys)
            plan = node.plan
            if plan is None:
                plan = node.plan = Plan(stored.keys, stored.equal_inputs)
            elif stored.equal_inputs != plan.equal_inputs:
                if stored.equal_inputs:
                    continue
                plan.generalize()
            plan.needs_extents |= stored.dims is not None
            key = stored.outputs if stored.dims is None else (stored.outputs, stored.dims)
            plan.stored.add(key)

    def explore(self) -> None:
        """Count a plan that is about to be made, and make room for it.

        If operations were defined since the file was read, plans on disk with them are added first.

        After `MAX_PLANS` of them, sequences that were never compiled are forgotten, and the
        executables of the others: those are loaded again from the cache when they are needed. So
        programs that never repeat themselves, or that have very many forms, take bounded memory.
        """
        if self._undecoded and self._file and self._num_operations != len(self.operations):
            with self._lock:
                self._add_plans(self._file, self._undecoded)
        self._num_plans += 1
        if self._num_plans < MAX_PLANS:
            return
        with self._lock:
            compiled = [plan for plan in self._plans() if plan.release()]
            self.trie.drop_children()
            self.sightings.clear()
            for plan in compiled[-MAX_PLANS // 2 :]:
                walk(self.trie, plan.keys).plan = plan
            self._num_plans = 0

    def _plans(self) -> Iterator[Plan]:
        """Yield all plans in the trie, in no certain order."""
        pending = [self.trie]
        while pending:
            node = pending.pop()
            pending += node.children.values()
            if node.plan is not None:
                yield node.plan

    def forget(self) -> None:
        """Drop all plans in memory and what was learned about sequences; read those on disk again.

        Counters stay.
        """
        with self._lock:
            self.has_compiler = True
            self.trie.drop_children()
            self.sightings.clear()
            self._num_plans = 0
            self.tracker = RunTracker()
            self._file = None
            self.load()
            for store in self._others.values():
                store.forget()
                store.tracker = self.tracker

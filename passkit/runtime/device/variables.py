"""Variables on a device, where they stay between calls until the host asks for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from passkit.runtime.device.memory import Cell, cell_of
from passkit.runtime.state import State


class Variables:
    """The variables of a state that programs of one device use, as cells of their calls."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.cells: dict[str, Cell] = {}

    @classmethod
    def of(cls, state: State, device: Any) -> Variables:
        """Those of a state on a device, whose programs share them."""
        with state.lock:
            found = state.elsewhere.get(device)
            if not isinstance(found, cls):
                found = state.elsewhere[device] = cls(device)
        return found

    def add(self, name: str, array: Any) -> Cell:
        """A variable's cell; ``array`` is where the host has it."""
        if name not in self.cells:
            self.cells[name] = cell_of(array, stays=True)
        return self.cells[name]

    def fetch(self, name: str) -> None:
        """Bring a variable to the host, if only the device knows it."""
        cell = self.cells.get(name)
        if cell is None or cell.on_host:
            return
        with self.device.used("reading a variable"):
            self.device.queue.download(cell.array[: cell.nbytes], cell.buffer).wait()
        cell.on_host = True

    def forget(self, name: str) -> None:
        """From now on the host alone knows a variable."""
        cell = self.cells.get(name)
        if cell is not None:
            cell.on_host, cell.on_device = True, False

    @contextmanager
    def used(self, state: State, names: Collection[str]) -> Iterator[None]:
        """Inside, a call has variables for itself, which other devices give back.

        After a call that fails, what the host knew before holds again.
        """
        if not names:
            yield
            return
        with state.lock:
            state.bring(but=self)
            known = [n for n in names if self.cells[n].on_host]
            try:
                yield
            except BaseException:
                for name in known:
                    self.forget(name)
                raise
            if state.pinned:
                state.bring()

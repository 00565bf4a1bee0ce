"""Variables on a device: they stay there between calls until the host reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from passkit.runtime.device.call_memory import MemoryCell, cell_of
from passkit.runtime.device.launcher import ChangesBase
from passkit.runtime.state import State


class DeviceVariables(ChangesBase):
    """The variables of a state that programs on one device use, as cells that their calls share.

    ``cells`` maps each variable's name to its memory on the host and on ``device``. ``changes``
    counts how often where a value is changed, other than by calls that the launcher repeats.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self.cells: dict[str, MemoryCell] = {}

    @classmethod
    def of(cls, state: State, device: Any) -> DeviceVariables:
        """Return a state's variables on a device, the same object for all programs.

        The first call creates it and records it in ``state.elsewhere``.
        """
        with state.lock:
            variables = state.elsewhere.get(device)
            if not isinstance(variables, cls):
                variables = state.elsewhere[device] = cls(device)
        return variables

    def add(self, name: str, array: Any) -> MemoryCell:
        """Return a variable's cell, new at its first use; ``array`` is the host's memory of it."""
        if name not in self.cells:
            self.cells[name] = cell_of(array, persistent=True)
        return self.cells[name]

    def fetch(self, name: str) -> None:
        """Download a variable to the host's array, and wait, if only the device has its value.

        Nothing happens for a name that no program on the device uses. Raises: DeviceError where the
        download fails or the device was opened by the parent of this process.
        """
        cell = self.cells.get(name)
        if cell is None or cell.on_host:
            return
        with self.device.active("reading a variable"):
            self.device.queue.download(cell.array[: cell.nbytes], cell.buffer).wait()
        cell.on_host = True
        self.changes += 1

    def forget(self, name: str) -> None:
        """Mark a variable as valid on the host only: the device's value is discarded.

        Nothing happens for a name that no program on the device uses.
        """
        cell = self.cells.get(name)
        if cell is not None:
            cell.on_host, cell.on_device = True, False
            self.changes += 1

    @contextmanager
    def used(self, state: State, names: Collection[str]) -> Iterator[None]:
        """Give a call exclusive use of variables inside the `with` block.

        Other devices return them first. After a call that fails, the values that the host had
        before are valid again. After one that succeeds, all values are copied to the host if the
        state is pinned. Without names nothing is locked or copied.

        Args:
            state: The state that has the variables.
            names: The variables of the program.

        Raises:
            DeviceError: where a download from a device fails.
        """
        if not names:
            yield
            return
        with state.lock:
            state.bring(but=self)
            before = self._places(names)
            on_host = [name for name in names if self.cells[name].on_host]
            try:
                yield
            except BaseException:
                for name in on_host:
                    self.forget(name)
                raise
            self.changes += self._places(names) != before
            if state.pinned:
                state.bring()

    def _places(self, names: Collection[str]) -> list[tuple[bool, bool, Any]]:
        """Return where the values of variables are: on the host, on the device, in which block."""
        cells = [self.cells[name] for name in names]
        return [(cell.on_host, cell.on_device, cell.buffer) for cell in cells]

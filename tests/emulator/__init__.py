"""CUDA C on a CPU: the text that passkit prints, compiled by g++ and run thread by thread."""

from tests.emulator.driver import Driver, EmulatedError, Figures, Order
from tests.emulator.programs import emulated

__all__ = ["Driver", "EmulatedError", "Figures", "Order", "emulated"]

"""An emulator of CUDA: kernels that passkit prints are compiled by g++ and run thread by thread."""

from tests.emulator.device import EmulatedDevice, EmulatedError, LaunchOptions, ThreadOrder
from tests.emulator.programs import emulated

__all__ = ["EmulatedDevice", "EmulatedError", "LaunchOptions", "ThreadOrder", "emulated"]

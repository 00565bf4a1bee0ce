"""Library steps on a CUDA device: products by cuBLASLt, convolutions by cuDNN."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from passkit.runtime.cuda.convolutions import ConvolutionStep, FilterGradientStep
from passkit.runtime.cuda.products import ProductsStep
from passkit.runtime.cuda.shared import MissingError
from passkit.runtime.device.memory import Memory
from passkit.runtime.program import FilterGradient, Library, Product, ProductSum, Ref

if TYPE_CHECKING:
    from passkit.runtime.cuda.run import Bound

Action = Callable[[Memory], None]


def on_device(step: Library, bound: Bound, bias: Ref | None = None) -> Action:
    """What runs a step on the device, in its stream; to products a ``bias`` may be added.

    Raises: MissingError where nothing does.
    """
    match step.contract:
        case Product():
            return ProductsStep(step, [step.contract], bound, bias)
        case ProductSum():
            return ProductsStep(step, step.contract.parts, bound, bias)
        case FilterGradient():
            return FilterGradientStep(step, step.contract.of, bound)
    return ConvolutionStep(step, step.contract, bound)


def counted(missing: MissingError, counts: dict[str, Any]) -> None:
    """Note that a step stays on the host, and why."""
    reasons = counts.setdefault("on_host_because", ())
    if str(missing) not in reasons:
        counts["on_host_because"] = (*reasons, str(missing))

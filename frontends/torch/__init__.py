"""PyTorch programs as passkit graphs: a backend of `torch.compile`, and `from_torch`.

``torch.compile(model, backend="passkit")`` finds the backend by an entry point. PyTorch is needed.
"""

from passkit.frontends.torch.backend import passkit_backend
from passkit.frontends.torch.exported import from_torch
from passkit.frontends.torch.reports import Report, report

__all__ = ["Report", "from_torch", "passkit_backend", "report"]

"""PyTorch programs as passkit graphs: a backend of `torch.compile`.

``torch.compile(model, backend="passkit")`` finds the backend by an entry point; it needs PyTorch.
"""

from passkit.frontends.torch.backend import passkit_backend

__all__ = ["passkit_backend"]

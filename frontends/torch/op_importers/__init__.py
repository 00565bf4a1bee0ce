"""Importers of PyTorch's operators, by family; importing this package registers all of them."""

from passkit.frontends.torch.op_importers import (
    attention,
    creation,
    elementwise,
    fourier,
    indexing,
    layers,
    linalg,
    movement,
    pooling,
    products,
    reductions,
    special,
)
from passkit.frontends.torch.op_importers.registry import IMPORTERS, AtenCall, imports

IMPORTERS.update({copy: IMPORTERS[view] for copy, view in movement.COPIES.items()})

__all__ = [
    "IMPORTERS",
    "AtenCall",
    "attention",
    "creation",
    "elementwise",
    "fourier",
    "imports",
    "indexing",
    "layers",
    "linalg",
    "movement",
    "pooling",
    "products",
    "reductions",
    "special",
]

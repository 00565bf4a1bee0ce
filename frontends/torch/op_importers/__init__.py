"""Importers of PyTorch's operators, by family; importing this package registers all of them."""

from passkit.frontends.torch.op_importers import (
    attention,
    creation,
    elementwise,
    indexing,
    layers,
    movement,
    products,
    reductions,
)
from passkit.frontends.torch.op_importers.registry import IMPORTERS, AtenCall, imports

__all__ = [
    "IMPORTERS",
    "AtenCall",
    "attention",
    "creation",
    "elementwise",
    "imports",
    "indexing",
    "layers",
    "movement",
    "products",
    "reductions",
]

"""``tf.train``: optimizers, checkpoints and steps."""

from passkit.frontends.tinyflow.missing import lookup
from passkit.frontends.tinyflow.train.optimizers import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    Optimizer,
    RMSPropOptimizer,
)
from passkit.frontends.tinyflow.train.saver import Saver, latest_checkpoint
from passkit.frontends.tinyflow.train.steps import (
    exponential_decay,
    get_global_step,
    get_or_create_global_step,
)

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "RMSPropOptimizer",
    "Saver",
    "exponential_decay",
    "get_global_step",
    "get_or_create_global_step",
    "latest_checkpoint",
]
__getattr__ = lookup("tf.train", lambda: dict.fromkeys(__all__))

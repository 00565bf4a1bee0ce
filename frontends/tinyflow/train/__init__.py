"""``tf.train``: optimizers, checkpoints, the global step and decaying learning rates."""

from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.train.global_step import (
    exponential_decay,
    get_global_step,
    get_or_create_global_step,
)
from passkit.frontends.tinyflow.train.optimizer import Optimizer
from passkit.frontends.tinyflow.train.optimizers import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    RMSPropOptimizer,
)
from passkit.frontends.tinyflow.train.saver import Saver, latest_checkpoint

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
__getattr__ = missing_name_handler("tf.train", lambda: dict.fromkeys(__all__))

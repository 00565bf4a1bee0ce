"""``tf.layers``: layers as functions that create their variables, and as classes."""

from passkit.frontends.tinyflow.layers.classes import (
    AveragePooling1D,
    AveragePooling2D,
    BatchNormalization,
    Conv1D,
    Conv2D,
    Conv2DTranspose,
    Dense,
    Dropout,
    Flatten,
    MaxPooling1D,
    MaxPooling2D,
)
from passkit.frontends.tinyflow.layers.convolutions import conv1d, conv2d, conv2d_transpose
from passkit.frontends.tinyflow.layers.core import dense, dropout, flatten
from passkit.frontends.tinyflow.layers.normalization import batch_normalization
from passkit.frontends.tinyflow.layers.pooling import (
    average_pooling1d,
    average_pooling2d,
    max_pooling1d,
    max_pooling2d,
)
from passkit.frontends.tinyflow.missing_names import missing_name_handler

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Dense",
    "Dropout",
    "Flatten",
    "MaxPooling1D",
    "MaxPooling2D",
    "average_pooling1d",
    "average_pooling2d",
    "batch_normalization",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "dense",
    "dropout",
    "flatten",
    "max_pooling1d",
    "max_pooling2d",
]
__getattr__ = missing_name_handler("tf.layers", lambda: dict.fromkeys(__all__))

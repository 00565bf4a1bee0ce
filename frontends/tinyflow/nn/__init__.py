"""``tf.nn``: activations, convolutions, losses, embeddings and recurrent networks."""

from passkit.frontends.tinyflow import elementwise
from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.nn import rnn_cell
from passkit.frontends.tinyflow.nn.convolutions import (
    avg_pool,
    bias_add,
    conv1d,
    conv2d,
    conv2d_transpose,
    depthwise_conv2d,
    local_response_normalization,
    max_pool,
    xw_plus_b,
)
from passkit.frontends.tinyflow.nn.losses import (
    batch_normalization,
    in_top_k,
    l2_loss,
    l2_normalize,
    leaky_relu,
    log_softmax,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
    top_k,
)
from passkit.frontends.tinyflow.nn.recurrent import (
    bidirectional_dynamic_rnn,
    dynamic_rnn,
    static_bidirectional_rnn,
    static_rnn,
)
from passkit.frontends.tinyflow.nn.sampling import (
    dropout,
    embedding_lookup,
    log_uniform_candidate_sampler,
    nce_loss,
)
from passkit.frontends.tinyflow.nn.tinyflow_layers import (
    convolution_layer,
    flatten_layer,
    linear,
    mean_sparse_softmax_cross_entropy_with_logits,
)
from passkit.frontends.tinyflow.reductions import moments

relu = elementwise.ACTIVATIONS["relu"]
relu6 = elementwise.ACTIVATIONS["relu6"]
elu = elementwise.ACTIVATIONS["elu"]
selu = elementwise.ACTIVATIONS["selu"]
softplus = elementwise.ACTIVATIONS["softplus"]
softsign = elementwise.ACTIVATIONS["softsign"]
sigmoid = elementwise.FUNCTIONS["sigmoid"]
tanh = elementwise.FUNCTIONS["tanh"]

__all__ = [
    "avg_pool",
    "batch_normalization",
    "bias_add",
    "bidirectional_dynamic_rnn",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "convolution_layer",
    "depthwise_conv2d",
    "dropout",
    "dynamic_rnn",
    "elu",
    "embedding_lookup",
    "flatten_layer",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "linear",
    "local_response_normalization",
    "log_softmax",
    "log_uniform_candidate_sampler",
    "max_pool",
    "mean_sparse_softmax_cross_entropy_with_logits",
    "moments",
    "nce_loss",
    "relu",
    "relu6",
    "rnn_cell",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "static_bidirectional_rnn",
    "static_rnn",
    "tanh",
    "top_k",
    "xw_plus_b",
]
__getattr__ = missing_name_handler("tf.nn", lambda: dict.fromkeys(__all__))

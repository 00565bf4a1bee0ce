"""Names of operators' results, for operators with more than one named result.

A function body refers to a result as ``node:result_name:index``, where the index counts within the
results of that name. Operators that are not listed have one named result or one list of results, so
the index alone identifies the result.
"""

from __future__ import annotations

_LSTM = ("i", "cs", "f", "o", "ci", "co", "h")
_NORM = ("y", "batch_mean", "batch_variance")
_NORM_GRAD = ("x_backprop", "scale_backprop", "offset_backprop")
_SPARE = ("reserve_space_1", "reserve_space_2")
_SPARE_GRAD = ("reserve_space_3", "reserve_space_4")

RESULTS: dict[str, tuple[str, ...]] = {
    "BlockLSTM": _LSTM,
    "BlockLSTMV2": _LSTM,
    "BroadcastGradientArgs": ("r0", "r1"),
    "CudnnRNN": ("output", "output_h", "output_c", "reserve_space"),
    "CudnnRNNV2": ("output", "output_h", "output_c", "reserve_space", "host_reserved"),
    "CudnnRNNV3": ("output", "output_h", "output_c", "reserve_space", "host_reserved"),
    "Eig": ("e", "v"),
    "FractionalAvgPool": ("output", "row_pooling_sequence", "col_pooling_sequence"),
    "FractionalMaxPool": ("output", "row_pooling_sequence", "col_pooling_sequence"),
    "FusedBatchNorm": (*_NORM, *_SPARE),
    "FusedBatchNormGrad": (*_NORM_GRAD, *_SPARE_GRAD),
    "FusedBatchNormGradV2": (*_NORM_GRAD, *_SPARE_GRAD),
    "FusedBatchNormGradV3": (*_NORM_GRAD, *_SPARE_GRAD),
    "FusedBatchNormV2": (*_NORM, *_SPARE),
    "FusedBatchNormV3": (*_NORM, *_SPARE, "reserve_space_3"),
    "GRUBlockCell": ("r", "u", "c", "h"),
    "ListDiff": ("out", "idx"),
    "LogMatrixDeterminant": ("sign", "log_abs_determinant"),
    "LSTMBlockCell": _LSTM,
    "LSTMBlockCellGrad": ("cs_prev_grad", "dicfo", "wci_grad", "wcf_grad", "wco_grad"),
    "Lu": ("lu", "p"),
    "MaxPoolWithArgmax": ("output", "argmax"),
    "Merge": ("output", "value_index"),
    "NonMaxSuppressionV4": ("selected_indices", "valid_outputs"),
    "NonMaxSuppressionV5": ("selected_indices", "selected_scores", "valid_outputs"),
    "Qr": ("q", "r"),
    "SelfAdjointEigV2": ("e", "v"),
    "SoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "SparseSoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "Svd": ("s", "u", "v"),
    "Switch": ("output_false", "output_true"),
    "TensorArrayConcatV3": ("value", "lengths"),
    "TensorArrayV3": ("handle", "flow"),
    "TensorListConcat": ("tensor", "lengths"),
    "TensorListConcatV2": ("tensor", "lengths"),
    "TensorListPopBack": ("output_handle", "tensor"),
    "TopK": ("values", "indices"),
    "TopKV2": ("values", "indices"),
    "Unique": ("y", "idx"),
    "UniqueV2": ("y", "idx"),
    "UniqueWithCounts": ("y", "idx", "count"),
    "UniqueWithCountsV2": ("y", "idx", "count"),
}
"""For each operator with several named results, their names in order; each names one tensor."""

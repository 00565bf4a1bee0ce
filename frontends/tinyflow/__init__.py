"""tinyflow: the API of TensorFlow 1 that scripts use, and TinyFlow's additions, on passkit.

A program builds a graph of tensors and variables, and a `Session` compiles and runs it. The
pipeline of a run: `fetches` and `feeds` flatten the arguments, `resolution` makes the calls that
waited for shapes, `functionalize` turns reads and writes of variables into values, and
`pk.compile` compiles the pure graph.

>>> from passkit.frontends import tinyflow as tf
>>> x = tf.placeholder(tf.float32, [None, 2], name="x")
>>> with tf.Session(target="interpret") as session:
...     session.run(tf.reduce_sum(x * 2), {x: [[1, 2], [3, 4]]})
np.float32(20.0)
"""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from passkit.frontends.tinyflow import (
    arrays,
    clipping,
    contrib,
    control_flow,
    creation,
    dtypes,
    elementwise,
    image,
    initializers,
    layers,
    linear_algebra,
    losses,
    metrics,
    nn,
    reductions,
    summary,
    train,
)
from passkit.frontends.tinyflow.differentiation import gradients
from passkit.frontends.tinyflow.graphs import (
    Graph,
    GraphKeys,
    add_to_collection,
    get_collection,
    get_default_graph,
    reset_default_graph,
    set_random_seed,
)
from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.nn.tinyflow_layers import infer_variable_shapes, normal
from passkit.frontends.tinyflow.numerics import NumericsError
from passkit.frontends.tinyflow.random_ops import (
    random_normal,
    random_shuffle,
    random_uniform,
    truncated_normal,
)
from passkit.frontends.tinyflow.scopes import (
    AUTO_REUSE,
    VariableScope,
    control_dependencies,
    device,
    get_variable,
    get_variable_scope,
    group,
    name_scope,
    no_op,
    tuple_,
    variable_scope,
)
from passkit.frontends.tinyflow.session import (
    InteractiveSession,
    Session,
    get_default_session,
)
from passkit.frontends.tinyflow.session_config import ConfigProto
from passkit.frontends.tinyflow.shapes import Dimension, TensorShape
from passkit.frontends.tinyflow.tensors import Operation, Tensor, convert_to_tensor
from passkit.frontends.tinyflow.variables import (
    Variable,
    assign,
    assign_add,
    assign_sub,
    global_variables,
    global_variables_initializer,
    initialize_all_variables,
    initialize_local_variables,
    local_variables,
    local_variables_initializer,
    trainable_variables,
    variables_initializer,
)

_FUNCTIONS = (
    elementwise.truediv,
    elementwise.divide,
    elementwise.div,
    elementwise.cast,
    elementwise.to_float,
    elementwise.to_int32,
    elementwise.identity,
    elementwise.add_n,
    elementwise.where,
    elementwise.check_numerics,
    elementwise.stop_gradient,
    reductions.cumsum,
    reductions.cumprod,
    reductions.arg_max,
    reductions.arg_min,
    creation.placeholder,
    creation.placeholder_with_default,
    creation.constant,
    creation.zeros,
    creation.ones,
    creation.fill,
    creation.zeros_like,
    creation.ones_like,
    creation.linspace,
    creation.eye,
    creation.shape,
    creation.size,
    creation.rank,
    arrays.reshape,
    arrays.transpose,
    arrays.concat,
    arrays.stack,
    arrays.unstack,
    arrays.split,
    arrays.gather,
    arrays.expand_dims,
    arrays.squeeze,
    arrays.one_hot,
    arrays.pad,
    arrays.tile,
    arrays.reverse,
    arrays.sequence_mask,
    linear_algebra.matmul,
    linear_algebra.tensordot,
    linear_algebra.einsum,
    clipping.clip_by_value,
    clipping.clip_by_norm,
    clipping.global_norm,
    clipping.clip_by_global_norm,
    reductions.norm,
    control_flow.cond,
    control_flow.case,
    control_flow.while_loop,
    control_flow.scan,
    control_flow.map_fn,
    control_flow.foldl,
    initializers.zeros_initializer,
    initializers.ones_initializer,
    initializers.constant_initializer,
    initializers.random_normal_initializer,
    initializers.truncated_normal_initializer,
    initializers.random_uniform_initializer,
    initializers.variance_scaling_initializer,
    initializers.glorot_uniform_initializer,
    initializers.glorot_normal_initializer,
)

NAMES: dict[str, Any] = {
    **dtypes.exported(),
    **elementwise.FUNCTIONS,
    **reductions.FUNCTIONS,
    **{f.__name__: f for f in _FUNCTIONS},
    "range": creation.range_,
    "slice": arrays.slice_,
    "tuple": tuple_,
}
"""Names that come from tables, that are numerous, or that shadow builtins of Python."""

math = SimpleNamespace(**elementwise.FUNCTIONS, **reductions.FUNCTIONS)
"""``tf.math``: elementwise functions and reductions."""

__all__ = [  # noqa: PLE0604, RUF100
    "AUTO_REUSE",
    "ConfigProto",
    "Dimension",
    "Graph",
    "GraphKeys",
    "InteractiveSession",
    "NumericsError",
    "Operation",
    "Session",
    "Tensor",
    "TensorShape",
    "Variable",
    "VariableScope",
    "add_to_collection",
    "assign",
    "assign_add",
    "assign_sub",
    "contrib",
    "control_dependencies",
    "convert_to_tensor",
    "device",
    "get_collection",
    "get_default_graph",
    "get_default_session",
    "get_variable",
    "get_variable_scope",
    "global_variables",
    "global_variables_initializer",
    "gradients",
    "group",
    "image",
    "infer_variable_shapes",
    "initialize_all_variables",
    "initialize_local_variables",
    "layers",
    "local_variables",
    "local_variables_initializer",
    "losses",
    "math",
    "metrics",
    "name_scope",
    "nn",
    "no_op",
    "normal",
    "random_normal",
    "random_shuffle",
    "random_uniform",
    "reset_default_graph",
    "set_random_seed",
    "summary",
    "train",
    "trainable_variables",
    "truncated_normal",
    "variable_scope",
    "variables_initializer",
    *NAMES,
]

_missing = missing_name_handler("tf", lambda: dict.fromkeys(__all__))
if not TYPE_CHECKING:
    globals().update(NAMES)


def __getattr__(name: str) -> Any:
    return _missing(name)

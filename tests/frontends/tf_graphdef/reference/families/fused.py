"""Cases of the operators that grappler fuses in frozen models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.families.convolutions import draw


def norm(n: int) -> list[Any]:
    """Return scale, offset, mean and variance of ``count`` channels."""
    return [draw(n, seed=k) for k in (1, 2, 3)] + [np.abs(draw(n, seed=4)) + np.float32(0.5)]


NORM, WIDE = norm(6), norm(8)


def made(tf: Any, op: str, inputs: list[Any], **attrs: Any) -> Any:
    """Return the result of an operator that is not in TensorFlow's public interface."""
    from tensorflow.core.framework.attr_value_pb2 import AttrValue

    def value(arguments: Any) -> Any:
        if isinstance(arguments, bool):
            return AttrValue(b=arguments)
        if isinstance(arguments, int):
            return AttrValue(i=arguments)
        if isinstance(arguments, float):
            return AttrValue(f=arguments)
        if isinstance(arguments, str):
            return AttrValue(s=arguments.encode())
        if arguments and isinstance(arguments[0], str):
            return AttrValue(list={"s": [g.encode() for g in arguments]})
        return AttrValue(list={"i": arguments})

    tensors = {f"input{k}": tf.convert_to_tensor(t) for k, t in enumerate(inputs)}
    dtype = tensors["input0"].dtype.as_datatype_enum
    graph = tf.compat.v1.GraphDef()
    for name in tensors:
        graph.node.add(name=name, op="Placeholder").attr["dtype"].type = dtype
    node = graph.node.add(name="fused", op=op, input=tensors)
    for key, arguments in attrs.items():
        node.attr[key].CopyFrom(value(arguments))
    node.attr["T"].type = dtype
    if op == "_FusedBatchNormEx":
        node.attr["U"].type = dtype
    if op == "_FusedConv2D":
        node.attr["TArgs"].list.type.extend([dtype] * (len(tensors) - 2))
    return tf.import_graph_def(graph, input_map=tensors, return_elements=["fused:0"])[0]


def cases(tf: Any) -> Iterator[Case]:
    """Yield all cases."""
    bias = draw(6, seed=9)
    for activation in ("", "Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"):
        after = [activation] * bool(activation)
        for first, args in (("BiasAdd", [bias]), ("FusedBatchNorm", NORM)):
            if activation in ("Tanh", "Sigmoid"):
                continue
            yield Case(
                "_FusedConv2D",
                ",".join([first, *after]),
                lambda x, names=(first, *after), args=args: made(
                    tf,
                    "_FusedConv2D",
                    [x, draw(3, 3, 4, 6), *args],
                    num_args=len(args),
                    fused_ops=list(names),
                    strides=[1, 2, 2, 1],
                    padding="SAME",
                    epsilon=1e-2,
                    leakyrelu_alpha=0.3,
                    dilations=[1, 1, 1, 1],
                ),
                {"x": draw(2, 6, 5, 4)},
            )
        if activation != "Sigmoid":
            yield Case(
                "_FusedMatMul",
                ",".join(["BiasAdd", *after]),
                lambda x, names=("BiasAdd", *after): made(
                    tf,
                    "_FusedMatMul",
                    [x, draw(4, 6), bias],
                    num_args=1,
                    fused_ops=list(names),
                    leakyrelu_alpha=0.3,
                ),
                {"x": draw(3, 4)},
            )
    for name in ("GeluApproximate", "GeluExact"):
        yield Case(
            "_FusedMatMul",
            f"BiasAdd,{name}",
            lambda x, n=name: made(
                tf, "_FusedMatMul", [x, draw(4, 6), bias], num_args=1, fused_ops=["BiasAdd", n]
            ),
            {"x": draw(3, 4)},
        )
    yield Case(
        "_FusedMatMul",
        "BiasAdd transpose_b=True",
        lambda x: made(
            tf,
            "_FusedMatMul",
            [x, draw(6, 4), bias],
            num_args=1,
            fused_ops=["BiasAdd"],
            transpose_b=True,
        ),
        {"x": draw(3, 4)},
    )
    yield Case(
        "_FusedDepthwiseConv2dNative",
        "BiasAdd,Relu6",
        lambda x: made(
            tf,
            "_FusedDepthwiseConv2dNative",
            [x, draw(3, 3, 3, 2), bias],
            num_args=1,
            fused_ops=["BiasAdd", "Relu6"],
            strides=[1, 2, 2, 1],
            padding="SAME",
        ),
        {"x": draw(2, 6, 5, 3)},
    )
    for training in (False, True):
        yield Case(
            "_FusedBatchNormEx",
            f"activation_mode=Relu is_training={training}",
            lambda x, t=training: made(
                tf,
                "_FusedBatchNormEx",
                [x, *WIDE[:2], *(WIDE[2:] if not t else [WIDE[0][:0]] * 2)],
                num_side_inputs=0,
                activation_mode="Relu",
                is_training=t,
                epsilon=1e-2,
            ),
            {"x": draw(2, 3, 2, 8)},
        )

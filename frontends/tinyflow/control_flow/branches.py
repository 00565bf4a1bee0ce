"""Branches: ``tf.cond`` and ``tf.case``.

If only a run can choose a branch, both are computed and ``where`` selects the results. A branch
writes variables only in runs that choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from passkit.errors import GraphError, SettingError
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    renamed_argument,
    require_list,
    require_truth,
)
from passkit.frontends.tinyflow.control_flow.static_values import static_scalar
from passkit.frontends.tinyflow.deferred_calls import is_unranked
from passkit.frontends.tinyflow.graphs import VariableWrite, get_default_graph
from passkit.frontends.tinyflow.nest import flatten_nest, pack_like
from passkit.frontends.tinyflow.scopes import name_scope
from passkit.frontends.tinyflow.tensors import (
    Operation,
    Tensor,
    as_tensor,
    convert_to_tensor,
    scalar_entry,
    unique_name,
)
from passkit.graph.node import Entry, Node
from passkit.ops.helpers import make


@reject_arguments("a branch gives what its function returns", "strict")
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Return the result of ``true_fn`` where ``pred`` holds, else that of ``false_fn``.

    Both branches are computed unless ``pred`` is known while the graph is built. A NaN in the
    gradient of the branch not chosen spreads: guard a division by `tf.where`.

    Args:
        pred: A scalar tensor of bools; one that is known while the graph is built chooses its
            branch at once, as any other value does by its truth value.
        true_fn: Takes no arguments and returns tensors in a nested structure; required.
        false_fn: Returns tensors of the same structure, dtypes and ranks; required.
        strict: Unsupported; only the default is accepted.
        name: The name scope of the results; "cond" by default.
        fn1: The older name of ``true_fn``.
        fn2: The older name of ``false_fn``.

    Returns:
        The structure that ``true_fn`` returns, of selected tensors; an operation that runs both
        where one of them returns an operation; None where both return None. If ``pred`` is known,
        the result of the chosen function itself; the other one is not called.

    Raises:
        GraphError: If the branches return different numbers of tensors, dtypes or ranks, or
            ``pred`` is a tensor of another dtype or known to be no scalar.
        SettingError: If a branch is no function, ``pred`` an array of another number of elements
            than 1, an argument passed under both of its names, or an unsupported argument set.
        ShapeError: If the shapes of two results of one rank do not broadcast.
        ArgumentError: If a branch returns something else than tensors, numbers, operations and
            None, such as text, or only one of the two returns None.
        DTypeError: If ``pred``, or the result of a branch, is a tensor of text.

    >>> from passkit.frontends import tinyflow as tf
    >>> x = tf.constant(3.0)
    >>> with tf.Session(target="interpret") as session:
    ...     session.run(tf.cond(x > 2.0, lambda: x * 2.0, lambda: -x))
    np.float32(6.0)
    """
    true_branch = renamed_argument("cond", "true_fn", true_fn, "fn1", fn1)
    false_branch = renamed_argument("cond", "false_fn", false_fn, "fn2", fn2)
    if not callable(true_branch) or not callable(false_branch):
        raise SettingError(
            f"cond needs functions as true_fn and false_fn, got {true_branch!r} and "
            f"{false_branch!r}"
        )
    with name_scope(name, "cond"):
        if not isinstance(pred, Tensor):
            return (true_branch if require_truth("cond", "pred", pred) else false_branch)()
        if pred.dtype.name != "bool" or not (is_unranked(pred) or pred.shape.ndims == 0):
            raise GraphError(
                f"cond needs a single bool as pred, got {pred!r}; tf.cast or tf.reduce_all "
                f"converts it"
            )
        static = static_scalar(pred)
        if static is not None:
            return (true_branch if static else false_branch)()
        condition = scalar_entry(pred)
        with writing_only_if(condition):
            if_true = true_branch()
        with writing_only_if(make("logical_not", condition)):
            if_false = false_branch()
        return _select_nest(condition, if_true, if_false)


@contextmanager
def writing_only_if(condition: Entry) -> Iterator[None]:
    """Make variable writes created inside the block happen only where ``condition`` holds.

    The writes of the default graph are changed in place when the block ends without an error;
    writes that are conditional already need both conditions.

    Args:
        condition: A scalar bool.
    """
    graph = get_default_graph()
    earlier = set(graph.writes)
    yield
    for node in set(graph.writes) - earlier:
        write: VariableWrite = graph.writes[node]
        when = condition if write.when is None else make("logical_and", condition, write.when)
        graph.writes[node] = evolve(write, when=when)


def _select_nest(condition: Entry, if_true: Any, if_false: Any) -> Any:
    """Select between two nested structures of equal numbers of tensors, one by one; see `select`.

    Args:
        condition: A scalar bool.
        if_true: The structure whose tensors are selected where it holds.
        if_false: The structure whose tensors are selected elsewhere.

    Returns:
        The structure of ``if_true``.

    Raises:
        GraphError: If they hold different numbers of tensors, or two tensors differ in dtype or
            rank.
        ShapeError: If the shapes of two tensors do not broadcast.
        ArgumentError: If a leaf is neither a tensor, numbers, an operation nor None, or only one of
            two is None.
        DTypeError: For a tensor of text.
    """
    true_leaves, false_leaves = flatten_nest(if_true), flatten_nest(if_false)
    if len(true_leaves) != len(false_leaves):
        raise GraphError(
            f"cond needs functions that return as many tensors, got {len(true_leaves)} and "
            f"{len(false_leaves)}"
        )
    pairs = zip(true_leaves, false_leaves, strict=True)
    return pack_like(if_true, iter([select(condition, *pair) for pair in pairs]))


def select(condition: Entry, if_true: Any, if_false: Any) -> Any:
    """Select one of two results of branches.

    Args:
        condition: A scalar bool.
        if_true: A tensor, an operation or None.
        if_false: The same kind of value.

    Returns:
        A new tensor; an operation that runs both, of which one may be None, if one of them is an
        operation; None if both are None.

    Raises:
        GraphError: If two tensors differ in dtype or rank.
        ShapeError: If the shapes of two tensors do not broadcast.
        ArgumentError: If only one of the two is None, or one is neither a tensor, numbers nor an
            operation.
        DTypeError: For a tensor of text.
    """
    if if_true is None and if_false is None:
        return None
    if isinstance(if_true, Operation) or isinstance(if_false, Operation):
        nodes = [n for s in (if_true, if_false) if s is not None for n in _effect_nodes(s)]
        return Operation(unique_name(None, "Merge"), nodes, get_default_graph())
    a, b = convert_to_tensor(if_true), convert_to_tensor(if_false)
    are_ranked = not (is_unranked(a) or is_unranked(b))
    if a.dtype is not b.dtype or (are_ranked and len(a.shape) != len(b.shape)):
        raise GraphError(
            f"cond needs functions that return tensors of one dtype and rank, got {a!r} and {b!r}"
        )
    return as_tensor(make("where", condition, a.entry, b.entry), unique_name(None, "Merge"))


def _effect_nodes(value: Any) -> Sequence[Node]:
    """Return the nodes to run for the effects of ``value``: an operation, a tensor, or numbers.

    Raises:
        ArgumentError: For any other value.
    """
    return value.nodes if isinstance(value, Operation) else [convert_to_tensor(value).entry.node]


@reject_arguments("a branch gives what its function returns", "strict")
@reject_arguments("the first that holds is taken", "exclusive")
def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Return the result of the first function whose condition holds, else that of ``default``.

    Args:
        pred_fn_pairs: A list of pairs (condition, function), or a dict of functions by condition.
            A condition is a scalar tensor of bools, or any other value for its truth value; a
            function takes no arguments and returns tensors in a nested structure.
        default: Called without arguments if no condition holds; without it, the last function is
            called then, and its condition is not read.
        exclusive: Unsupported; only the default is accepted.
        strict: Unsupported; only the default is accepted.
        name: The name scope of the results; "case" by default.

    Returns:
        The structure that the functions return, as in `cond`.

    Raises:
        SettingError: If there are no pairs, an element is no pair, a function or ``default`` is no
            function, or an unsupported argument is set.
        GraphError: If ``pred_fn_pairs`` is no list, the functions return different numbers of
            tensors, dtypes or ranks, or a condition is a tensor of another dtype than bool or known
            to be no scalar.
        ShapeError: If the shapes of two results of one rank do not broadcast.
        ArgumentError: If a function returns something else than tensors, numbers, operations and
            None.
        DTypeError: If a function returns a tensor of text.
    """
    listed = pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs
    pairs = require_list("case", "pred_fn_pairs", listed)
    if not pairs:
        raise SettingError("case needs pairs of a condition and a function, got none")
    for pair in pairs:
        is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
        if not is_pair or not callable(pair[1]):
            raise SettingError(f"case needs pairs of a condition and a function, got {pair!r}")
    if default is not None and not callable(default):
        raise SettingError(f"case needs a function as default, got {default!r}")
    otherwise = pairs.pop()[1] if default is None else default
    with name_scope(name, "case"):
        for condition, function in reversed(pairs):
            otherwise = _conditional(condition, function, otherwise)
        return otherwise()


def _conditional(
    condition: Any, function: Callable[[], Any], otherwise: Callable[[], Any]
) -> Callable[[], Any]:
    """Return a function without arguments that calls `cond`.

    Args:
        condition: The condition, as ``pred`` of `cond`.
        function: The branch where it holds.
        otherwise: The other branch.
    """
    return lambda: cond(condition, function, otherwise)

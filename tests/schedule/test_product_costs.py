"""The cost model of products in tiles: few rows are slow, transposed operands cost each tile."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.analysis.nests import contract_of
from passkit.analysis.tilemap import Split
from passkit.ast.folds import Contract
from passkit.planner.multi_nest import plan_multi_nest
from passkit.schedule.tile_costs import product_seconds
from passkit.target import cpu, target_of
from tests.analysis.test_common_tilings import group_of
from tests.planner.test_multi_nest import attention, figure1

o = pk.ops


def product(turned: bool = False) -> tuple[Contract, tuple[int, int]]:
    """Return a product of (512, 64) and (64, 48), ``turned`` with b transposed, and its shape."""
    w = pk.var("w", (48, 64) if turned else (64, 48))
    y = o.matmul(pk.var("x", (512, 64)), w, transpose_b=turned)
    contract = contract_of(y.node)
    assert contract is not None
    return contract, (512, 48)


def seconds(rows: int, turned: bool = False, target: str = "cpu") -> float:
    """Return the modelled seconds of the entire product in tiles of ``rows`` rows."""
    contract, shape = product(turned)
    tile_map = Split(len(shape) - 2, rows).tile_map(shape)
    return product_seconds(contract, tile_map, target_of(target))


def test_products_of_few_rows_take_longer_for_each() -> None:
    """On a CPU tiles of at least four rows take the least time; on a GPU rows do not matter."""
    assert seconds(1) > 1.3 * seconds(8) and seconds(2) == seconds(1)
    assert seconds(8) == pytest.approx(seconds(64)) == pytest.approx(seconds(4))
    assert (
        seconds(1, target="opencl")
        == seconds(64, target="opencl")
        == pytest.approx(512 * 64 * 48 / 6e10)
    )


def test_a_transposed_operand_costs_each_tile() -> None:
    """A transposed operand adds time for each tile."""
    more = [seconds(rows, turned=True) - seconds(rows) for rows in (8, 16, 64)]

    assert more[0] == pytest.approx(2 * more[1]) == pytest.approx(8 * more[2]) and more[2] > 0


@pytest.mark.parametrize("n", [128, 1000])
def test_tiles_have_rows_for_their_products(n: int) -> None:
    """Tiles of attention, and of the groups of figure 1, have at least eight rows."""
    for outputs in (attention(n), figure1(n)):
        plan = plan_multi_nest(group_of(outputs), cpu())
        assert plan.split.chunk >= 8  # type: ignore[union-attr]


def test_a_layer_norm_goes_into_a_product_by_rows() -> None:
    """Tiles of one row would take twice as long."""
    x = pk.var("x", (64, 128))
    d = x - o.reduce_mean(x, axis=-1, keepdims=True)
    y = d * o.rsqrt(o.reduce_mean(d * d, axis=-1, keepdims=True) + 1e-5)
    plan = plan_multi_nest(group_of([y @ pk.var("w", (128, 128))]), cpu())
    assert plan.split.chunk >= 4  # type: ignore[union-attr]

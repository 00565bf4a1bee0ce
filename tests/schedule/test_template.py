"""Templates: parsing, printing, and checks against the loops of a group."""

from __future__ import annotations

import random

import pytest
from attrs import evolve

from passkit.analysis.tilemap import SplitKind
from passkit.ast.stage import Level
from passkit.errors import ParseError, ScheduleError
from passkit.schedule.template import (
    LoopLevel,
    Template,
    ValueTemplate,
    check,
    parse_template,
    split_kind_of,
)
from passkit.schedule.template_loops import ValueLoops
from passkit.values.size import Size

n = Size.symbol("n")
SOFTMAX = (
    ValueLoops("reduce_max_1", (512, 2, 3, 64), (3,), shared=True),
    ValueLoops("exp_1", (512, 2, 3, 64), shared=True, is_output=True),
)


@pytest.mark.parametrize(
    "text",
    [
        "reduce_1[GRID_128-WARP_2,WARP,WARP,CTA]S;",
        "reduce_1[GRID,WARP,WARP,CTA]S; dot_1[GRID,CTA,CTA,THREAD];",
        "a[GRID_/64]; b[GRID_/100-CTA_7,GRID]S;",
        "a[GRID_~8192,CTA];",
        "a[THREAD]; b.c_2[CTA_256]S; S[GRID_999999999-WARP_1-CTA_32-THREAD_4];",
    ],
)
def test_texts_stay_as_they_are(text: str) -> None:
    """The text of a parsed template is the text that was parsed."""
    assert str(parse_template(text)) == text


def test_the_parts_of_a_template() -> None:
    """A template has names, levels with and without numbers, and its launch beside it."""
    template = parse_template(" sum_1 [ GRID_0128 -WARP_2,\n\tCTA]S;\nmul_1[CTA] ; ", 128, 512)

    assert template == Template(
        (
            ValueTemplate(
                "sum_1",
                ((LoopLevel(Level.GRID, 128), LoopLevel(Level.WARP, 2)), (LoopLevel(Level.CTA),)),
                shared=True,
            ),
            ValueTemplate("mul_1", ((LoopLevel(Level.CTA),),)),
        ),
        cta_num=128,
        cta_size=512,
    )
    assert str(template) == "sum_1[GRID_128-WARP_2,CTA]S; mul_1[CTA];"


def test_random_templates_round_trip() -> None:
    """Parsing the text of a random template returns it, with and without spaces between tokens."""
    rng = random.Random(0)
    for _ in range(300):
        stages = []
        for k in range(rng.randint(1, 4)):
            attrs = []
            for _ in range(rng.randint(1, 5)):
                parts = rng.randint(1, 3)
                number = parts > 1 or rng.random() < 0.5
                attrs.append(
                    tuple(
                        LoopLevel(rng.choice(list(Level)), rng.randint(1, 5000) if number else None)
                        for _ in range(parts)
                    )
                )
            stages.append(ValueTemplate(f"v_{k}", tuple(attrs), rng.random() < 0.5))
        template = Template(tuple(stages), rng.randint(1, 99), 32 * rng.randint(1, 32))
        text = str(template)
        spaced = "".join(c + rng.choice(["", " ", "\n"]) if c in "[],-;" else c for c in text)

        assert parse_template(text, template.cta_num, template.cta_size) == template
        assert parse_template(spaced, template.cta_num, template.cta_size) == template


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "column 1: expected the name of a value, such as reduce_sum_1, got the end"),
        ("3[CTA];", "column 1: expected the name of a value, such as reduce_sum_1, got '3'"),
        ("a(CTA);", r"column 2: expected '\[' after a, got '\('"),
        ("a[];", r"column 3: expected GRID, WARP, CTA or THREAD, got '\]'"),
        ("a[GRID,block];", "column 8: expected GRID, WARP, CTA or THREAD, got 'block'"),
        (
            "a[GRID_];",
            (
                "column 3: expected GRID, WARP, CTA or THREAD with a number of pieces after '_', "
                "got 'GRID_'"
            ),
        ),
        (
            "a[GRID_0];",
            "column 3: expected GRID, .* with a number of pieces after '_', got 'GRID_0'",
        ),
        (
            "a[GRID_1234567890];",
            "column 3: expected .* number of pieces after '_', got 'GRID_1234567",
        ),
        ("a[GRID_4-WARP];", "column 10: expected .* with a number of pieces after '_', got 'WARP'"),
        (
            "a[GRID-WARP_2];",
            r"column 7: expected ',' or '\]' after GRID, which has no number, got '-'",
        ),
        ("a[GRID WARP];", r"column 8: expected ',' or '\]' after an attribute, got 'WARP'"),
        (
            "a[GRID_/];",
            "column 3: expected GRID, .* with a number of pieces after '_', got 'GRID_/'",
        ),
        ("a[WARP_~4];", "column 3: expected GRID, .* after '_', got 'WARP_~4'"),
        (
            "a[CTA_/4];",
            "column 3: expected GRID, .* with a number of pieces after '_', got 'CTA_/4'",
        ),
        ("a/3[CTA];", "column 1: expected the name of a value, such as reduce_sum_1, got 'a/3'"),
        ("a[GRID]s;", r"column 8: expected 'S' or ';' after '\]', got 's'"),
        ("a[GRID]S", "column 9: expected ';', got the end"),
        ("a[GRID]; b[CTA]", r"column 16: expected 'S' or ';' after '\]', got the end"),
        (
            "a[GRID];\n  b[CTA,]S;",
            r"line 2, column 9: expected GRID, WARP, CTA or THREAD, got '\]'",
        ),
        ("a[GRID];;", "column 9: expected the name of a value, such as reduce_sum_1, got ';'"),
        ("é[CTA];", "column 1: expected the name of a value, such as reduce_sum_1, got 'é'"),
    ],
)
def test_parse_errors(text: str, message: str) -> None:
    """An error names the column, the expected token and the given one."""
    with pytest.raises(ParseError, match=f"^template, {message}"):
        parse_template(text)


@pytest.mark.parametrize(
    "text",
    [
        "reduce_max_1[GRID_128-WARP_2,WARP,WARP,CTA]S; exp_1[GRID_128,CTA,CTA,CTA]S;",
        "exp_1[GRID,GRID,CTA,CTA]S; reduce_max_1[GRID,GRID_2,CTA,THREAD]S;",
        "exp_1[GRID_512,GRID_2,GRID_3,CTA]; reduce_max_1[CTA,CTA,CTA,THREAD]S;",
        "reduce_max_1[THREAD,THREAD,THREAD,CTA]S; exp_1[WARP,CTA,GRID_2,GRID];",
        "reduce_max_1[GRID_7,CTA,CTA,THREAD]S; exp_1[GRID_7-CTA_5-THREAD_3,CTA,CTA,CTA]S;",
    ],
)
def test_legal_templates(text: str) -> None:
    """The first or the last loops are distributed over blocks; numbers need not divide extents."""
    check(parse_template(text), SOFTMAX)


MAX, EXP = "reduce_max_1[GRID,WARP,WARP,CTA]S;", "exp_1[GRID,CTA,CTA,CTA]S;"


@pytest.mark.parametrize(
    "text, message",
    [
        (f"{MAX}", "it lacks exp_1"),
        (f"{MAX} {EXP} {MAX}", "one schedule a value, got 2 of reduce_max_1"),
        (f"{MAX} {EXP} exp_2[CTA];", "no value 'exp_2' with loops; did you mean 'exp_1'"),
        (
            f"{MAX} {EXP} subtract_1[CTA];",
            (
                "subtract_1 is computed where it is read and has no loops; "
                "those with: reduce_max_1, exp_1"
            ),
        ),
        (
            f"{MAX} exp_1[GRID,CTA,CTA]S;",
            (
                r"exp_1 has 4 loops, \[512, 2, 3, 64\]; exp_1\[GRID,CTA,CTA\]S;"
                " has 3 attributes"
            ),
        ),
        (
            f"reduce_max_1[GRID,WARP,WARP,CTA]; {EXP}",
            (
                r"reduce_max_1 is no output in reduce_max_1\[.*CTA\];"
                "; mark it with S"
            ),
        ),
        (
            f"{MAX} exp_1[WARP_2-GRID_4,CTA,CTA,CTA]S;",
            ("exp_1: the levels of a loop go inward.*got WARP_2-GRID_4"),
        ),
        (f"{MAX} exp_1[GRID_2-GRID_4,CTA,CTA,CTA]S;", "each once; got GRID_2-GRID_4"),
        (
            "reduce_max_1[GRID,GRID,GRID,GRID_2]S; " + EXP,
            ("reduce_max_1: loop 3 is reduced and cannot be GRID_2; a block has all"),
        ),
        (
            f"{MAX} exp_1[GRID,CTA,GRID,CTA]S;",
            (
                r"exp_1: in exp_1\[GRID,CTA,GRID,CTA\]S; a GRID stands "
                "right of loop 1, which has none"
            ),
        ),
        (f"{MAX} exp_1[CTA,GRID,GRID,CTA]S;", "a GRID stands left of loop 3, which has none"),
        (
            f"{MAX} exp_1[GRID_256,GRID,CTA,CTA]S;",
            ("exp_1: loop 0 of 512 is GRID_256, and loop 1 is distributed, too; write GRID"),
        ),
        (
            f"{MAX} exp_1[CTA,CTA,GRID,GRID_32]S;",
            "exp_1: loop 3 of 64 is GRID_32, and loop 2 is distributed",
        ),
    ],
)
def test_illegal_templates(text: str, message: str) -> None:
    """An error names the value, the loop, the fault and the way out."""
    with pytest.raises(ScheduleError, match=message):
        check(parse_template(text), SOFTMAX, others=("subtract_1",))


def test_only_values_with_readers_are_marked() -> None:
    """S needs a reader; scanned loops cannot be distributed over blocks either."""
    alone = (evolve(SOFTMAX[1], shared=False),)
    with pytest.raises(
        ScheduleError, match=r"exp_1 is marked S in exp_1\[GRID,CTA,CTA,CTA\]S; though"
    ):
        check(parse_template(EXP), alone)
    running = (ValueLoops("cumsum_1", (8, 9), scanned=(1,), is_output=True),)
    check(parse_template("cumsum_1[GRID,CTA];"), running)
    with pytest.raises(ScheduleError, match="cumsum_1: loop 1 is scanned and cannot be GRID;"):
        check(parse_template("cumsum_1[GRID,GRID];"), running)


@pytest.mark.parametrize("size", [0, 48, 2048, -32])
def test_launches(size: int) -> None:
    """Blocks consist of whole warps, and there is at least one."""
    good = parse_template(f"{MAX} {EXP}")
    with pytest.raises(ScheduleError, match=f"got cta_size {size}"):
        check(evolve(good, cta_size=size), SOFTMAX)
    with pytest.raises(ScheduleError, match="at least one block, got cta_num 0"):
        check(evolve(good, cta_num=0), SOFTMAX)


def test_rows_and_columns() -> None:
    """Blocks have rows if the first loops are distributed or none, columns if the last ones are.

    Reduced loops and loops of one iteration do not count.
    """

    def kind(attrs: str, value: ValueLoops) -> SplitKind:
        (stage,) = parse_template(f"a[{attrs}];").values
        check(Template((stage,)), [value])
        return split_kind_of(stage, value)

    plane = ValueLoops("a", (8, 9), is_output=True)
    reduction = ValueLoops("a", (8, 7, 9), (1,), is_output=True)
    line = ValueLoops("a", (1, 8, 9), is_output=True)

    for attrs in ("GRID,CTA", "THREAD,CTA", "GRID,GRID_4", "GRID,GRID_/4"):
        assert kind(attrs, plane) is SplitKind.ROW
    for attrs in ("THREAD,GRID_4", "GRID_4,GRID", "GRID_/4,GRID"):
        assert kind(attrs, plane) is SplitKind.COLUMN
    assert kind("GRID,THREAD,GRID_2-CTA_5", reduction) is SplitKind.ROW
    assert kind("CTA,THREAD,GRID_2-CTA_5", reduction) is SplitKind.COLUMN
    assert kind("THREAD,GRID_2-WARP_4,CTA", line) is SplitKind.ROW


def test_blocks_of_two_loops() -> None:
    """Any loops of a value without readers can be distributed, as in transposes."""
    turned = ValueLoops("a", (64, 96), is_output=True)

    check(parse_template("a[GRID_4-THREAD_16,GRID_2-CTA_48];"), [turned])
    check(
        parse_template("a[GRID,THREAD,GRID_2-CTA_48];"),
        [ValueLoops("a", (8, 9, 96), is_output=True)],
    )
    with pytest.raises(ScheduleError, match="loop 0 of 64 is GRID_4, and loop 1 is distributed"):
        check(parse_template("a[GRID_4,GRID_2]S;"), [evolve(turned, shared=True)])


def test_rows_of_so_many_points() -> None:
    """GRID_~N gives a block as many rows of unknown length as have about N points."""
    part = parse_template("a[GRID_~8192,CTA];").values[0].attrs[0][0]

    assert part.steps(9999, 512) == 16 and part.steps(9999, 10**6) == 1
    assert part.steps(n, n) == 8192 // (n + 1) + 1

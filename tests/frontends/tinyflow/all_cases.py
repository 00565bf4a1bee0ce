"""All API cases by public name."""

from __future__ import annotations

from tests.frontends.tinyflow import (
    contrib_cases,
    control_flow_cases,
    image_cases,
    layer_cases,
    layer_object_cases,
    loss_cases,
    math_cases,
    nn_cases,
    program_cases,
)

CASES = {
    **math_cases.CASES,
    **nn_cases.CASES,
    **layer_cases.CASES,
    **layer_object_cases.CASES,
    **contrib_cases.CASES,
    **program_cases.CASES,
    **loss_cases.CASES,
    **image_cases.CASES,
    **control_flow_cases.CASES,
}

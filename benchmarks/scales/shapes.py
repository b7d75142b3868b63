"""A convolutional network whose widths must come out whole: products of helpers and parameters, layer after layer.

Notation
    w_0     width of the picture;   w_l     width behind layer l, an auxiliary integer
    k_l, s_l    kernel and stride of layer l;   p   padding, the same everywhere

    w_l s_l == w_(l-1) + 2 p - k_l + s_l

Nothing but the solver tells which kernels and strides have whole widths: 2 parameters a layer, and two numbers for all.
"""

from __future__ import annotations

import mipcash as mc
from benchmarks.scales.row import Asks, Question, Row, Sized

KERNELS, STRIDES, PADS = (1, 2, 3, 4, 5, 7), (1, 2, 3), 3


def shape_space(layers: int = 10, width: int = 64) -> mc.Space:
    """Kernel and stride of every layer, a padding, a learning rate: ``2 layers + 2`` parameters."""
    space = mc.Space(f"shapes of {layers} layers")
    pad = space.integer("pad", 0, PADS)
    before: mc.modelling.parameters.NumericParameter | int = width
    for l in range(layers):
        kernel, stride = space.ordinal(f"kernel{l}", KERNELS), space.ordinal(f"stride{l}", STRIDES)
        after = space.auxiliary(f"width{l}", 1, width)
        space.rule(f"width of layer {l}", after * stride == before + 2 * pad - kernel + stride)
        before = after
    space.rule("something is left", before <= 8)
    space.real("rate", 1e-4, 1e-1, log=True)
    return space


def sized(size: str) -> mc.Space:
    """Ten layers; three for a smoke test."""
    return shape_space(3 if size == "smoke" else 10)


NONE: Sized = {"smoke": 0, "quick": 0, "full": 0}
EVALUATIONS: Sized = {"smoke": 8, "quick": 30, "full": 30}
LIMIT = 1.0
"""Seconds, where a limit is set."""
NAME = "shapes"
ROWS: tuple[Row, ...] = (
    Asks(NAME, sized, NONE, EVALUATIONS, wanted=1.0, worst=5.0, first=True),
    Asks(NAME, sized, NONE, EVALUATIONS, wanted=LIMIT, worst=1.2 * LIMIT, seconds=LIMIT, first=True),
    Question(NAME, sized, "sample(50)", lambda space: len(space.sample(50)), wanted=5.0),
    Question(
        NAME,
        sized,
        f"sample(50, time_limit={LIMIT:g})",
        lambda space: len(space.sample(50, time_limit=LIMIT)),
        wanted=1.2 * LIMIT,
        limit=LIMIT,
    ),
    Question(NAME, sized, "bounds()", lambda s: f"{sum(e.proven for e in s.bounds().values())} proven", wanted=20.0),
    Question(
        NAME,
        sized,
        f"bounds(time_limit={LIMIT:g})",
        lambda s: f"{sum(e.proven for e in s.bounds(time_limit=LIMIT).values())} proven",
        wanted=1.2 * LIMIT,
        limit=LIMIT,
    ),
    Question(
        NAME,
        sized,
        f"count(time_limit={LIMIT:g})",
        lambda space: space.count(time_limit=LIMIT),
        wanted=1.2 * LIMIT,
        limit=LIMIT,
    ),
)

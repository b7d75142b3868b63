"""A convolutional network whose widths must come out whole: products of helpers and parameters, layer after layer.

Notation
    w_0     width of the picture;   w_l     width behind layer l, an auxiliary integer
    k_l, s_l    kernel and stride of layer l;   p   padding, the same everywhere

    w_l s_l == w_(l-1) + 2 p - k_l + s_l

Nothing but the solver tells which kernels and strides have whole widths: 2 parameters a layer, and two numbers for all.
"""

from __future__ import annotations

import mipcash as mc

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

"""Small spaces that several tests share, each declared by a function, and designs over them."""

from __future__ import annotations

from typing import Any

import numpy as np

import mipcash as mc
from mipcash.space.domain import Domain


def designed(domain: Domain, n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the first n points of an initial design."""
    found: list[dict[str, Any]] = []
    for _ in range(n):
        found.append(dict(domain.design(rng, found)[0]))
    return found


def conv_net(small: bool = False) -> mc.Space:
    """Return the example of the documentation: a bilinear rule with an auxiliary variable, modules, an ordering, reals.

    Args:
        small: without modules, ordering and real, so that its points can be enumerated.
    """
    space = mc.Space("conv net")
    layers = space.integer("layers", 0, 2)
    stride = space.ordinal("stride", [1, 2])
    filt = space.ordinal("filter", [3, 5])
    pad = space.integer("padding", 0, 3)
    act = space.categorical("activation", ["relu", "tanh", "selu"])
    if not small:
        space.real("lr", 1e-4, 1e-2, log=True)
    width = space.auxiliary("width", 1, 28)
    space.rule("output size is integral", 28 - filt + pad == stride * (width - 1))
    space.rule("selu only when deep", act["selu"] <= layers / 2)
    if not small:
        scaler = space.module(
            "scaler", {"none": {}, "standard": {}, "quantile": {"n_quantiles": mc.Integer(10, 1000, log=True)}}
        )
        selector = space.module("selector", {"none": {}, "percentile": {"percentile": mc.Integer(1, 99)}})
        order = space.ordering("order", [scaler, selector])
        space.rule("scale before selecting", order.position(scaler) <= order.position(selector))
    space.integer("k", 1, 3 if small else 9, when=layers.is_(1, 2))
    return space


def discrete() -> mc.Space:
    """Return a purely discrete, enumerable space with a conditional parameter and a cardinality rule."""
    space = mc.Space("discrete")
    bits = [space.integer(f"b{i}", 0, 1) for i in range(4)]
    colour = space.categorical("colour", ["red", "green", "blue"])
    space.ordinal("depth", [1, 2, 4], when=colour["red"])
    space.rule("at most two", sum(bits) <= 2)
    return space


def bound_numbers() -> mc.Space:
    """Return a space with rules on numbers: a mixture, a conditional real, a wide integer in a rule with a choice."""
    space = mc.Space("bound numbers")
    a = space.real("a", 0.0, 1.0)
    b = space.real("b", 0.0, 1.0)
    kind = space.categorical("kind", ["plain", "deep"])
    size = space.integer("size", 1, 300)
    extra = space.real("extra", 1.0, 5.0, when=kind["deep"])
    level = space.integer("level", 0, 4)
    space.rule("mixture", a + b <= 1.0)
    space.rule("memory", size + 40 * level <= 250)
    space.rule("extra is paid for", extra <= 2 + level)
    space.rule("bilinear", a * level <= 2.0)
    return space


def continuous() -> mc.Space:
    """Return a space of reals under one equation."""
    space = mc.Space("continuous")
    x = [space.real(f"x{i}", 0.0, 1.0) for i in range(3)]
    space.rule("sums to one", sum(x) == 1)
    return space


ALL = {"conv_net": conv_net, "discrete": discrete, "bound_numbers": bound_numbers, "continuous": continuous}


def loss(config: dict[str, object]) -> float:
    """Return a smooth deterministic loss for any configuration."""
    total = 0.0
    for name, value in config.items():
        weight = (sum(map(ord, name)) % 7 - 3) / 3
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            total += weight * float(value) / (1 + abs(float(value))) + 0.3 * (float(value) % 1.0 - 0.4) ** 2
        else:
            total += weight * (sum(map(ord, str(value))) % 5) / 5
    return total


def alternatives() -> mc.Space:
    """Return a space whose parameters are active under disjunctions, conjunctions of disjunctions, and negations."""
    space = mc.Space("alternatives")
    kind = space.categorical("kind", ["x", "y", "z"])
    depth = space.integer("depth", 0, 2)
    norm = space.categorical("norm", ["l1", "l2"], when=kind["x"] | depth.is_(2))
    space.real("rate", 0.1, 1.0, when=(kind["x"] | depth.is_(2)) & (kind["y"] | norm["l1"] | depth.is_(0)))
    space.integer("size", 1, 201, when=~(kind["x"] & depth.is_(2)))
    space.real("free", 0.0, 1.0)
    space.rule("size", space["size"] + 40 * depth <= 220)
    space.rule("rate", space["rate"] + depth / 4 <= 1.3)
    return space


def shape_space(layers: int = 10, width: int = 64) -> mc.Space:
    """Return the space of a convolutional network with integral widths, linked by auxiliary variables.

    The ``2 layers + 2`` parameters are the kernel and stride of every layer, a padding and a learning rate. The width
    behind layer l is w_l with w_l s_l == w_(l-1) + 2 p - k_l + s_l. Only a solver finds kernels and strides with
    integral widths.
    """
    space = mc.Space(f"shapes of {layers} layers")
    pad = space.integer("pad", 0, 3)
    before: mc.modelling.parameters.NumericParameter | int = width
    for l in range(layers):
        kernel, stride = space.ordinal(f"kernel{l}", (1, 2, 3, 4, 5, 7)), space.ordinal(f"stride{l}", (1, 2, 3))
        after = space.auxiliary(f"width{l}", 1, width)
        space.rule(f"width of layer {l}", after * stride == before + 2 * pad - kernel + stride)
        before = after
    space.rule("something is left", before <= 8)
    space.real("rate", 1e-4, 1e-1, log=True)
    return space

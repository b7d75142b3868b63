"""A small convolutional classifier of images, with its prediction time and size as outputs for outcome constraints.

    image 28 x 28 - [C1 - [C2]] - [F1 - [F2]] - 10 classes

Convolutions have no padding; pixels that a stride leaves over at the border are not looked at, as torch does. A parameter
exists only where its layer does; the learning rate and the momentum are those of the optimizer that is chosen.

Known rules: what leaves a convolution has at least one pixel, kernels do not grow, channels do not shrink, fully connected
layers do not widen. Outputs of an evaluation: the validation error (the loss), ``latency_ms``, and ``parameters``.

    mipcash run network --limit latency_ms=0.2

``latency_ms`` is the time of one prediction of a batch (64 images unless ``predict`` says otherwise) on one thread of a CPU:
the median of 25 after 5 that do not count. If a core is shared with other work, medians of one network differ by up to a factor of
two, and seconds of the thread alone (``clock=cpu``) by no less. The minimum of the 25, ``latency_least_ms``, is more stable and may
be constrained instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import mipcash as mc
from mipcash.errors import ModelError
from mipcash.models._network_training import CLOCKS, IMAGE, Training, cost, evaluate, latency, shapes, train
from mipcash.models._options import choice, whole

__all__ = [
    "IMAGE",
    "Training",
    "build",
    "cost",
    "evaluate",
    "latency",
    "objective",
    "report",
    "settings",
    "shapes",
    "space",
    "train",
]

DEFAULTS = {"budget": 40}

Objective = Callable[[Mapping[str, Any]], dict[str, float]]


def build(
    *,
    data: str | None = None,
    train_size: int | str | None = None,
    test_size: int | str | None = None,
    epochs: int | str | None = None,
    batch: int | str | None = None,
    predict: int | str | None = None,
    repeats: int | str | None = None,
    clock: str | None = None,
    seed: int | str | None = None,
) -> tuple[mc.Space, Objective]:
    """The space and the training.

    Args:
        data, ...: options of :func:`settings`.

    Raises:
        ModelError: an option that makes no sense.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    return _space(), partial(evaluate, settings=settings(**given))


def settings(**changes: Any) -> Training:
    """Return the settings of training and timing.

    Args:
        changes: fields of :class:`Training` by name, as values or as text. Defaults: 2,000 images of ``mnist_5k`` for 3 epochs in
            batches of 32, 1,000 test images, and 25 timed predictions of 64 images.

    Raises:
        ModelError: an option is unknown or has an invalid value.
    """
    given: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in Training.__dataclass_fields__:
            raise ModelError(f"there is no option {name}; there are {', '.join(Training.__dataclass_fields__)}")
        given[name] = value if name in ("data", "clock") else whole(name, value, low=int(name != "seed"))
    choice("clock", given.get("clock", "wall"), CLOCKS)
    return Training(**given)


def report(result: Any, **options: Any) -> str:
    """The best network layer by layer, and how to train and time it again."""
    if result.config is None:
        return ""
    chain = " - ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in shapes(result.config))
    return "\n".join(
        [
            chain,
            "",
            "To train it again on more images and time it again:",
            "",
            "from mipcash.models import network",
            "",
            f"config = {result.config!r}",
            f"settings = network.settings({', '.join(f'{k}={v!r}' for k, v in options.items())})",
            "print(network.evaluate(config, settings))",
        ]
    )


def _space() -> mc.Space:
    space = mc.Space("small network")
    conv = space.integer("conv_layers", 0, 2)
    one, two = conv.is_(1, 2), conv.is_(2)
    c1_channels = space.integer("c1_channels", 2, 16, log=True, when=one)
    c1_kernel = space.ordinal("c1_kernel", [3, 5, 7], when=one)
    c1_stride = space.integer("c1_stride", 1, 3, when=one)
    c2_channels = space.integer("c2_channels", 2, 32, log=True, when=two)
    c2_kernel = space.ordinal("c2_kernel", [3, 5], when=two)
    c2_stride = space.integer("c2_stride", 1, 2, when=two)
    dense = space.integer("dense_layers", 0, 2)
    f1_units = space.integer("f1_units", 8, 256, step=8, log=True, when=dense.is_(1, 2))
    f2_units = space.integer("f2_units", 8, 256, step=8, log=True, when=dense.is_(2))
    space.categorical("activation", ["relu", "tanh", "gelu", "silu"])
    adam = {"learning_rate": mc.Real(1e-4, 3e-2, log=True)}
    sgd = {"learning_rate": mc.Real(1e-3, 0.3, log=True), "momentum": mc.Real(0.0, 0.95)}
    space.module("optimizer", {"adam": adam, "sgd": sgd})
    space.real("weight_decay", 1e-6, 1e-2, log=True)

    # A width is floor((width before - kernel) / stride) + 1, an auxiliary integer between two products.
    w1, w2 = space.auxiliary("w1", 1, IMAGE), space.auxiliary("w2", 1, IMAGE)
    space.rule("c1 fits", (w1 - 1) * c1_stride <= IMAGE - c1_kernel, when=one)
    space.rule("c1 leaves less than a stride over", w1 * c1_stride >= IMAGE - c1_kernel + 1, when=one)
    space.rule("without c1 the width stays", w1 == IMAGE, when=conv.is_(0))
    space.rule("c2 fits", (w2 - 1) * c2_stride <= w1 - c2_kernel, when=two)
    space.rule("c2 leaves less than a stride over", w2 * c2_stride >= w1 - c2_kernel + 1, when=two)
    space.rule("without c2 the width stays", w2 == w1, when=conv.is_(0, 1))
    space.rule("kernels do not grow", c2_kernel <= c1_kernel, when=two)
    space.rule("channels do not shrink", c2_channels >= c1_channels, when=two)
    space.rule("fully connected layers do not widen", f2_units <= f1_units, when=dense.is_(2))
    return space


space, objective = build()

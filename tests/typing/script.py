"""User script for ``mypy --strict``. Exactly the lines ending in ``# wrong: TEXT`` are reported, with that text.

The test :mod:`tests.typing.test_user_script` checks this file and never runs it.
"""

from __future__ import annotations

from typing import Any, reveal_type

import numpy as np

import mipcash as mc

space = mc.Space("network")
layers = space.integer("layers", 1, 3)
width = space.ordinal("width", [16, 32])
act = space.categorical("act", ["relu", "tanh"])
lr = space.real("lr", 1e-4, 1e-1, log=True)
drop = space.real("dropout", 0.0, 0.5, when=layers.is_(2, 3))
both = space.real("both", 0.0, 0.5, when=[layers.is_(2, 3), act["relu"]])
model = space.module("model", {"forest": {"n": mc.Integer(1, 9)}, "line": {}})
other = space.module("other", {"pca": {}, "none": {}}, when=act["relu"])
order = space.ordering("order", [model, other])
auxiliary = space.auxiliary("helper", 0, 9)

space.rule("memory", layers * width <= 200)
space.rule("plain", layers <= 3)
space.rule("turned", layers <= 3)
space.rule("equal", auxiliary == layers + 1)
space.rule("sums", 2 * layers - lr / 3 + act["relu"] + np.float64(2.0) >= -layers + 1)
space.rule("square", layers**2 <= 9)
space.rule("when", drop >= 0.2, when=drop.is_active())
space.rule("when all", drop >= 0.2, when=[drop.is_active(), layers[2]])
space.rule("selu", act["relu"] + act.is_("tanh") <= layers / 3)
space.rule("hyper", model["forest"]["n"] <= 3)
space.rule("order", order.position(model) <= order.position("other"))
space.rule("at", order.at(model, 1) == 1)
space.rule("both sides", (layers <= 3) & ~act["relu"] | (lr <= 0.1))
space.rule("functions", abs(layers - 2) + mc.maximum(lr, drop, 0.1) <= mc.minimum(layers, 3))
space.rule("implied", mc.implies(act["relu"], mc.any_of(layers <= 2, mc.all_of(lr <= 0.1, act["relu"]))))
space.rule("mapped", layers.map(lambda v: v % 2) + act.map({"relu": 1.0, "tanh": 2.0}) <= 3)
space.rule("unequal", layers != 2, when=act["relu"] | (layers <= 2))
relation = layers + 1 <= 3
reveal_type(relation)  # wrong: Revealed type is "mipcash.modelling.handles.Relation"
reveal_type(layers + lr)  # wrong: Revealed type is "mipcash.modelling.handles.Expression"
reveal_type(act["relu"])  # wrong: Revealed type is "mipcash.modelling.handles.Indicator"
reveal_type(layers.is_(1, 2))  # wrong: Revealed type is "mipcash.modelling.handles.Indicator"


def train(config: dict[str, Any]) -> float:
    return float(config["lr"])


def train_more(config: dict[str, Any]) -> dict[str, float] | mc.Failed:
    return {"loss": 1.0, "size": 3.0} if config else mc.Failed("nothing")


def train_on(config: dict[str, Any], trial: mc.Trial) -> float:
    trial.report(0, {"loss": 0.5})
    return 0.5 if trial.should_stop() else 0.25


def note(study: mc.Study, trial: mc.Trial) -> bool:
    return trial.loss is not None and trial.loss < 0.1 and bool(study.trials)


result = mc.minimize(train_on, space, 20, pruning="halving")
result = mc.minimize(train, space, budget=20, seed=1, direction="maximize", callbacks=note)
result = mc.minimize(
    train_more, space, 20, callbacks=[note], optimizer=mc.Method(settings=mc.settings.HybridSettings(n_initial=8))
)
best: float = result.value
config: dict[str, Any] | None = result.config
solution: mc.Solution = space.optimum(layers * lr, "max")
bound: float = solution.bound
samples: list[dict[str, Any]] = space.sample(10, seed=1)

study = mc.Study(space, optimizer="hybrid", seed=0)
trial: mc.Trial = study.ask()
trial.report(0, 0.5)
stop: bool = trial.should_stop()
told: mc.Trial = study.tell(trial, 0.3)

mc.maximise(train, space, 20)  # wrong: Module has no attribute "maximise"
mc.minimize(train, space, n_trials=20)  # wrong: Unexpected keyword argument "n_trials" for "minimize"
mc.minimize(train, space, budget="20")  # wrong: incompatible type "str"; expected "int | Cost | Steps | Budget"
mc.minimize(space, train, 20)  # wrong: Argument 1 to "minimize" has incompatible type "Space"
mc.minimize(train, space, 20, callbacks=train)  # wrong: Argument "callbacks" to "minimize"
mc.Study(space, random_state=1)  # wrong: Unexpected keyword argument "random_state" for "Study"
space.rule("number", layers + 1)  # wrong: Argument 2 to "rule" of "Space" has incompatible type "Expression"
space.rule("text", layers <= "3")  # wrong: Unsupported operand types for <=
space.rule("category", act <= 3)  # wrong: Unsupported operand types for >= ("int" and "Choice")
space.rule("bool", act == "relu")  # wrong: incompatible type "bool"; expected "Relation"
space.rule("condition", layers <= 3, when="relu")  # wrong: Argument "when" to "rule" of "Space"
space.real("r", 0.0, "1")  # wrong: Argument 3 to "real" of "Space" has incompatible type "str"; expected "float"
layers.is_activ()  # wrong: "Numeric" has no attribute "is_activ"
print(result.configs)  # wrong: "Result" has no attribute "configs"
loss: str = result.value  # wrong: Incompatible types in assignment

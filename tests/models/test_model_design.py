"""Model ``design``: rules, physics and failures of the cantilever."""

from __future__ import annotations

import pytest

import mipcash as mc
from mipcash.models import design as model


def test_the_design_by_rule_of_thumb_satisfies_everything_and_a_search_beats_it() -> None:
    assert model.space.validate(model.HAND_MADE) == []
    by_hand = model.objective(model.HAND_MADE)
    assert all(by_hand[name] <= high for name, high in model.LIMITS.items())
    budget = model.DEFAULTS["budget"]
    result = mc.minimize(model.objective, model.space, budget, limits=model.LIMITS, seed=0, progress=False)
    assert all(model.space.is_legal(t.config) for t in result.history)
    assert result.value < 0.9 * by_hand["loss"]
    assert f"{result.value:.0f} euros" in model.report(result)


def test_the_deflection_follows_the_beam_formula() -> None:
    steel, tube = (
        model.MATERIALS["steel"],
        {"material": "steel", "section": "tube", "height": 140, "wall": 8, "taper": 1.0},
    )
    inertia = 3.141592653589793 / 64 * (0.14**4 - 0.124**4)
    told = model.objective(tube)
    exact = model.LOAD * model.LENGTH**3 / (3 * steel["modulus"] * inertia)
    assert told["deflection_mm"] == pytest.approx(1e3 * exact, rel=1e-3)
    stress = model.LOAD * model.LENGTH * 0.07 / inertia
    assert told["utilisation"] == pytest.approx(stress / steel["strength"], rel=1e-9)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"wall": 2}, "welded from 3 mm"),
        ({"material": "carbon", "wall": 6}, "laid up to 5 mm"),
        ({"height": 290, "width": 80}, "three widths"),
        ({"width": 40, "height": 120, "wall": 8}, "around its walls"),
        ({"height": 60, "taper": 0.5}, "takes the hook"),
    ],
)
def test_rules(changed: dict[str, object], rule: str) -> None:
    assert rule in "; ".join(map(str, model.space.validate({**model.HAND_MADE, **changed})))


def test_thin_plates_fail() -> None:
    with pytest.raises(mc.Failed, match="buckle"):
        model.objective({**model.HAND_MADE, "height": 300, "wall": 3, "ribs": 0})

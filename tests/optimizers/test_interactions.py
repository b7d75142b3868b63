"""Declared interactions: translation of parameter names to pairs of groups and numbers."""

from __future__ import annotations

from itertools import combinations

import pytest

from mipcash.errors import SpaceError
from mipcash.methods.mivabo.interactions import named, resolve
from mipcash.space.compiled import compiled
from mipcash.space.domain import Domain
from tests.spaces import ALL


def resolved(name, interactions):
    space = ALL[name]()
    scale, made = Domain.of(space).scale, compiled(space)
    return made.program, scale, resolve(made.declaration, made.program, scale, interactions)


def test_none_declares_all_pairs():
    program, scale, found = resolved("bound_numbers", None)
    assert found.groups == set(combinations(range(len(program.groups)), 2))
    assert found.numbers == set(combinations(range(len(scale)), 2))
    assert len(found.mixed) == len(program.groups) * len(scale)


def test_names_become_pairs_of_their_kind():
    program, scale, found = resolved("bound_numbers", [("level", "kind"), ("a", "kind"), ("size", "a")])
    group = {g.parameter: k for k, g in enumerate(program.groups)}
    number = {label: d for d, label in enumerate(scale.labels)}
    assert found.groups == {tuple(sorted((group["kind"], group["level"])))}
    assert found.mixed == {(group["kind"], number["a"])}
    assert found.numbers == {tuple(sorted((number["a"], number["size"])))}


def test_an_ordering_has_all_its_groups_and_they_always_interact():
    program, _, found = resolved("conv_net", [("order", "layers"), ("order", "lr")])
    members = [g for g, group in enumerate(program.groups) if group.parameter == "order"]
    layers = next(g for g, group in enumerate(program.groups) if group.parameter == "layers")
    assert len(members) == 2
    assert found.groups == {tuple(sorted((layers, m))) for m in members} | {tuple(members)}
    assert {g for g, _ in found.mixed} == set(members)


def test_an_unknown_name_is_refused_with_a_suggestion():
    with pytest.raises(SpaceError, match="no parameter 'layer'; did you mean 'layers'"):
        resolved("conv_net", [("lr", "layer")])
    with pytest.raises(SpaceError, match="'width' is an auxiliary"):
        resolved("conv_net", [("lr", "width")])
    with pytest.raises(SpaceError, match="paired with itself"):
        resolved("conv_net", [("lr", "lr")])
    for wrong in (["lr"], [("lr", "layers", "k")], [("lr", 3)]):
        with pytest.raises(SpaceError, match="pair of parameter names"):
            named(wrong)

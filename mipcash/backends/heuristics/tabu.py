"""Tabu search over a pairwise network, many walkers at a time: good solutions in milliseconds, no proof.

Notation
    s (R, V)    states of R walkers;   q(s) = sum_i theta[s_i] + sum_{i < j} M[s_i, s_j],  M with a fine for each forbidden pair
    h (R, S)    theta + sum_j M[s_j]: moving variable i from state a to b changes q by h[b] - h[a], since M vanishes in i

Every walker takes its best move at every step, uphill where it must, and may not take back a state that it left a few
steps ago unless that makes the best it has seen. Walkers may pass through forbidden pairs for a fine; what they report
has none.
"""

from __future__ import annotations

import numpy as np

from mipcash.backends.enumeration.network import PairwiseNetwork
from mipcash.program.forms import Indices, Vector

REPORTED = 256
"""Solutions that a search returns at most."""
NEIGHBOURS = 64
"""Neighbours of the best solution among them."""


def tabu_search(
    network: PairwiseNetwork, theta: Vector, pairs: Vector, starts: Indices, steps: int, rng: np.random.Generator
) -> tuple[Indices, Vector]:
    """Walk from each start.

    Args:
        network: without linear rows, every variable with a state.
        theta, pairs: its costs, (S,) and (S, S).
        starts: shape (R, V); forbidden pairs are allowed.
        steps: of each walker.

    Returns:
        Distinct solutions without forbidden pairs, the best first: states (k, V) and their costs (k,); k may be 0.
    """
    fine = 2.0 * (float(np.ptp(theta)) + float(np.abs(pairs).max())) + 1e-9
    matrix = pairs + fine * network.forbidden
    of, (n_walkers, n_variables) = network.variable_of, starts.shape
    states, walkers = starts.copy(), np.arange(n_walkers)
    field = theta + matrix[states].sum(axis=1)
    value = (theta[states] + field[walkers[:, None], states]).sum(axis=1) / 2
    best = np.full(n_walkers, np.inf)
    until = np.zeros(field.shape, dtype=np.int64)
    tenure, spread = 3 + n_variables // 8, 4 + n_variables // 6
    seen_states, seen_values = [states.copy()], [value]
    for step in range(1, steps + 1):
        change = field - field[walkers[:, None], states][:, of]
        change[walkers[:, None], states] = np.inf
        change[(until > step) & (change >= (best - value)[:, None] - 1e-12)] = np.inf
        target = change.argmin(axis=1)
        gain = change[walkers, target]
        moving = np.isfinite(gain)
        settled = (gain >= 0.0) | ~moving
        if settled.any():
            seen_states.append(states[settled])
            seen_values.append(value[settled])
        variable = of[target]
        left = states[walkers, variable]
        target = np.where(moving, target, left)
        states[walkers, variable] = target
        value = value + np.where(moving, gain, 0.0)
        field += matrix[target] - matrix[left]
        until[walkers, left] = step + tenure + rng.integers(spread, size=n_walkers)
        best = np.minimum(best, value)
    seen_states.append(states)
    seen_values.append(value)
    return _reported(network, theta, pairs, np.concatenate(seen_states), np.concatenate(seen_values))


def all_states(network: PairwiseNetwork) -> Indices | None:
    """Every combination of states, shape (n, V); None where there are more than REPORTED."""
    sizes = np.diff(network.starts)
    if float(np.prod(sizes.astype(float))) > REPORTED:
        return None
    return np.asarray(network.starts[:-1] + np.indices(tuple(sizes.tolist())).reshape(len(sizes), -1).T)


def evaluated(network: PairwiseNetwork, theta: Vector, pairs: Vector, states: Indices) -> tuple[Indices, Vector]:
    """At most REPORTED of those states (n, V), without forbidden pairs, by their costs: (k, V), (k,)."""
    states = states[~network.forbidden[states[:, :, None], states[:, None, :]].any(axis=(1, 2))]
    costs: Vector = theta[states].sum(axis=1) + pairs[states[:, :, None], states[:, None, :]].sum(axis=(1, 2)) / 2
    order = np.argsort(costs, kind="stable")[:REPORTED]
    return states[order], costs[order]


def random_states(network: PairwiseNetwork, n: int, rng: np.random.Generator) -> Indices:
    """Random states, (n, V), that avoid forbidden pairs: variables that exclude the most others choose first."""
    first = network.starts[:-1]
    strict = np.add.reduceat(network.forbidden.sum(axis=1), first) / np.diff(network.starts)
    preference = rng.random((n, int(network.starts[-1])))
    states = np.zeros((n, len(first)), dtype=np.int64)
    for i in np.argsort(-strict, kind="stable").tolist():
        span = slice(int(first[i]), int(network.starts[i + 1]))
        states[:, i] = span.start + preference[:, span].argmax(axis=1)
        preference -= network.forbidden[states[:, i]]
    return states


def _reported(
    network: PairwiseNetwork, theta: Vector, pairs: Vector, states: Indices, values: Vector
) -> tuple[Indices, Vector]:
    """The best of what was seen and the neighbours of the best: distinct, legal, with exact costs."""
    # equal costs are nearly always equal states; what is lost otherwise is a tie
    _, first = np.unique(np.round(values, 9), return_index=True)
    states, _ = evaluated(network, theta, pairs, states[first[:REPORTED]])
    if len(states):
        states = np.unique(np.concatenate([states, _neighbours(network, theta, pairs, states[0])]), axis=0)
    return evaluated(network, theta, pairs, states)


def _neighbours(network: PairwiseNetwork, theta: Vector, pairs: Vector, states: Indices) -> Indices:
    """The best solutions that differ from one in one variable: (V,) -> (k, V)."""
    clashes = network.forbidden[states]
    # a clash with the state that is given up does not count
    clashes = clashes.sum(axis=0) - clashes[network.variable_of, np.arange(len(theta))]
    field = theta + pairs[states].sum(axis=0)
    change = field - field[states][network.variable_of]
    change[(clashes > 0) | np.isin(np.arange(len(theta)), states)] = np.inf
    chosen = np.argsort(change, kind="stable")[:NEIGHBOURS]
    chosen = chosen[np.isfinite(change[chosen])]
    found = np.repeat(states[None], len(chosen), axis=0)
    found[np.arange(len(chosen)), network.variable_of[chosen]] = chosen
    return found

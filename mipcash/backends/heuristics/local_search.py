"""Incumbents by local search over legal moves, which are cheap where a proof is expensive.

Notation
    s (R, G)    levels of R restarts, off where a group is off; "latent" levels remember the level of a group that is off.
    z (R, n_z)  their binaries;   q(z) = constant + l.z + z'Qz/2 with no terms inside a group.
    h = l + z Q (R, n_z).  Moving group g from level a to b changes q by h[b] - h[a], since Q vanishes inside g.

If the program is a pairwise network (``mipcash.backends.enumeration.network``), tabu search moves through its states (below).
Otherwise each step is the best legal move (``mipcash.program.moves``); once no single move improves, two groups are changed at
once.

Tabu search runs many walkers over a pairwise network in parallel: good solutions in milliseconds, no proof.

Notation
    s (R, V)    states of R walkers;   q(s) = sum_i theta[s_i] + sum_{i < j} M[s_i, s_j],  M with a penalty for forbidden pairs.
    h (R, S)    theta + sum_j M[s_j]: moving variable i from state a to b changes q by h[b] - h[a], since M vanishes in i.

Every walker takes its best move at every step, even if it is uphill. It may not return to a state that it left a few steps ago,
unless that gives the best value it has seen. Walkers may pass through forbidden pairs at a penalty; reported solutions have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from mipcash.backends.enumeration.network import PairwiseNetwork, network_at
from mipcash.deadline import NEVER, Deadline
from mipcash.program.forms import Indices, QuadraticForm, Vector
from mipcash.program.legality import Legality
from mipcash.program.moves import moves_of
from mipcash.program.program import BinaryProgram

TIE, NOISE = 1e-10, 1e-15
"""Costs that differ by less, relative to the least, or to the largest one, tie, so that rounding decides nothing."""
REPORTED = 256
"""Maximum number of solutions that a search returns."""
NEIGHBOURS = 64
"""Maximum number of neighbours of the best solution that are added to them."""


def tabu_search(
    network: PairwiseNetwork, theta: Vector, pairs: Vector, starts: Indices, steps: int, rng: np.random.Generator
) -> tuple[Indices, Vector]:
    """Run tabu search from each start.

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
        least = change.min(axis=1)
        target = (change <= (least + TIE * np.abs(least) + NOISE * fine)[:, None]).argmax(axis=1)  # the first that ties
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
    """Return every combination of states, shape (n, V), or None if there are more than REPORTED."""
    sizes = np.diff(network.starts)
    if float(np.prod(sizes.astype(float))) > REPORTED:
        return None
    return np.asarray(network.starts[:-1] + np.indices(tuple(sizes.tolist())).reshape(len(sizes), -1).T)


def evaluated(network: PairwiseNetwork, theta: Vector, pairs: Vector, states: Indices) -> tuple[Indices, Vector]:
    """Return up to REPORTED of the states (n, V) that have no forbidden pairs, ordered by cost, and the costs: (k, V), (k,)."""
    allowed = np.where(network.forbidden, np.inf, pairs)
    costs: Vector = theta[states].sum(axis=1) + allowed[states[:, :, None], states[:, None, :]].sum(axis=(1, 2)) / 2
    order = np.argsort(_tied(costs), kind="stable")[:REPORTED]
    order = order[np.isfinite(costs[order])]
    return states[order], costs[order]


def _tied(values: Vector) -> Vector:
    """Return values, or their changes, rounded to units in which they tie: shape of ``values``, which may be inf."""
    finite = values[np.isfinite(values)]
    unit = max(TIE * abs(float(finite.min())), NOISE * float(np.abs(finite).max())) if len(finite) else 0.0
    return np.round(values / unit) if unit else values


def random_states(network: PairwiseNetwork, n: int, rng: np.random.Generator) -> Indices:
    """Draw random states, (n, V), that avoid forbidden pairs where possible: variables with the most exclusions choose first."""
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
    """Return the best visited states and the neighbours of the best one: distinct, legal, with exact costs."""
    # equal costs are nearly always equal states; otherwise only a tie is lost
    _, first = np.unique(np.round(values, 9), return_index=True)
    states, _ = evaluated(network, theta, pairs, states[first[:REPORTED]])
    if len(states):
        states = np.unique(np.concatenate([states, _neighbours(network, theta, pairs, states[0])]), axis=0)
    return evaluated(network, theta, pairs, states)


def _neighbours(network: PairwiseNetwork, theta: Vector, pairs: Vector, states: Indices) -> Indices:
    """Return the best solutions that differ from a given one in one variable: (V,) -> (k, V)."""
    clashes = network.forbidden[states]
    # a conflict with the variable's old state does not count
    clashes = clashes.sum(axis=0) - clashes[network.variable_of, np.arange(len(theta))]
    field = theta + pairs[states].sum(axis=0)
    change = field - field[states][network.variable_of]
    change[(clashes > 0) | np.isin(np.arange(len(theta)), states)] = np.inf
    chosen = np.argsort(_tied(change), kind="stable")[:NEIGHBOURS]
    chosen = chosen[np.isfinite(change[chosen])]
    found = np.repeat(states[None], len(chosen), axis=0)
    found[np.arange(len(chosen)), network.variable_of[chosen]] = chosen
    return found


MAX_STEPS = 200
PAIR_CANDIDATES = 400
KICKS = 8
WALKS = 16
PATIENCE = 2
ENTRIES = 1 << 22
"""Most levels of the neighbours that are checked at a time."""
STEPS, FEW_STEPS = 100, 50
"""Steps of tabu search with kicks and without."""
MIN_WALKERS, MAX_WALKERS = 8, 16


class LocalSearch:
    """Descent over the legal levels of one program at fixed numerical values.

    Args:
        program: the compiled space.
        legality: a complete check (see ``mipcash.program.legality.Legality``).
        deadline: descents and walks stop there and return their current results.
    """

    def __init__(self, program: BinaryProgram, legality: Legality, deadline: Deadline = NEVER) -> None:
        self.program, self.legality, self.deadline = program, legality, deadline
        self.moves = moves_of(program)
        self._off = program.off_levels

    def descend(
        self, form: QuadraticForm, starts: Indices, restarts: int, rng: np.random.Generator, kicks: int = KICKS
    ) -> tuple[Indices, Vector]:
        """Descend from legal starts and from random legal walks away from them.

        Args:
            form: folded, over base columns; terms in numerical parameters must be absent.
            starts: shape (K, G), legal levels, K >= 1.
            restarts: number R of descents; the first ones begin at the starts themselves.
            kicks: rounds of iterated local search from the best local optimum.

        Returns:
            Distinct local optima (and neighbours of the best) ordered by value: levels (k, G) and values (k,).
        """
        network = self._network
        if network is not None and not np.any(form.linear[self.program.n_z :]):
            found = self._walked(network, form, starts, restarts, rng, STEPS if kicks else FEW_STEPS)
            if found is not None:
                return found
        linear, matrix = form.linear[: self.program.n_z], form.symmetric()[: self.program.n_z, : self.program.n_z]
        latent = starts[np.arange(restarts) % len(starts)].copy()
        if restarts > len(starts):
            latent[len(starts) :] = self.walk(latent[len(starts) :], len(self.program.groups), rng)
        levels = self.legality.effective(latent)
        self._settle(levels, latent, linear, matrix)
        levels, latent = self._kicked(levels, latent, linear, matrix, rng, kicks)
        values = self._values(levels, linear, matrix)
        best = int(np.argmin(_tied(values)))
        pair = None if self.deadline.passed else self._improve_pair(levels[best], linear, matrix)
        if pair is not None:
            levels = np.concatenate([levels, pair[None]])
            values = np.concatenate([values, self._values(pair[None], linear, matrix)])
        _, first = np.unique(levels, axis=0, return_index=True)
        order = first[np.argsort(_tied(values[first]), kind="stable")]
        return levels[order], values[order] + form.constant

    @cached_property
    def _network(self) -> PairwiseNetwork | None:
        """The pairwise network of the legality check, or None if there is none that tabu search supports."""
        if not self.legality.complete or not self.program.n_z:
            return None
        network = network_at(self.legality, self.program.high[: self.program.n_z] > 0.5)
        usable = network is not None and not len(network.low) and np.all(np.diff(network.starts))
        return network if usable else None

    def _walked(
        self,
        network: PairwiseNetwork,
        form: QuadraticForm,
        starts: Indices,
        walkers: int,
        rng: np.random.Generator,
        steps: int,
    ) -> tuple[Indices, Vector] | None:
        """Run tabu search from the starts and from random states; return None if it found no solution.

        If the network has few solutions, all of them are evaluated instead.
        """
        theta, pairs = network.costs(form)
        few = all_states(network)
        if few is not None:
            found, costs = evaluated(network, theta, pairs, few)
            return (network.levels_of(found), costs + form.constant) if len(found) else None
        walkers = max(MIN_WALKERS, min(MAX_WALKERS, walkers))
        states = random_states(network, walkers, rng)
        known = [s for s in map(network.states_of, starts[: walkers // 2]) if s is not None]
        if known:
            states[: len(known)] = known
        found, costs = tabu_search(network, theta, pairs, states, steps, rng)
        if not len(found):
            return None
        return network.levels_of(found), costs + form.constant

    def walk(self, starts: Indices, steps: int, rng: np.random.Generator) -> Indices:
        """Make random walks of legal single moves from each start: (R, G) levels -> (R, G) latent levels."""
        return self.moves.walk(self.legality, starts, steps, rng, self.deadline)

    # -- internals ----------------------------------------------------------------------------------------------

    def _settle(self, levels: Indices, latent: Indices, linear: Vector, matrix: Vector) -> None:
        """Descend all restarts to local optima, in place."""
        for _ in range(MAX_STEPS):
            if self.deadline.passed or not self._improve(levels, latent, linear, matrix):
                break

    def _kicked(
        self, levels: Indices, latent: Indices, linear: Vector, matrix: Vector, rng: np.random.Generator, kicks: int
    ) -> tuple[Indices, Indices]:
        """Run iterated local search: descend from every structural change and some random walks of the best solution."""
        failures = 0
        for _ in range(kicks):
            if self.deadline.passed:
                break
            values = self._values(levels, linear, matrix)
            best = int(np.argmin(_tied(values)))
            walked = self.walk(np.repeat(levels[best][None], WALKS, axis=0), 4, rng)
            _, changed = self.moves.structural(levels[best][None], latent[best][None])
            trial_latent = np.concatenate([walked, changed])
            trial = self.legality.effective(trial_latent)
            legal = self.legality.check(trial)
            trial, trial_latent = trial[legal], trial_latent[legal]
            if not len(trial):
                break
            self._settle(trial, trial_latent, linear, matrix)
            levels, latent = np.concatenate([levels, trial]), np.concatenate([latent, trial_latent])
            failures += self._values(trial, linear, matrix).min() >= values[best] - 1e-12
            if failures == PATIENCE:
                break
        return levels, latent

    def _values(self, levels: Indices, linear: Vector, matrix: Vector) -> Vector:
        z = self.program.one_hot(levels)
        values: Vector = z @ linear + 0.5 * np.sum((z @ matrix) * z, axis=1)
        return values

    def _improve(self, levels: Indices, latent: Indices, linear: Vector, matrix: Vector) -> bool:
        """Make one best-improvement step for every restart, in place; return False if none improves."""
        better, best_latent, gain = levels.copy(), latent.copy(), np.zeros(len(levels))
        for owner, trial_latent, trial, change in self._neighbours(levels, latent, linear, matrix, gain):
            legal = np.flatnonzero(self.legality.check(trial))
            legal = legal[np.lexsort((_tied(change[legal]), owner[legal]))]
            restarts, first = np.unique(owner[legal], return_index=True)
            chosen = legal[first]
            won = change[chosen] < gain[restarts]
            restarts, chosen = restarts[won], chosen[won]
            better[restarts], best_latent[restarts], gain[restarts] = (
                trial[chosen],
                trial_latent[chosen],
                change[chosen],
            )
        levels[:], latent[:] = better, best_latent
        return bool(np.any(gain < 0.0))

    def _neighbours(
        self, levels: Indices, latent: Indices, linear: Vector, matrix: Vector, gain: Vector
    ) -> Iterator[tuple[Indices, Indices, Indices, Vector]]:
        """Yield improving neighbours: owner (N,), latent levels (N, G), levels (N, G), change of value (N,).

        Changes of one level come by their improvement, ENTRIES levels at a time, for restarts that have no ``gain`` yet.
        """
        program = self.program
        z = program.one_hot(levels)
        h = linear + z @ matrix
        current = np.take_along_axis(h, program.starts + levels, axis=1)
        change = h - current[:, program.group_of]
        allowed = self.moves.plain_columns[None, :] & (levels != self._off)[:, program.group_of]
        owner, column = np.nonzero(allowed & (change < -1e-12))
        order = np.argsort(_tied(change[owner, column]), kind="stable")
        owner, column, most = owner[order], column[order], 1 + ENTRIES // max(1, len(program.groups))
        while len(owner) and not self.deadline.passed:
            of, at = owner[:most], column[:most]
            groups = program.group_of[at]
            moved, moved_latent = levels[of], latent[of]
            moved[np.arange(len(of)), groups] = moved_latent[np.arange(len(of)), groups] = at - program.starts[groups]
            yield of, moved_latent, moved, change[of, at]
            left = gain[owner[most:]] == 0.0
            owner, column = owner[most:][left], column[most:][left]
        owner, moved_latent = self.moves.structural(levels, latent)
        if len(owner):
            moved = self.legality.effective(moved_latent)
            values = self._values(moved, linear, matrix) - self._values(levels, linear, matrix)[owner]
            better = values < -1e-12
            yield owner[better], moved_latent[better], moved[better], values[better]

    def _improve_pair(self, levels: Indices, linear: Vector, matrix: Vector) -> Indices | None:
        """Return the levels after the best legal change of two groups at once, or None if no such change improves. (G,) -> (G,)."""
        program = self.program
        z = program.one_hot(levels[None])[0]
        h = linear + z @ matrix
        at = program.starts + levels
        change = h - h[at][program.group_of]
        now = at[program.group_of]
        both = change[:, None] + change[None, :] + matrix - matrix[:, now] - matrix[now, :] + matrix[np.ix_(now, now)]
        movable = self.moves.plain_columns & (levels != self._off)[program.group_of]
        usable = movable[:, None] & movable[None, :] & (program.group_of[:, None] < program.group_of[None, :])
        first, second = np.nonzero(usable & (both < -1e-12))
        if not len(first):
            return None
        best = np.argsort(_tied(both[first, second]), kind="stable")[:PAIR_CANDIDATES]
        trial = np.repeat(levels[None], len(best), axis=0)
        for chosen in (first[best], second[best]):
            groups = program.group_of[chosen]
            trial[np.arange(len(best)), groups] = chosen - program.starts[groups]
        legal = np.flatnonzero(self.legality.check(trial))
        return trial[legal[0]] if len(legal) else None

"""Numbers of the model of the loss: predictions at configurations, and the importance of parameters."""

from __future__ import annotations

from collections.abc import Iterable

from mipcash.errors import ConfigurationError, MipcashError
from mipcash.modelling.domains import Configuration
from mipcash.program.forms import Vector
from mipcash.report.data.effects import Effects, effects
from mipcash.report.data.run import Run, Source
from mipcash.space.space import Space


def predict(
    source: Source, configs: Iterable[Configuration], *, space: Space | None = None
) -> tuple[Vector, Vector, Vector]:
    """Predict the losses of n configurations by the model of ``hybrid``, fitted to the evaluations of a run.

    Args:
        source: a result, a study, or the path of a journal.
        configs: legal configurations.
        space: space of a journal; a result or a study has its own.

    Returns:
        The posterior medians, and two standard deviations below and above them, each of shape (n,). They are those of the
        loss without the noise of an evaluation.

    Raises:
        MipcashError: there is no model of the loss, or the source is no run.
        ConfigurationError: a configuration is illegal.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import predict
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] + c["b"], space, 10, optimizer="random", progress=False)
        >>> mean, low, high = predict(run, [{"a": 0, "b": 0.5}, {"a": 9, "b": 0.5}])
        >>> bool(low[0] <= mean[0] < mean[1] <= high[1])
        True
    """
    run, asked = Run.of(source, space), list(configs)
    if run.place is None or run.model is None:
        raise MipcashError(_lacking(run))
    for config in asked:
        if violations := run.place.space.validate(config):
            raise ConfigurationError("; ".join(map(str, violations)))
    return run.model.band(run.place.domain.encode(asked), run.result.objectives.sign)


def importances(source: Source, *, space: Space | None = None) -> dict[str, float]:
    """Return the share of each parameter, with its interactions, in the variance of the modelled loss, the largest first.

    The shares add up to more than 1 where parameters interact.

    Args:
        source: a result, a study, or the path of a journal.
        space: space of a journal; a result or a study has its own.

    Returns:
        Name -> median share, from 0 to 1.

    Raises:
        MipcashError: there is no model of the loss, or the source is no run.

    Examples:
        >>> import mipcash as mc
        >>> from mipcash.report import importances
        >>> space = mc.Space("box")
        >>> a, b = space.integer("a", 0, 9), space.real("b", 0.0, 1.0)
        >>> run = mc.minimize(lambda c: c["a"] + c["b"], space, 10, optimizer="random", progress=False)
        >>> list(importances(run))
        ['a', 'b']
    """
    return {p.label: p.whole.middle for p in effects_of(source, space).parameters}


def effects_of(source: Source, space: Space | None = None) -> Effects:
    """Return importance and interactions in a run.

    Raises:
        MipcashError: there is no model of the loss.
    """
    run = Run.of(source, space)
    found = effects(run)
    if found is None:
        raise MipcashError(_lacking(run))
    return found


def _lacking(run: Run) -> str:
    """Return why there is no model of a run's loss."""
    if run.place is None:
        return "this needs the space of the run, which its journal does not describe; give it as space="
    return "this needs a model of the loss, which takes four evaluations with different losses"

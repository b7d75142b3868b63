"""Trials of a study of Optuna as known evaluations of mipcash."""

from __future__ import annotations

import math
from typing import Any

from optuna.study import Study, StudyDirection
from optuna.trial import TrialState

from mipcash.errors import warn
from mipcash.integrations.optuna.history import Reader, number_of
from mipcash.modelling.domains import Configuration
from mipcash.space.direction import MAXIMIZE, MINIMIZE, direction_of
from mipcash.space.space import Space
from mipcash.study.trial import Failed


def known_from(
    study: Study, space: Space, *, direction: str = MINIMIZE, illegal: bool = False
) -> list[tuple[Configuration, Any]]:
    """Return the finished trials of a study, for ``mc.minimize(known=...)`` and, one by one, for ``mc.Study.add``.

    The outcome of a complete trial is a dict. It has ``loss`` (the value, with its own sign), the user attributes that are numbers
    by name, and constraints as ``constraint NAME``, of which only the distance from the bound is known. The outcome of a failed
    trial is [`mipcash.Failed`][mipcash.study.trial.Failed]. Pruned trials are left out, since they have no value of a complete
    evaluation.

    Trials that do not fit the space, and those that violate its rules, are left out with a warning that gives their number.

    Args:
        study: an Optuna study of one objective.
        space: the space that the trials should fit.
        direction: of the run that gets the trials, as in ``mc.minimize``; it must be that of the study.
        illegal: keep trials that violate rules of the space; ``mc.Study.add(config, outcome, illegal="learn")`` accepts them.

    Returns:
        Pairs of a configuration and its outcome.

    Raises:
        TypeError: ``study`` is no study, or ``space`` no space.
        ValueError: the study has several objectives, or another direction.

    Examples:
        >>> import mipcash as mc
        >>> import optuna
        >>> from mipcash.integrations.optuna import known_from
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        >>> study.optimize(lambda trial: trial.suggest_int("a", 0, 9), n_trials=3)
        >>> space = mc.Space("box")
        >>> a = space.integer("a", 0, 9)
        >>> len(known_from(study, space))
        3
    """
    if not isinstance(study, Study):
        raise TypeError(
            f"study must be an optuna.Study, got {study!r}; of a storage: optuna.load_study(study_name=..., storage=...)"
        )
    if not isinstance(space, Space):
        raise TypeError(f"space must be a mipcash.Space, got {space!r}; of distributions: Space.from_optuna")
    if len(study.directions) != 1:
        raise ValueError(
            f"the study has {len(study.directions)} objectives, and a loss is one: give its trials as rows instead, "
            "mc.read_trials(rows, space, loss=None, outputs=[...])"
        )
    own = MAXIMIZE if study.direction == StudyDirection.MAXIMIZE else MINIMIZE
    if direction_of(direction) != own:
        raise ValueError(
            f"the study has direction {own!r}, and what is to know its trials {direction!r}: give direction={own!r} here and to "
            "mc.minimize or mc.Study"
        )
    reader, found, left = Reader(space), list[tuple[Configuration, Any]](), dict[int, str]()
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL)):
        note = reader.note(trial)
        placed = reader.placed(trial.params, {} if note is None else note.config)
        if placed.config is None:
            if trial.state == TrialState.COMPLETE:  # a failed trial may lack some parameters
                left[trial.number] = placed.problem
        elif not illegal and (broken := space.validate(placed.config)):
            left[trial.number] = "; ".join(map(str, broken))
        else:
            found.append((placed.config, _outcome(trial)))
    if left:
        number, problem = next(iter(left.items()))
        warn(
            f"{len(left)} of {len(study.trials)} trials are left out, as they do not fit space {space.name!r}: trial {number}: "
            f"{problem}"
        )
    return found


def _outcome(trial: Any) -> Any:
    constraints = {f"constraint {name}": value for name, value in trial.constraints.items()}
    reported = {name: number_of(value) for name, value in {**constraints, **trial.user_attrs}.items()}
    values = {str(name): value for name, value in reported.items() if value is not None and name != "loss"}
    if trial.state == TrialState.FAIL:
        return Failed("the trial failed", values=values)
    return {"loss": trial.value, **values} if math.isfinite(trial.value) else Failed(f"{trial.value}", values=values)

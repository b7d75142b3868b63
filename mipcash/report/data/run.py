"""Subject of a report: a result, and its space if that is available."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mipcash.errors import MipcashError, SpaceError, StorageError
from mipcash.optimizers.loss_model import LossModel
from mipcash.report.data.box import Box
from mipcash.report.files import READABLE, mode_of
from mipcash.space.bounds import Extent
from mipcash.space.domain import Domain
from mipcash.space.space import Space, space_of
from mipcash.study.feasibility import observation
from mipcash.study.records.fingerprint import listing
from mipcash.study.records.limits import read_limits
from mipcash.study.records.trials import readable_trial, trial_of
from mipcash.study.result import Result
from mipcash.study.storage.address import Address, is_address
from mipcash.study.storage.checks import DamageError, uncollected
from mipcash.study.storage.listings import differences, fingerprint
from mipcash.study.storage.protocol import StudyRecord
from mipcash.study.storage.registry import read_study
from mipcash.study.study import Study
from mipcash.study.trial import Trial
from mipcash.text import shown

SECONDS = 5.0
"""Time limit for computing the legal ranges."""
MODELLED = 1500
"""Largest number of evaluations to which a model is fitted for a report; of more, the latest are used."""

Source = Any
"""A ``mipcash.Result``, a ``mipcash.Study``, the path of a journal, or a ``Run``."""


@dataclass(frozen=True, eq=False)
class Place:
    """A space, with properties that are computed once, since the space does not change during a run."""

    space: Space

    @cached_property
    def domain(self) -> Domain:
        """The compiled space."""
        return Domain.of(self.space)

    @cached_property
    def extents(self) -> dict[str, Extent]:
        """Legal range of each parameter; parameters that can never be active are left out."""
        return self.space.bounds(time_limit=SECONDS)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Sizes of the space and its program."""
        return self.space.sizes()

    @cached_property
    def box(self) -> Box:
        """Draws from the ranges of the parameters, and which of them are legal."""
        return Box.drawn(self.domain, np.random.default_rng(0))


@dataclass(frozen=True, eq=False)
class Run:
    """Subject of a report. Make one with ``of``.

    Attributes:
        result: with its trials.
        record: the journal's row; None: the run has no journal.
        place: the space; None: it is on a Pyomo model, which a journal does not describe.
        source: the journal's name; empty: there is none.
        mode: permission bits of files derived from the run: those of the journal's file.
    """

    result: Result
    record: StudyRecord | None = None
    place: Place | None = field(default=None, repr=False)
    source: str = ""
    mode: int = READABLE

    @classmethod
    @uncollected()
    def of(cls, given: Source, space: Space | Place | None = None) -> Run:
        """Make a run from a result, a study, or a journal's path or address.

        Args:
            space: of a journal that is read; None: as the journal describes it. A result or study brings its own.

        Raises:
            MipcashError: the source is none of these, or the space differs from the journal's.
            StorageError: see ``mipcash.study.storage.registry.read_study``.
        """
        if isinstance(given, Run):
            return given
        place = space if isinstance(space, Place) or space is None else Place(_space(space))
        own = given.space if isinstance(given, Study) else given.declared if isinstance(given, Result) else None
        if own is not None and (place is None or place.space is not own):
            place = Place(own)
        if isinstance(given, Study):
            return cls(given.result, given.record, place, str(given.storage or ""), mode_of(given.storage))
        if isinstance(given, Result):
            return cls(given, None, place)
        if not isinstance(given, (str, os.PathLike)):
            raise MipcashError(f"a report is of a result, a study or the path of a journal; got {shown(given)}")
        path = given if isinstance(given, str) and is_address(given) else Path(os.path.expanduser(given))
        record, rows = read_study(path)
        name = str(Address.of(path)) if isinstance(path, str) else str(path)  # without a password
        if place is None:
            place = _described(record)
        else:
            _check_same(name, record, place.space)
        if place is not None:
            try:
                trials = tuple(trial_of(place.space, row, record.id, record.objectives) for row in rows)
            except DamageError as error:
                raise StorageError(f"{name} is damaged: {error}; start a new journal") from error
        else:
            trials = tuple(readable_trial(row, record.objectives) for row in rows)
        declared = None if place is None else place.space
        limits = read_limits(record.limits)
        result = Result(
            trials, record.space, record.stopped, record.recommended, limits, declared, directions=record.objectives
        )
        return cls(result, record, place, name, mode_of(path))

    @cached_property
    def evaluated(self) -> list[Trial]:
        """Trials that pictures of evaluations show: with a loss, legal, at full fidelity, and no repeats."""
        history = self.result.history
        return [t for t in history if t.loss is not None and t.legal and t.at_full_fidelity and not t.repeat]

    @property
    def title(self) -> str:
        """Name of the space."""
        return self.result.space

    @cached_property
    def model(self) -> LossModel | None:
        """Model of the loss in minimisation form; None: there is no space, or too few evaluations."""
        if self.place is None:
            return None
        history = [observation(t) for t in self.result.history[-MODELLED:]]
        return LossModel.of(self.place.domain, history, self.result.objectives.in_minimisation_form(self.result.under))


def _space(given: Any) -> Space:
    if not isinstance(given, Space):
        raise SpaceError(f"space= takes the mipcash.Space that the run was about; got {shown(given)}")
    return given


def _described(record: StudyRecord) -> Place | None:
    """Return the space that a journal describes; None if it describes none, or another one than its fingerprint tells."""
    try:
        space = None if record.declaration is None else space_of(record.declaration)
        return Place(space) if space is not None and fingerprint(listing(space)) == record.fingerprint else None
    except MipcashError:  # data of somebody else
        return None


def _check_same(name: str, record: StudyRecord, space: Space) -> None:
    """Check that a journal belongs to a space.

    Raises:
        StorageError: the spaces differ; the message lists the differences.
    """
    now = listing(space)
    if fingerprint(now) == record.fingerprint:
        return
    found = differences(record.listing, now)
    if found:
        named = "; ".join(found[:6]) + (f"; and {len(found) - 6} more differences" if len(found) > 6 else "")
        raise StorageError(f"{name} was written for another space: {named}. Give the space or model of that run")

"""Known evaluations and enqueued configurations: how they train the model, are stored and are counted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from typer.testing import CliRunner

import mipcash as mc
from mipcash.cli.archive import open_archive
from mipcash.cli.main import app
from mipcash.errors import ConfigurationError, StorageError
from mipcash.optimizers.optimizer import Proposal, Request
from mipcash.study.minimize import minimize
from mipcash.study.progress import Lines
from mipcash.study.records.encoding import encode_config
from mipcash.study.storage.sqlite import read_journal
from tests.forging import forge


def ruled() -> mc.Space:
    """Return a space with two integers under a rule, and a real parameter that is active for one category only."""
    space = mc.Space("ruled")
    a, b = space.integer("a", 0, 9), space.integer("b", 0, 9)
    kind = space.categorical("kind", ["plain", "deep"])
    space.real("x", 0.0, 1.0, when=kind["deep"])
    space.rule("little", a + b <= 9)
    return space


def bowl(config: dict[str, Any]) -> float:
    return (config["a"] - 6.0) ** 2 + (config["b"] - 2.0) ** 2 + config.get("x", 0.7)


ILLEGAL = {"a": 8, "b": 8, "kind": "plain"}


def go(space: mc.Space, budget: int, **given: Any) -> mc.Result:
    return minimize(tiny.loss, space, budget, optimizer=tiny.Sampler(space), progress=False, **given)


# -- known evaluations --------------------------------------------------------------------------------------------


def test_known_evaluations_are_added_once_and_do_not_count_towards_the_budget(space: mc.Space, journal: Path) -> None:
    known = tiny.known(space, 3)
    result = go(space, 2, storage=journal, known=known)
    assert [t.origin for t in result.history] == ["known"] * 3 + ["acquisition"] * 2
    assert [(t.config, t.loss, t.status, t.known) for t in result.history[:3]] == [
        (c, v, "done", True) for c, v in known
    ]
    assert (result.n_known, result.n_done, result.n_failed, result.stopped) == (3, 2, 0, "budget")
    assert result.value == min(t.loss for t in result.history if t.loss is not None)
    assert "2 done, 0 failed, 3 known, stopped: budget" in str(result)
    assert len(go(space, 2, storage=journal, known=reversed(known)).history) == 5
    more = [*known, known[0], (known[1][0], 9.0)]  # one evaluation repeated, and one with another outcome
    again = go(space, 3, storage=journal, known=more).history
    assert [t.loss for t in again if t.known] == [v for _, v in known] + [known[0][1], 9.0]
    assert [t.number for t in again if not t.known] == [3, 4, 7]
    assert len(go(space, 3, storage=journal, known=more).history) == 8
    assert len(go(space, 3, storage=journal, known=journal).history) == 8  # its own evaluations


def test_add_accepts_the_same_outcomes_as_tell(space: mc.Space, journal: Path) -> None:
    (one, _), (two, _), (three, _), (four, _) = tiny.known(space, 4)
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        study.add(one, {"loss": np.float32(0.5), "ms": 3, "note": "by hand"})
        study.add(two, mc.Failed("out of memory"))
        study.add(three, math.nan)
        study.add(four, {"loss": mc.Failed("diverged"), "ms": math.inf})
        for outcome in (None, "0.5", {"score": 1.0}, [0.5], True):
            with pytest.raises(ValueError, match=r"of the configuration is invalid: .*mc.Failed|without 'loss'"):
                study.add(one, outcome)
        before = study.trials
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        assert [(t.status, t.loss, t.message, t.texts) for t in study.trials] == [
            ("done", 0.5, "", {"note": "by hand"}),
            ("failed", None, "out of memory", {}),
            ("failed", None, "the objective returned nan; a loss must be finite", {}),
            ("failed", None, "diverged", {}),
        ]
        assert repr(study.trials) == repr(before)
        assert (study.n_evaluated, study.result.n_known, study.result.problem()) == (0, 4, "")


def test_numpy_values_are_converted_to_the_declared_types_and_order(space: mc.Space, journal: Path) -> None:
    config = tiny.draw(space, np.random.default_rng(0))
    odd = {n: config[n] for n in reversed(config)}
    odd |= {"layers": np.int8(config["layers"]), "rounds": np.float64(config["rounds"]), "lr": np.float64(config["lr"])}
    odd |= {"width": np.uint8(config["width"]), "order": list(config["order"])}
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        for trial in (study.add(odd, 1.0), study.enqueue({**odd, "rounds": np.int64(77)})):
            assert list(trial.config) == [n for n in space.parameters if n in config]
            assert {n: type(v) for n, v in trial.config.items()} == {n: type(v) for n, v in config.items()}
    assert read_journal(journal)[1][0].exact == encode_config(space, config)


def test_an_illegal_configuration_is_refused_with_the_violated_rules() -> None:
    study = mc.Study(ruled(), "random")
    broken = r"the configuration is illegal: rule 'little' is violated: its value is 16"
    with pytest.raises(ConfigurationError, match=broken):
        study.add(ILLEGAL, 1.0)
    for config, message in (
        ({**ILLEGAL, "kind": "odd"}, r"does not fit into space 'ruled'.*parameter 'kind': 'odd' is not one of"),
        ({**ILLEGAL, "x": 0.5}, r"parameter 'x' is given, but it is not active"),
        ({"a": 8, "b": 8, "kind": "deep"}, r"parameter 'x' is missing"),
        ({**ILLEGAL, "a": 11}, r"parameter 'a': 11 is outside \[0, 9\]"),
        ({**ILLEGAL, "c": 1}, r"'c' is not a parameter of space 'ruled'"),
        (None, r"a configuration is a dict of parameter values, got None"),
    ):
        for illegal in ("refuse", "learn"):
            with pytest.raises(ConfigurationError, match=message):
                study.add(config, 1.0, illegal=illegal)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="illegal must be 'refuse' or 'learn', got str 'drop'"):
        study.add(ILLEGAL, 1.0, illegal="drop")
    cure = r"rule 'little' is violated: its value is 16.*The nearest legal configuration has [ab] = "
    with pytest.raises(ConfigurationError, match=cure):
        study.enqueue(ILLEGAL)
    with pytest.raises(ConfigurationError, match="got int 3"):
        study.enqueue(3)  # type: ignore[arg-type]
    assert study.trials == ()


def test_one_invalid_known_evaluation_rejects_the_whole_list(journal: Path) -> None:
    space = ruled()
    good = ({"a": 1, "b": 1, "kind": "plain"}, 1.0)
    for known, error, message in (
        ([good, (ILLEGAL, 2.0)], ConfigurationError, r"the configuration of known\[1\] is illegal: rule 'little'"),
        ([good, (good[0], None)], ValueError, r"the outcome of the configuration of known\[1\] is invalid: it is None"),
        ([good, good[0]], TypeError, r"a list of pairs .* known\[1\] is dict"),
        (good[0], TypeError, r"known= is a list of pairs \(configuration, outcome\), got dict"),
        (3, TypeError, r"known= is a list of pairs \(configuration, outcome\), got int 3"),
    ):
        with pytest.raises(error, match=message):
            mc.minimize(bowl, space, 2, optimizer="random", storage=journal, known=known, progress=False)  # type: ignore[arg-type]
        assert read_journal(journal)[1] == []


def test_an_illegal_known_evaluation_trains_the_model_and_is_never_the_best(journal: Path) -> None:
    space = ruled()
    with mc.Study(space, "hybrid", storage=journal) as study:
        trial = study.add(ILLEGAL, -100.0, illegal="learn")
        assert (trial.origin, trial.known, trial.legal, trial.loss) == ("known, illegal", True, False, -100.0)
        assert (study.result.best, math.isnan(study.result.value)) == (None, True)
        study.add({"a": 1, "b": 1, "kind": "plain"}, 5.0)
        assert (study.result.value, study.result.best and study.result.best.number) == (5.0, 1)
    result = mc.minimize(bowl, space, 8, storage=journal, progress=False)
    assert result.best is not None
    assert (result.best.legal, result.n_known, result.n_done) == (True, 2, 8)
    assert result.value < 5.0
    assert all(space.is_legal(t.config) for t in result.history[1:])
    assert np.isnan(result.convergence().loss[0])
    assert open_archive(journal).result.value == result.value


@pytest.mark.parametrize(("n", "failures", "left"), [(2, 0, 4), (8, 0, 0), (0, 10, 1)])
def test_known_evaluations_shorten_the_initial_design_but_failures_alone_do_not_end_it(
    n: int, failures: int, left: int
) -> None:
    space = ruled()
    known: list[Any] = [(c, bowl(c)) for c in space.sample(n, seed=1)] * 2  # each configuration is evaluated twice
    known += [(c, mc.Failed("no power")) for c in space.sample(failures, seed=1)]
    result = mc.minimize(bowl, space, left + 1, known=known, progress=False)
    assert [t.origin for t in result.history if not t.known] == [*["initial design"] * left, "log-ei"]


# -- enqueued configurations --------------------------------------------------------------------------------------


def test_enqueued_configurations_are_proposed_next_in_order_and_count(space: mc.Space, journal: Path) -> None:
    (one, _), (two, _) = tiny.known(space, 2)
    with mc.Study(space, tiny.Sampler(space), storage=journal) as study:
        study.tell(study.ask(), 1.0)
        study.enqueue(one)
        assert study.enqueue(two).pending
    result = go(space, 4, storage=journal)
    assert [t.origin for t in result.history] == ["acquisition", "enqueued", "enqueued", "acquisition"]
    assert [t.config for t in result.history[1:3]] == [one, two]
    assert (result.n_done, result.n_known, result.stopped) == (4, 0, "budget")


def test_a_configuration_is_enqueued_only_once(space: mc.Space) -> None:
    (one, loss), (two, _) = tiny.known(space, 2)
    study = mc.Study(space, tiny.Sampler(space))
    assert study.enqueue(one).number == study.enqueue(one).number == 0
    assert study.ask().number == 0
    assert study.enqueue(one).pending  # the trial is being evaluated
    study.tell(study.trials[0], loss)
    assert (study.enqueue(one).number, study.enqueue(one).loss) == (0, loss)
    study.add(two, 3.0)
    assert (study.enqueue(two).number, study.enqueue(two).known) == (1, True)
    assert len(study.trials) == 2


# -- resumed and damaged journals ---------------------------------------------------------------------------------


def test_a_run_resumed_at_any_point_makes_the_proposals_of_an_uninterrupted_run(space: mc.Space, journal: Path) -> None:
    known = tiny.known(space, 5)

    def steps(study: mc.Study, k: int) -> None:
        if k in (2, 3):
            study.add(*known[k])
        if k == 4:
            study.enqueue(known[4][0])
        trial = study.ask()
        study.tell(trial, tiny.loss(trial.config))

    unbroken = mc.Study(space, tiny.Counter(space), seed=7)
    unbroken.add_missing(known[:2])
    for k in range(7):
        steps(unbroken, k)
        with mc.Study(space, tiny.Counter(space), seed=7, storage=journal) as study:  # reopened for each trial
            study.add_missing(known[:2])
            steps(study, k)
    with mc.Study(space, tiny.Counter(space), seed=7, storage=journal) as study:
        assert [(t.number, t.config, t.loss, t.origin) for t in study.trials] == [
            (t.number, t.config, t.loss, t.origin) for t in unbroken.trials
        ]
    assert unbroken.n_evaluated == 7


def test_a_journal_with_a_forged_known_origin_is_damaged(tmp_path: Path) -> None:
    space, journal = ruled(), tmp_path / "run.db"
    with mc.Study(space, "random", storage=journal) as study:
        study.add(ILLEGAL, 1.0, illegal="learn")
    forge(journal, "UPDATE trial SET origin = 'known' WHERE number = 0")
    with pytest.raises(StorageError, match="the configuration of trial 0 is illegal"):
        mc.Study(space, "random", storage=journal)


def test_an_optimizer_may_not_call_its_proposals_known(space: mc.Space) -> None:
    class Liar(tiny.Sampler):
        def propose(self, request: Request) -> Proposal:
            return Proposal(super().propose(request).config, origin="known")

    with pytest.raises(
        TypeError, match="'sampler' uses the origin 'known', which is reserved for configurations of the user"
    ):
        mc.Study(space, Liar(space)).ask()


def test_show_and_progress_distinguish_known_evaluations(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = ruled()
    known = [(c, bowl(c)) for c in space.sample(3, seed=1)]
    mc.minimize(bowl, space, 2, optimizer="random", storage=journal, known=known, progress=Lines())
    said = capsys.readouterr().err.splitlines()
    best = min(v for _, v in known)
    assert said[0].startswith(f"ruled: 3 evaluations made outside the study, best {best:.6g} (#")
    assert [line[:6] for line in said[1:]] == ["[1/2] ", "[2/2] "]
    mc.minimize(bowl, space, 3, optimizer="random", storage=journal, known=known, progress=Lines())
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("ruled: 3 evaluations made outside the study, resumed after 2 of 3 evaluations, best ")
    shown = CliRunner().invoke(app, ["show", str(journal), "--plot", str(tmp_path / "picture.svg")])
    assert shown.exit_code == 0, shown.output
    assert "3 done, 0 failed, 3 known, stopped: budget" in shown.output
    assert shown.output.count("  known  ") == 3
    assert open_archive(journal).n_evaluated == 3


def unit() -> mc.Space:
    space = mc.Space("unit")
    space.real("x", 0, 1)
    return space


@pytest.mark.parametrize("apart", [3e-10, 3e-9])
def test_known_evaluations_are_added_once_however_near_their_configurations_are(apart: float, tmp_path: Path) -> None:
    known = [({"x": 0.1234567891}, 1.0), ({"x": 0.1234567891 + apart}, 2.0), ({"x": 0.5}, -0.0)]
    seen = []
    for _ in range(3):
        with mc.Study(unit(), known=known, storage=tmp_path / "run.db") as study:
            seen.append([(t.config["x"], t.loss) for t in study.trials])
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0]) == 3
    one_by_one = mc.Study(unit())
    for config, loss in known:
        one_by_one.add(config, loss)
    assert [(t.config["x"], t.loss) for t in one_by_one.trials] == seen[0]


def test_digits_count_within_the_range_and_legality_is_kept_apart(tmp_path: Path) -> None:
    clock = mc.Space("clock")
    clock.real("t", 1.7e9, 1.7e9 + 100)
    study = mc.Study(clock)
    for k in range(9):
        study.add({"t": 1.7e9 + k}, float(k))
    assert [t.config["t"] - 1.7e9 for t in study.trials] == list(range(9))
    space = mc.Space("half")
    x = space.real("x", 0, 1e6)
    space.rule("half", x <= 5e5)
    with mc.Study(space, storage=tmp_path / "run.db") as study:
        study.add({"x": 500000.0004}, 1.0, illegal="learn")
        assert study.add({"x": 500000.0}, 2.0).config == {"x": 500000.0}
    with mc.Study(space, storage=tmp_path / "run.db") as study:
        assert [t.legal for t in study.trials] == [False, True]


def test_a_journal_that_is_moved_aside_is_read_first(tmp_path: Path) -> None:
    journal = tmp_path / "run.db"
    mc.minimize(lambda c: c["x"], unit(), 4, optimizer="random", storage=journal, progress=False)
    fresh = mc.Journal(journal, fresh=True)
    again: dict[str, Any] = {"known": journal, "storage": fresh, "progress": False}
    result = mc.minimize(lambda c: c["x"], unit(), 2, optimizer="random", **again)
    assert (result.n_known, result.n_done) == (4, 2)


def test_values_that_are_equal_and_of_another_type_are_other_configurations() -> None:
    space = mc.Space("types")
    space.categorical("k", [1, True, "1"])
    space.integer("a", 0, 2)
    assert len(mc.Study(space).ask(9)) == 9
    study = mc.Study(space, "random")
    for k, loss in ((1, 1.0), (True, 9.0), (1, 1.2), ("1", 4.0)):
        study.add({"k": k, "a": 0}, loss)
    assert study.result.config == {"k": 1, "a": 0}
    assert study.result.best is not None
    repeats = [study.repeat(study.trials[k]) for k in (0, 1)]
    assert [t.config["k"] is True for t in repeats] == [False, True]


def test_rounding_of_measurements_is_no_noise_and_a_rounded_default_is_known() -> None:
    space = mc.Space("line")
    space.integer("a", 0, 5)
    loss = lambda c: (c["a"] - 2) ** 2 / 3 + 0.123456789123456  # noqa: E731
    known = [({"a": a}, loss({"a": a})) for a in range(3)]
    rounded = [(config, float(f"{value:.15g}")) for config, value in known]
    assert mc.minimize(loss, space, 9, known=known + rounded, progress=False).n_done == 3
    one = unit()
    one.expect("x", default=0.25)
    assert mc.Study(one, known=[({"x": 0.25000000001}, 1.0)]).ask().origin != "default"


def test_low_fidelities_are_left_out_where_the_space_has_none(tmp_path: Path) -> None:
    space = unit()
    space.fidelity("epochs", 1, 9)
    done = mc.minimize(lambda c: c["x"] / c["epochs"], space, 3, storage=tmp_path / "run.db", progress=False)
    whole = [t for t in done.history if t.at_full_fidelity]
    assert len(whole) < len(done.history)
    with pytest.warns(UserWarning, match=r"at a low fidelity are left out, since space 'unit' has no 'epochs'"):
        pairs = mc.read_trials(tmp_path / "run.db", unit())
    assert [c["x"] for c, _ in pairs] == [t.config["x"] for t in whole]

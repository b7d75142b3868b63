"""Learned cuts: proposed from failures, accepted by the user, and gone on with, in one process and over a journal."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import mipcash as mc
from mipcash.errors import ConfigurationError, InfeasibleSpaceError, RuleError, RuleWarning, StorageError
from mipcash.space.compiled import declaration_of
from mipcash.space.cuts.accepting import broken_of
from mipcash.space.cuts.setting import ABOVE, ACTIVE, AT, BELOW, IS, Setting, forbidding, forbidding_text
from mipcash.study.cuts.columns import columns_of, listed_columns, short_between
from mipcash.study.cuts.proposing import proposed
from mipcash.study.cuts.search import Search
from mipcash.study.failures import RULED_OUT, kind_of_failure
from mipcash.study.records.fingerprint import listing
from mipcash.study.trial import Trial
from tests.named import OPTIMIZERS


def varied() -> mc.Space:
    """Parameters of every kind."""
    space = mc.Space("varied")
    kind = space.categorical("kind", ["a", "b", "c"])
    space.real("x", -1.0, 1.0)
    space.real("rate", 1e-3, 1.0, log=True, when=kind["b"])
    space.real("deep", 0.1, 1.0, when=[kind["b"], kind["b"]])
    space.integer("n", 1, 9)
    space.integer("wide", 1, 5000)
    space.ordinal("size", ["s", "m", "l"])
    space.ordinal("width", [8, 16, 32, 64])
    first = space.module("first", {"p": {"r": mc.Real(0.0, 1.0)}, "q": {}})
    second = space.module("second", ["u", "v"])
    space.ordering("order", [first, second])
    return space


def simple() -> mc.Space:
    space = mc.Space("simple")
    kind = space.categorical("kind", ["a", "b", "c"])
    space.real("x", 0.0, 1.0)
    n = space.integer("n", 1, 8)
    space.real("rate", 1e-3, 1.0, log=True, when=kind["c"])
    space.rule("few of a", n <= 8 - 4 * kind["a"])
    return space


def crashes(config: dict[str, Any]) -> bool:
    return config["kind"] == "b" and config["x"] > 0.4


def objective(config: dict[str, Any]) -> float:
    if crashes(config):
        raise mc.Failed("diverged")
    return (config["x"] - 0.5) ** 2 + 0.1 * (config["kind"] != "b") + 0.01 * config["n"]


def outcome(config: dict[str, Any]) -> Any:
    return mc.Failed("diverged") if crashes(config) else objective(config)


SETTINGS = [
    Setting("kind", IS, ("b",)),
    Setting("size", IS, ("m", "l")),
    Setting("x", ABOVE, -0.25),
    Setting("x", BELOW, 0.5),
    Setting("rate", BELOW, 0.4, True),
    Setting("rate", ABOVE, 0.4, True),
    Setting("deep", ACTIVE, None, True),
    Setting("deep", BELOW, 0.5, True),
    Setting("order", AT, ("second", 1)),
    Setting("first.p.r", BELOW, 0.5, True),
    Setting("wide", ABOVE, 700),
    Setting("width", ABOVE, 16),
    Setting("n", BELOW, 4),
]


def test_a_rule_against_settings_means_what_the_space_means() -> None:
    space = varied()
    configs = space.sample(80)
    rng = np.random.default_rng(0)
    chosen = [(s,) for s in SETTINGS]
    chosen += [tuple(SETTINGS[i] for i in rng.choice(len(SETTINGS), 2 + k % 2, replace=False)) for k in range(10)]
    for k, together in enumerate(chosen):
        under = [all(s.holds(c) for s in together) for c in configs]
        written = eval(forbidding_text(together), {"mc": mc, "space": space})
        space.accept(written if k % 2 else forbidding(together, space), name="cut")
        assert [broken_of(space, c) == ["cut"] for c in configs] == under, together
        assert [space.is_legal(c) for c in configs] == [not u for u in under], together
        space.withdraw("cut")
    assert all(space.is_legal(c) for c in configs)


@pytest.mark.parametrize(
    ("edge", "first", "short"), [(0.583, 0.623, 0.62), (0.623, 0.583, 0.59), (-1.0, 1.0, 0.5), (1e-5, 3e-5, 2.5e-5)]
)
def test_bounds_are_short_numbers_nearer_to_what_fails(edge: float, first: float, short: float) -> None:
    assert short_between(edge, first) == short


# -- what is proposed ------------------------------------------------------------------------------------------------


def told(space: mc.Space, n: int, fails: Any, seed: int = 0) -> list[Trial]:
    """Trials of random configurations."""
    study = mc.Study(space, "random", seed=seed)
    for _ in range(n):
        trial = study.ask()
        study.tell(trial, mc.Failed("crashed") if fails(trial.config) else 0.0)
    return list(study.trials)


@st.composite
def regions(draw: st.DrawFn) -> tuple[Setting, ...]:
    """One to three settings of different parameters."""
    values = {
        "kind": lambda: Setting("kind", IS, (draw(st.sampled_from("abc")),)),
        "size": lambda: Setting("size", IS, draw(st.sampled_from([("l",), ("m", "l"), ("s",), ("s", "m")]))),
        "x": lambda: Setting("x", draw(st.sampled_from([ABOVE, BELOW])), draw(st.floats(-0.6, 0.6))),
        "rate": lambda: Setting("rate", ACTIVE, None, True),
        "n": lambda: Setting("n", draw(st.sampled_from([ABOVE, BELOW])), draw(st.integers(3, 6))),
        "wide": lambda: Setting("wide", draw(st.sampled_from([ABOVE, BELOW])), draw(st.integers(1000, 4000))),
        "width": lambda: Setting("width", ABOVE, draw(st.sampled_from([8, 16, 32]))),
        "first": lambda: Setting("first", IS, (draw(st.sampled_from("pq")),)),
        "first.p.r": lambda: Setting("first.p.r", ABOVE, draw(st.floats(0.2, 0.6)), True),
        "order": lambda: Setting("order", AT, ("first", draw(st.sampled_from([1, 2])))),
    }
    labels = draw(st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=3, unique=True))
    return tuple(values[label]() for label in labels)


@functools.cache
def sampled(seed: int) -> list[dict[str, Any]]:
    return varied().sample(240, seed)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(region=regions(), seed=st.integers(0, 3))
def test_the_conjunction_that_crashes_is_recovered_and_no_success_is_forbidden(
    region: tuple[Setting, ...], seed: int
) -> None:
    space = varied()
    configs = sampled(seed)
    failed = np.array([all(s.holds(c) for s in region) for c in configs])
    assume(25 <= failed[:180].sum() <= 160)
    columns = columns_of(declaration_of(space))
    cuts = Search(columns, configs[:180], failed[:180]).cuts()
    assert cuts, region
    for cut in cuts:
        under = np.array([all(s.holds(c) for s in cut.settings) for c in configs[:180]])
        assert not (under & ~failed[:180]).any()
        assert set(cut.rows) <= set(np.flatnonzero(under))
        assert cut.chance <= 0.05
    # nearly all that failed is explained, and of what was not seen nearly nothing else is forbidden
    legal = np.array([not any(all(s.holds(c) for s in cut.settings) for cut in cuts) for c in configs])
    assert not (~legal & ~failed)[:180].any()
    assert (legal & failed)[:180].sum() <= 0.1 * failed[:180].sum()
    assert (~legal != failed)[180:].mean() <= 0.1
    assert len(cuts[0].settings) <= len(region)


def test_the_search_is_the_same_every_time_and_over_a_journal() -> None:
    space = varied()
    trials = told(space, 120, lambda c: c["kind"] == "b" and c["n"] > 4)
    first = proposed(columns_of(declaration_of(space)), trials)
    assert [r.what for r in first] == ["kind = 'b' and n > 4"]
    assert proposed(columns_of(declaration_of(space)), trials) == first
    listed = listed_columns(listing(space), [t.config for t in trials])
    assert [r.what for r in proposed(listed, trials)] == ["kind = 'b' and n > 4"]


def test_evidence_is_for_and_against_and_says_by_chance() -> None:
    space = simple()
    trials = told(space, 90, crashes)
    (rule,) = proposed(columns_of(declaration_of(space)), trials)
    evidence = rule.evidence
    assert set(evidence.failed) == {t.number for t in trials if t.failed}
    assert evidence.worked == ()
    assert evidence.kinds == {"Failed: crashed": len(evidence.failed)}
    assert evidence.evaluations == 90
    assert evidence.expected == pytest.approx(len(evidence.failed) ** 2 / 90)
    assert 0.0 < evidence.chance < 0.05
    text = str(rule)
    for part in (rule.what, f"{len(evidence.failed)} evaluations failed", "none worked", "by chance", rule.expression):
        assert part in text


def test_nothing_is_proposed_of_chance_alone() -> None:
    """Failures that have nothing to do with the configuration: at most one search in twenty may propose something."""
    space, rng = varied(), np.random.default_rng(1)
    columns, configs = columns_of(declaration_of(space)), space.sample(60, 0)
    wrong = sum(bool(Search(columns, configs, rng.random(60) < share).cuts()) for share in [0.3, 0.5, 0.8] * 8)
    assert wrong <= 2


def test_nothing_is_proposed_while_nothing_or_everything_works() -> None:
    space = simple()
    columns = columns_of(declaration_of(space))
    assert proposed(columns, told(space, 30, lambda c: True)) == []
    assert proposed(columns, told(space, 30, lambda c: False)) == []
    assert proposed(columns, []) == []


def test_what_worked_once_is_never_forbidden() -> None:
    """One configuration that worked at another attempt, amid a region that fails."""
    space = simple()
    study = mc.Study(space)
    for trial in told(space, 80, crashes):
        study.add(trial.config, trial.loss if trial.done else mc.Failed("crashed"))
    lucky = next(t.config for t in study.trials if t.failed and t.config["x"] > 0.7)
    study.add(lucky, 0.0)
    for rule in study.proposed_rules():
        assert not rule.forbids(lucky)


# -- accepting -------------------------------------------------------------------------------------------------------


def learned(storage: Path | None = None, budget: int = 60, optimizer: str = "random") -> tuple[mc.Space, mc.Study]:
    space = simple()
    study = mc.Study(space, optimizer, storage=storage, seed=1)
    for _ in range(budget):
        trial = study.ask()
        study.tell(trial, outcome(trial.config))
    return space, study


def test_an_accepted_rule_is_a_rule_of_the_space_and_of_the_study_that_is_open() -> None:
    space, study = learned()
    (rule,) = study.proposed_rules()
    accepted = space.accept(rule)
    assert accepted.name == rule.name
    assert rule.name in space.rules
    for config in space.sample(60):
        assert not rule.forbids(config)
    for _ in range(25):
        trial = study.ask()
        assert not rule.forbids(trial.config)
        study.tell(trial, outcome(trial.config))
    assert study.result.n_failed == len(rule.evidence.failed)
    assert [t.number for t in study.trials if not t.legal] == list(rule.evidence.failed)
    assert study.proposed_rules() == []


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_goes_on_under_an_accepted_rule(optimizer: str) -> None:
    space = simple()
    study = mc.Study(space, optimizer, seed=2)
    for trial in told(space, 30, crashes):
        study.add(trial.config, mc.Failed("diverged") if trial.failed else objective(trial.config))
    for _ in range(2):
        trial = study.ask()
        study.tell(trial, outcome(trial.config))
    rule = study.proposed_rules(level=1.0)[0]
    space.accept(rule)
    for _ in range(2):
        trial = study.ask()
        assert not rule.forbids(trial.config)
        assert space.is_legal(trial.config)
        study.tell(trial, outcome(trial.config))


def test_a_rule_that_would_forbid_what_works_is_refused_with_its_number() -> None:
    space, study = learned()
    (rule,) = study.proposed_rules()
    works = next(t for t in study.trials if t.done and t.config["kind"] == "b")
    wider = forbidding((Setting("kind", IS, ("b",)),), space)
    stale = type(rule)((Setting("kind", IS, ("b",)),), rule.evidence, rule.works)
    with pytest.raises(RuleError, match=rf"forbids the configuration of trial {works.number}, which works"):
        space.accept(stale)
    assert stale.name not in space.rules
    space.accept(wider, name="wider")  # by hand nothing is known of trials, but the study knows them
    with pytest.raises(RuleError, match=rf"'wider' was accepted and forbids the configuration of trial {works.number}"):
        study.ask()
    space.withdraw("wider")
    assert study.ask().pending


def test_a_rule_that_leaves_nothing_is_refused_with_the_explanation() -> None:
    space = simple()
    with pytest.raises(InfeasibleSpaceError, match=r"'hot' is not accepted: with it space 'simple' is empty: rule"):
        space.accept(space["x"] >= 2.0, name="hot")
    assert "hot" not in space.rules
    assert space.sample(1)
    with pytest.raises(RuleError, match="needs a name"):
        space.accept(space["x"] <= 0.5)
    with pytest.raises(RuleError, match="no accepted rule 'few of a' to withdraw; none was"):
        space.withdraw("few of a")


def test_a_success_that_comes_after_the_rule_stops_the_study_and_the_rule_can_be_taken_back() -> None:
    space, study = learned()
    runs = study.enqueue({"kind": "b", "x": 0.9123, "n": 2})
    assert study.ask().number == runs.number
    (rule,) = study.proposed_rules()
    space.accept(rule)
    study.tell(runs, 0.0)
    with pytest.raises(RuleError, match=rf"forbids the configuration of trial {runs.number}, which works"):
        study.ask()
    space.withdraw(rule.name)
    study.ask()
    assert study.result.best is not None
    assert study.result.best.number == runs.number


def test_what_waits_under_an_accepted_rule_is_not_evaluated() -> None:
    space, study = learned()
    waits = study.enqueue({"kind": "b", "x": 0.9123, "n": 2})
    (rule,) = study.proposed_rules()
    space.accept(rule)
    assert study.ask().number != waits.number
    ruled_out = study.trials[waits.number]
    assert kind_of_failure(ruled_out.message) == RULED_OUT
    assert rule.name in ruled_out.message


def test_what_is_known_and_failed_under_an_accepted_rule_is_given_again(tmp_path: Path) -> None:
    """The same lines, run again with the rule accepted: nothing is refused and nothing is there twice."""
    known = [(t.config, t.loss if t.done else mc.Failed("crashed")) for t in told(simple(), 40, crashes)]

    def study(space: mc.Space) -> mc.Study:
        opened = mc.Study(space, "random", storage=tmp_path / "run.db", seed=1)
        opened.add_missing(known)
        return opened

    with study(simple()) as first:
        rule = first.proposed_rules(level=1.0)[0]
    space = simple()
    space.accept(rule)
    with study(space) as again:
        assert len(again.trials) == 40
        assert {t.number for t in again.trials if not t.legal} >= set(rule.evidence.failed)
        failed = again.add({"kind": "b", "x": 0.99, "n": 3}, mc.Failed("crashed"))
        assert failed.origin == "known"
        assert not failed.legal
        with pytest.raises(ConfigurationError, match="is illegal"):
            again.add({"kind": "b", "x": 0.98, "n": 3}, 0.5)


def test_other_outputs_do_not_speak_for_a_loss_that_failed() -> None:
    space = simple()
    study = mc.Study(space, "random", costs={"loss": 60.0, "latency_ms": 1.0}, limits={"latency_ms": 1e3})
    for trial in told(space, 70, crashes):
        study.add(trial.config, {"latency_ms": 1.0})
        study.add(trial.config, {"loss": trial.loss if trial.done else mc.Failed("crashed")})
    assert [r.what.split(" > ")[0] for r in study.proposed_rules()] == ["kind = 'b' and x"]


def test_an_order_that_is_not_that_of_its_numbers_is_cut_by_its_values() -> None:
    space = mc.Space("odd")
    space.ordinal("odd", [5, 1, 9, 3])
    space.real("x", 0.0, 1.0)
    trials = told(space, 80, lambda c: c["odd"] in (9, 3))
    (rule,) = proposed(columns_of(declaration_of(space)), trials)
    assert rule.settings == (Setting("odd", IS, (9, 3)),)
    space.accept(rule)
    assert {c["odd"] for c in space.sample(20)} == {5, 1}


# -- over a journal --------------------------------------------------------------------------------------------------


def test_a_journal_goes_on_with_a_rule_that_was_accepted(tmp_path: Path) -> None:
    """Ask, crash, propose, accept, close, and open again: the proposals are those of a study that was never closed."""
    unbroken_space, unbroken = learned(tmp_path / "unbroken.db", 20, "hybrid")
    _, broken = learned(tmp_path / "broken.db", 20, "hybrid")
    rules = broken.proposed_rules(level=1.0)
    line = rules[0].accepting
    unbroken_space.accept(unbroken.proposed_rules(level=1.0)[0])
    broken.close()
    space = simple()
    eval(line, {"mc": mc, "space": space})  # the line that the user adds to the script
    for _ in range(3):
        with mc.Study(space, storage=tmp_path / "broken.db", seed=1) as study:
            for _ in range(2):
                mine, other = study.ask(), unbroken.ask()
                assert mine.config == other.config
                assert not rules[0].forbids(mine.config)
                study.tell(mine, outcome(mine.config))
                unbroken.tell(other, outcome(other.config))
    with (
        pytest.warns(RuleWarning, match="which space 'simple' lacks"),
        mc.Study(simple(), storage=tmp_path / "broken.db", seed=1),
    ):
        pass


def test_a_journal_refuses_a_rule_that_was_not_accepted_and_one_that_forbids_what_works(tmp_path: Path) -> None:
    learned(tmp_path / "run.db", 20)[1].close()
    space = simple()
    space.rule("new", space["x"] <= 0.9)
    with pytest.raises(StorageError, match="rule 'new' is new"):
        mc.Study(space, "random", storage=tmp_path / "run.db", seed=1)
    space = simple()
    space.accept(space["x"] <= 0.1, name="cold")
    with pytest.raises(RuleError, match=r"'cold' was accepted and forbids the configuration of trial \d+, which works"):
        mc.Study(space, "random", storage=tmp_path / "run.db", seed=1)
    mc.Study(simple(), "random", storage=tmp_path / "run.db", seed=1).close()


KILLED = """
import os, sys
import mipcash as mc
sys.path.insert(0, {folder!r})
from test_cuts import outcome, simple
space = simple()
if {accept!r}:
    eval({accept!r}, {{"mc": mc, "space": space}})
study = mc.Study(space, storage={path!r}, seed=1)
for k in range({n}):
    trial = study.ask()
    if k == {n} - 1:
        os.kill(os.getpid(), 9)
    study.tell(trial, outcome(trial.config))
"""


def test_killed_before_and_after_the_rule_nothing_is_lost(tmp_path: Path) -> None:
    path, folder = tmp_path / "run.db", str(Path(__file__).parent)

    def killed(n: int, accept: str) -> None:
        code = KILLED.format(folder=folder, accept=accept, path=str(path), n=n)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == -9, done.stderr

    killed(25, "")
    space = simple()
    with mc.Study(space, storage=path, seed=1) as study:
        rule = study.proposed_rules(level=1.0)[0]
        before = [t.config for t in study.trials]
    killed(6, rule.accepting)
    eval(rule.accepting, {"mc": mc, "space": space})
    with mc.Study(space, storage=path, seed=1) as study:
        assert [t.config for t in study.trials][: len(before)] == before
        assert len(study.trials) >= len(before) + 4
        for trial in study.trials[len(before) :]:
            assert not rule.forbids(trial.config)
        assert study.ask().config not in before

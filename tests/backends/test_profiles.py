"""Tests of solver profiles: bundled, by path and faulty profiles, options, installation and licence sizes."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from mipcash.backends.profiles import option_value, parse_profile
from mipcash.backends.pyomo import backend as pyomo_solver
from mipcash.backends.registry import find_profile, make_backend, solver_info, solver_names, solvers, split_options
from mipcash.backends.task import SolverSettings, Task
from mipcash.errors import SolverError
from mipcash.space.compiled import compiled
from tests.backends.tasks import bits, layers, random_form

PROFILE = """
name = "mine"
module = "highspy"
package = "highspy"
install = "pip install highspy"
licence = "MIT"

[pyomo]
factory = "highs"
accepts = ["linear"]

[options]
time_limit = "time_limit"
threads = "threads"
gap = "mip_rel_gap"
seed = "random_seed"
"""


def test_the_bundled_profiles_say_how_to_install_and_name_extras_that_exist() -> None:
    assert solver_names()[0] == "auto"
    assert {"highs", "gurobi", "cplex", "scip", "toulbar2", "auto", "enumeration"} <= set(solver_names())
    for info in solvers():
        assert info.install
        assert info.licence
        assert bool(info.version) == info.installed
    root = Path(__file__).parents[2] / "pyproject.toml"
    if not root.is_file():
        return  # installed without a checkout
    extras = tomllib.loads(root.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for file in resources.files("mipcash.solvers").iterdir():
        if file.name.endswith(".toml"):
            profile = find_profile(file.name.removesuffix(".toml"))
            if "mipcash[" in profile.install:
                extra = profile.install.split("mipcash[")[1].split("]")[0]
                assert any(profile.package in needed for needed in extras[extra])


def test_a_profile_by_path(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(PROFILE, encoding="utf-8")
    backend = make_backend(str(file))
    assert backend.name == "mine"
    assert solver_info(str(file)).installed
    expected = make_backend("highs").solve(task := random_task(), SolverSettings())
    for _ in range(2):
        answer = backend.solve(task, SolverSettings())
        assert (answer.status, answer.value) == ("optimal", pytest.approx(expected.value, abs=1e-6))
    assert layers().optimum(0, solver=str(file)).solver == "mine"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("name =", "nmae ="), "'nmae' is no key of a profile; did you mean 'name'"),
        (('licence = "MIT"', ""), "'licence' is missing"),
        (('licence = "MIT"', "licence = 3"), "'licence' must be a string"),
        (('name = "mine"', 'name = ""'), "'name' is empty"),
        (("[options]", "[optoins]"), "did you mean 'options'"),
        (('["linear"]', '["linaer"]'), "holds 'linaer'; choose from"),
        (('["linear"]', '["quadratic rows"]'), "must hold 'linear'"),
        (('accepts = ["linear"]', 'accepts = ["linear"]\nform = "quadratic"'), "add 'quadratic objective'"),
        (('factory = "highs"', 'factory = "highs"\ninterface = "old"'), "is 'old'; choose one of 'contrib', 'legacy'"),
        (("[options]", "[size]\nvariables = 0\n[options]"), "must be a positive whole number, got 0"),
        (("[pyomo]", 'backend = "a:B"\n[pyomo]'), "and has both"),
        (('[pyomo]\nfactory = "highs"\naccepts = ["linear"]\n', ""), "and has neither"),
        (("[pyomo]", "[pyomo"), "is not valid TOML"),
        (
            ("[options]", "[unlimited]\nnodes = 1\n[options]"),
            "'[unlimited] nodes' is no key of a profile; there are node_limit",
        ),
        (
            ("[options]", "[fixed]\na = [1]\n[options]"),
            "'[fixed] a' must be a string, a number, true or false, got [1]",
        ),
        (('[pyomo]\nfactory = "highs"\naccepts = ["linear"]\n', "pyomo = 3\n"), "'pyomo' must be a table, got 3"),
    ],
)
def test_faulty_profiles_are_refused(change: tuple[str, str], said: str) -> None:
    with pytest.raises(SolverError) as refused:
        parse_profile(PROFILE.replace(*change), "here.toml")
    assert said in str(refused.value)
    assert "'here.toml'" in str(refused.value)


def test_missing_solvers_and_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"did you mean 'gurobi'"):
        make_backend("gurobbi")
    with pytest.raises(SolverError, match=r"nowhere\.toml.*cannot be read.*check the path"):
        make_backend(str(tmp_path / "nowhere.toml"))
    for old, new, said in (
        ('module = "highspy"', 'module = "no_such_solver"', "'mine' is not installed; pip install highspy"),
        ('factory = "highs"', 'factory = "no_such_factory"', "has no contrib interface 'no_such_factory'"),
        (
            'factory = "highs"',
            'factory = "no_such_factory"\ninterface = "legacy"',
            "has no legacy interface 'no_such_factory'",
        ),
    ):
        file = tmp_path / "other.toml"
        file.write_text(PROFILE.replace(old, new), encoding="utf-8")
        with pytest.raises(SolverError, match=said):
            make_backend(str(file)).solve(random_task(), SolverSettings())
    own = PROFILE.split("[pyomo]")[0] + 'backend = "mipcash.backends.highs:NoBackend"\n'
    file.write_text(own, encoding="utf-8")
    with pytest.raises(SolverError, match=r"'mipcash\.backends.highs:NoBackend' cannot be imported"):
        make_backend(str(file))


# -- options --------------------------------------------------------------------------------------------------------


def random_task(n: int | None = None, coupling: float = 0.6) -> Task:
    """Random task over n bits, or over ``layers`` with its rules."""
    program = compiled(bits(n) if n else layers()).program
    return Task(program, random_form(program, np.random.default_rng(0), coupling))


@pytest.mark.parametrize(("name", "good", "bad"), [
    ("highs", {"presolve": "off"}, {"presolv": "off"}),
    ("gurobi", {"MIPFocus": "2"}, {"MIPFocsu": "2"}),
    ("cplex", {"emphasis_mip": "1"}, {"emphasis_pim": "1"}),
    ("scip", {"presolving/maxrounds": "0"}, {"presolving/maxruonds": "0"}),
    ("toulbar2", {"vac": "1"}, {"vca": "1"}),
])  # fmt: skip
def test_options_reach_the_solver(name: str, good: dict[str, str], bad: dict[str, str]) -> None:
    if not solver_info(name).installed:
        pytest.skip(f"{name} is not installed")
    assert make_backend(name, good).solve(random_task(), SolverSettings()).status == "optimal"
    with pytest.raises(SolverError, match="rejects option presolv='off'" if name == "highs" else name):
        make_backend(name, bad).solve(random_task(), SolverSettings())


def test_options_may_follow_the_name(tmp_path: Path) -> None:
    assert [option_value(t) for t in ("true", "3", "0.5", "off")] == [True, 3, 0.5, "off"]
    assert split_options("gurobi MIPFocus=1 Cuts=2") == ("gurobi", {"MIPFocus": "1", "Cuts": "2"})
    assert split_options("my folder/solver.toml") == ("my folder/solver.toml", {})
    with pytest.raises(SolverError, match="not an option"):
        split_options("gurobi MIPFocus=1 fast")
    with pytest.raises(SolverError, match=r"contains no name of a solver; there are auto, .*highs"):
        split_options(" ")
    with pytest.raises(SolverError, match="nonsense"):
        layers().optimum(1, solver="highs nonsense=3")
    with pytest.raises(SolverError, match="'auto' takes no options"):
        make_backend("auto", {"presolve": "off"})
    file = tmp_path / "my.toml"
    file.write_text(PROFILE, encoding="utf-8")
    with pytest.raises(SolverError, match="'mine' does not take the objective form 'quadratic'; it takes 'linear'"):
        make_backend(str(file), {"form": "quadratic"})


# -- licences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gurobi", "cplex"])
def test_a_program_beyond_the_licence_size_is_refused(name: str) -> None:
    if not solver_info(name).installed:
        pytest.skip(f"{name} is not installed")
    backend = make_backend(name)
    assert isinstance(backend, pyomo_solver.PyomoBackend)
    if backend._has_full_licence():
        pytest.skip(f"{name} has a full licence here")
    with pytest.raises(SolverError) as refused:
        backend.solve(random_task(510, 0.004), SolverSettings(time_limit=1.0))
    words = str(refused.value)
    assert f"free licence of solver '{name}' ends at" in words
    assert "the program has" in words
    assert "solver='highs'" in words
    assert not backend._instances, "the solver saw the program"


def test_a_program_that_fits_the_licence_only_as_a_quadratic_is_solved() -> None:
    if not solver_info("gurobi").installed:
        pytest.skip("gurobi is not installed")
    task = random_task(60, 1.0)
    assert len(task.program.couplings(task.form)) * 4 + task.program.n > 2000
    assert make_backend("gurobi").solve(task, SolverSettings(node_limit=1)).columns is not None


def test_a_full_licence_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    # HiGHS needs no licence, so the probe with one variable more than the size succeeds
    file.write_text(PROFILE + "\n[size]\nvariables = 5\nrows = 3\n", encoding="utf-8")
    assert make_backend(str(file)).solve(random_task(), SolverSettings()).status == "optimal"

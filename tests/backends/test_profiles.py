"""Profiles: the bundled ones, by path, faulty ones; options; installation and licence sizes."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from mipcash.backends.profiles import SizeLimits, option_value, parse_profile
from mipcash.backends.pyomo import backend as pyomo_solver
from mipcash.backends.registry import find_profile, make_backend, solver_info, solver_names, solvers
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


def test_the_bundled_profiles() -> None:
    assert solver_names()[0] == "auto"
    assert {"highs", "gurobi", "cplex", "scip", "toulbar2", "auto", "enumeration"} <= set(solver_names())
    for info in solvers():
        assert info.install
        assert info.licence
        assert bool(info.version) == info.installed


def test_the_bundled_profiles_name_extras_that_exist() -> None:
    root = Path(__file__).parents[2] / "pyproject.toml"
    if not root.is_file():
        pytest.skip("not in a checkout")
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
    program = compiled(layers()).program
    form = random_form(program, np.random.default_rng(0))
    expected = make_backend("highs").solve(Task(program, form), SolverSettings())
    for _ in range(2):
        answer = backend.solve(Task(program, form), SolverSettings())
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
        (("threads =", "treads ="), "'[options] treads' is no key of a profile; did you mean 'threads'"),
        (('["linear"]', '["linaer"]'), "holds 'linaer'; choose from"),
        (('["linear"]', '["quadratic rows"]'), "must hold 'linear'"),
        (('accepts = ["linear"]', 'accepts = ["linear"]\nform = "quadratic"'), "add 'quadratic objective'"),
        (('factory = "highs"', 'factory = "highs"\ninterface = "old"'), "is 'old'; choose one of 'contrib', 'legacy'"),
        (("[options]", "[size]\nvariables = 0\n[options]"), "must be a positive whole number, got 0"),
        (("[pyomo]", 'backend = "a:B"\n[pyomo]'), "and has both"),
        (('[pyomo]\nfactory = "highs"\naccepts = ["linear"]\n', ""), "and has neither"),
        (("[pyomo]", "[pyomo"), "is not valid TOML"),
        (
            ("[options]", "[size]\nvaribles = 1\n[options]"),
            "'[size] varibles' is no key of a profile; did you mean 'variables'",
        ),
        (
            ("[options]", "[unlimited]\nnodes = 1\n[options]"),
            "'[unlimited] nodes' is no key of a profile; there are node_limit",
        ),
        (
            ("[options]", "[fixed]\na = [1]\n[options]"),
            "'[fixed] a' must be a string, a number, true or false, got [1]",
        ),
        (("[options]", "fixed = 3\n[options]"), "'[pyomo] fixed' is no key of a profile"),
        (('[pyomo]\nfactory = "highs"\naccepts = ["linear"]\n', "pyomo = 3\n"), "'pyomo' must be a table, got 3"),
        (('factory = "highs"\n', ""), "'[pyomo] factory' is missing; add it"),
    ],
)
def test_faulty_profiles_are_refused(change: tuple[str, str], said: str) -> None:
    with pytest.raises(SolverError) as refused:
        parse_profile(PROFILE.replace(*change), "here.toml")
    assert said in str(refused.value)
    assert "'here.toml'" in str(refused.value)


def test_what_cannot_be_found(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"did you mean 'gurobi'"):
        make_backend("gurobbi")
    with pytest.raises(SolverError, match=r"nowhere\.toml.*cannot be read.*check the path"):
        make_backend(str(tmp_path / "nowhere.toml"))
    program = compiled(layers()).program
    task = Task(program, random_form(program, np.random.default_rng(0)))
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
            make_backend(str(file)).solve(task, SolverSettings())
    own = PROFILE.split("[pyomo]")[0] + 'backend = "mipcash.backends.highs:NoBackend"\n'
    file.write_text(own, encoding="utf-8")
    with pytest.raises(SolverError, match=r"'mipcash\.backends.highs:NoBackend' cannot be imported"):
        make_backend(str(file))


# -- options --------------------------------------------------------------------------------------------------------


def test_options_reach_the_solver() -> None:
    assert [option_value(t) for t in ("true", "3", "0.5", "off")] == [True, 3, 0.5, "off"]
    program = compiled(layers()).program
    task = Task(program, random_form(program, np.random.default_rng(0)))
    assert make_backend("highs", {"presolve": "off"}).solve(task, SolverSettings()).status == "optimal"
    with pytest.raises(SolverError, match="rejects option presolv='off'"):
        make_backend("highs", {"presolv": "off"})
    with pytest.raises(SolverError, match="'auto' takes no options"):
        make_backend("auto", {"presolve": "off"})


@pytest.mark.parametrize(("name", "good", "bad"), [
    ("gurobi", {"MIPFocus": "2"}, {"MIPFocsu": "2"}),
    ("cplex", {"emphasis_mip": "1"}, {"emphasis_pim": "1"}),
    ("scip", {"presolving/maxrounds": "0"}, {"presolving/maxruonds": "0"}),
    ("toulbar2", {"vac": "1"}, {"vca": "1"}),
])  # fmt: skip
def test_options_of_the_others(name: str, good: dict[str, str], bad: dict[str, str]) -> None:
    if not solver_info(name).installed:
        pytest.skip(f"{name} is not installed")
    program = compiled(layers()).program
    task = Task(program, random_form(program, np.random.default_rng(0)))
    assert make_backend(name, good).solve(task, SolverSettings()).status == "optimal"
    with pytest.raises(SolverError, match=name):
        make_backend(name, bad).solve(task, SolverSettings())


def test_a_form_that_a_solver_does_not_take(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(PROFILE, encoding="utf-8")
    with pytest.raises(SolverError, match="'mine' does not take the objective form 'quadratic'; it takes 'linear'"):
        make_backend(str(file), {"form": "quadratic"})


# -- licences -------------------------------------------------------------------------------------------------------


def test_size_limits_in_words() -> None:
    size = SizeLimits(10, 20, 5)
    assert size.exceeded(10, 20, False) == ""
    assert size.exceeded(11, 1, False) == "10 variables (the program has 11)"
    assert size.exceeded(1, 21, False) == "20 rows (the program has 21)"
    assert "5 variables with quadratic terms" in size.exceeded(6, 1, True)


@pytest.mark.parametrize("name", ["gurobi", "cplex"])
def test_over_the_size_of_a_licence(name: str) -> None:
    if not solver_info(name).installed:
        pytest.skip(f"{name} is not installed")
    backend = make_backend(name)
    assert isinstance(backend, pyomo_solver.PyomoBackend)
    if backend._has_full_licence():
        pytest.skip(f"{name} has a full licence here")
    program = compiled(bits(600)).program
    rng = np.random.default_rng(0)
    form = random_form(program, rng, 0.005)
    with pytest.raises(SolverError) as refused:
        backend.solve(Task(program, form), SolverSettings(time_limit=1.0))
    words = str(refused.value)
    assert f"free licence of solver '{name}' ends at" in words
    assert "the program has" in words
    assert "solver='highs'" in words
    assert not backend._instances, "the solver saw the program"


def test_what_only_fits_as_a_quadratic_goes_there() -> None:
    if not solver_info("gurobi").installed:
        pytest.skip("gurobi is not installed")
    backend = make_backend("gurobi")
    program = compiled(bits(60)).program
    form = random_form(program, np.random.default_rng(0), 1.0)
    assert len(program.couplings(form)) * 4 + program.n > 2000
    answer = backend.solve(Task(program, form), SolverSettings(node_limit=1))
    assert answer.columns is not None


def test_a_full_licence_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    # this solver has no licence at all, so that the probe one variable above the limit succeeds
    file.write_text(PROFILE + "\n[size]\nvariables = 5\nrows = 3\n", encoding="utf-8")
    program = compiled(layers()).program
    task = Task(program, random_form(program, np.random.default_rng(0)))
    assert make_backend(str(file)).solve(task, SolverSettings()).status == "optimal"

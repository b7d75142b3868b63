"""``param_distributions`` of scikit-learn's searches as a declaration.

    list of numbers                    integer, if they are whole and evenly spaced; else an ordinal, in increasing order.
    any other list                     categorical: texts, None, bools, tuples, functions, estimators as they are.
    scipy.stats.uniform                real.
    scipy.stats.loguniform             real on the log scale (also under its other name, reciprocal).
    scipy.stats.randint                integer.
    mc.Real, mc.Integer ...            as they are.
    several dicts                      blocks, of which one is active.

Several dicts are distinguished by one parameter if there is one that all list with different values (``kernel``, or a step of a
pipeline), and if other shared parameters have the same values. It becomes a choice of all values, and parameters of some dicts only
are active under the values of these dicts. Otherwise the dicts are the algorithms "1", "2" ... of a module ``grid``, and C of the
first is ``grid.1.C``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from numbers import Integral
from typing import Any

from mipcash.errors import SpaceError, warn
from mipcash.integrations.spaces.shared import list_domain
from mipcash.modelling.declaration import Declaration
from mipcash.modelling.domains import Categorical, Integer, Ordinal, Real, Value, is_bool, is_number, same_value

Domain = Real | Integer | Ordinal | Categorical
Block = Mapping[str, Domain]

GRID = "grid"
"""Name of the module whose algorithms are dicts that no parameter distinguishes."""


def declare_param_distributions(declaration: Declaration, given: Any) -> None:
    """Declare the space that ``RandomizedSearchCV`` or ``GridSearchCV`` would search.

    Args:
        given: name -> list, distribution or domain; or a list of such dicts.

    Raises:
        SpaceError: neither of them, a distribution without bounds or of another kind, an empty list; the message names it.
    """
    dicts = [given] if isinstance(given, Mapping) else given
    if not isinstance(dicts, (list, tuple)) or not dicts or not all(isinstance(d, Mapping) for d in dicts):
        raise SpaceError(
            "from_sklearn takes a dict, name of a parameter -> list of values or distribution, or a list of such dicts; "
            f"got {given!r}"
        )
    blocks = [{name: domain_of(name, values) for name, values in d.items()} for d in dicts]
    if len(blocks) == 1:
        for name, domain in blocks[0].items():
            declaration.declare(name, domain, None)
    elif (switch := _switch(blocks)) is not None:
        _declare_switched(declaration, blocks, switch)
    else:
        declaration.module(_free(GRID, blocks), {str(k): block for k, block in enumerate(blocks, 1)})


def domain_of(name: str, values: Any) -> Domain:
    """Return the domain of a list of values or a distribution.

    Raises:
        SpaceError: see ``declare_param_distributions``.
    """
    if not isinstance(name, str) or not name:
        raise SpaceError(f"a parameter's name is a text such as 'svc__C', got {name!r}")
    if isinstance(values, (Real, Integer, Ordinal, Categorical)):
        return values
    if hasattr(values, "rvs"):
        return _distribution(name, values)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable) or isinstance(values, Mapping):
        raise SpaceError(
            f"parameter {name!r}: expected a list of values, a distribution such as scipy.stats.loguniform(1e-3, 1), or mc.Real, "
            f"mc.Integer ...; got {values!r}; one value alone is a list of one, [{values!r}]"
        )
    if isinstance(values, tuple) and (ends := _range(values)) is not None:
        log = ", log=True" if values[2:] == ("log-uniform",) else ""
        warn(
            f"parameter {name!r}: the tuple {values!r} is a list of its {len(values)} values; for the range between the numbers "
            f"give mc.{'Integer' if all(isinstance(v, Integral) for v in ends) else 'Real'}({ends[0]}, {ends[1]}{log}), for the "
            "values a list"
        )
    return _listed(name, values)


def _range(values: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """Return the ends of a tuple that other libraries take as a range: (low, high) or (low, high, "log-uniform"); else None."""
    pair = values[:2]
    if len(values) not in (2, 3) or not all(map(is_number, pair)) or not pair[0] < pair[1]:
        return None
    return (pair[0], pair[1]) if values[2:] in ((), ("uniform",), ("log-uniform",)) else None


def _listed(name: str, values: Iterable[Value]) -> Domain:
    if isinstance(values, (set, frozenset)):
        return list_domain(name, values)  # type: ignore[arg-type]  # refused, with the remedy
    listed: list[Value] = []
    for value in (v.item() if type(v).__module__ == "numpy" and getattr(v, "ndim", 1) == 0 else v for v in values):
        equal = [known for known in listed if value is known or same_value(value, known)]
        if equal and is_number(value) and type(equal[0]) is not type(value):
            raise SpaceError(
                f"parameter {name!r} lists {equal[0]!r} and {value!r}, which scikit-learn may tell apart and a space does not; "
                "leave one out, or replace it by a value with the same meaning, such as None or 0.999 for max_features=1.0"
            )
        if not equal:
            listed.append(value)
    if not listed or len(listed) == 1 or not all(map(is_number, listed)):
        return list_domain(name, listed)
    rising = sorted(listed)
    steps = {b - a for a, b in pairwise(rising)}
    if len(steps) == 1 and all(isinstance(v, int) and not is_bool(v) for v in rising):
        return Integer(rising[0], rising[-1], steps.pop())
    return list_domain(name, rising, ordered=True)


def _distribution(name: str, given: Any) -> Domain:
    """Return the domain of a frozen distribution of SciPy."""
    kind = str(getattr(getattr(given, "dist", None), "name", "") or type(given).__name__)
    low, high = map(float, given.support()) if hasattr(given, "support") else (-math.inf, math.inf)
    cure = "give scipy.stats.uniform, loguniform or randint, a list of values, or mc.Real(low, high)"
    if kind in ("uniform", "loguniform", "reciprocal", "randint") and not low < high and math.isfinite(low):
        return list_domain(name, [int(low) if kind == "randint" else low])
    if kind == "uniform":
        return Real(low, high)
    if kind in ("loguniform", "reciprocal"):
        if low <= 0.0 or not math.isclose(float(given.median()), math.sqrt(low * high), rel_tol=1e-6):
            raise SpaceError(
                f"parameter {name!r}: a loguniform with loc other than 0 is not uniform on the log scale; {cure}, log=True with it"
            )
        return Real(low, high, log=True)
    if kind == "randint":
        return Integer(int(low), int(high))
    bounded = math.isfinite(low) and math.isfinite(high)
    why = "is of a kind that is not known here" if bounded else "has no bounds, and a space needs them"
    raise SpaceError(f"parameter {name!r}: the distribution {kind!r} {why}; {cure}")


# -- several dicts --------------------------------------------------------------------------------------------------


def _switch(blocks: Sequence[Block]) -> str | None:
    """Return the parameter that distinguishes blocks, or None if there is none."""
    shared = [name for name in blocks[0] if all(name in block for block in blocks)]
    for name in shared:
        listed = [block[name] for block in blocks]
        if not all(isinstance(d, Categorical) for d in listed):
            continue
        apart = all(a.level(v) is None for a, b in combinations(listed, 2) for v in b.values)
        if apart and _agree([{n: d for n, d in block.items() if n != name} for block in blocks]):
            return name
    return None


def _agree(blocks: Sequence[Block]) -> bool:
    """Return True if parameters of one name have one domain."""
    return all(_same(a[name], b[name]) for a, b in combinations(blocks, 2) for name in a if name in b)


def _same(a: Domain, b: Domain) -> bool:
    try:
        return bool(a == b)
    except ValueError:  # arrays do not say whether they are equal
        return False


def _declare_switched(declaration: Declaration, blocks: Sequence[Block], switch: str) -> None:
    values: list[Sequence[Value]] = [block[switch].values for block in blocks]
    choice = declaration.add(switch, Categorical, ([v for listed in values for v in listed],))
    for name in dict.fromkeys(n for block in blocks for n in block if n != switch):
        there = [k for k, block in enumerate(blocks) if name in block]
        when = None if len(there) == len(blocks) else choice.is_(*(v for k in there for v in values[k]))
        declaration.declare(name, blocks[there[0]][name], when)


def _free(name: str, blocks: Sequence[Block]) -> str:
    taken = {n for block in blocks for n in block}
    while name in taken:
        name += "_"
    return name

"""The whole page: one self-contained HTML document.

Its Content-Security-Policy allows only the page's own script, named by its hash, and loads nothing. Code injected through a name or
message is shown as text, and could not run even if it were not.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from functools import lru_cache
from importlib import resources

import numpy as np

from mipcash.errors import InfeasibleSpaceError, MipcashError
from mipcash.report.data.effects import effects
from mipcash.report.data.run import Run
from mipcash.report.page import parts, sections
from mipcash.report.page.svg import escaped

FAILURES = (MipcashError, np.linalg.LinAlgError)
"""Exceptions that end one part of a page only."""


def page(run: Run, *, live: str = "") -> str:
    """Return the report of a run as HTML.

    Args:
        live: version of the page, if it asks ``mipcash dash`` for updates; empty: it does not.
    """
    style, script = _file("page.css"), _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src {chr(39)}{'self' if live else 'none'}{chr(39)}; base-uri 'none'; form-action 'none'"
    )
    attributes = f' data-live="{escaped(live)}"' if live else ""
    return (
        f'<!doctype html>\n<html lang="en"{attributes}>\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f'<link rel="icon" href="data:,">\n<title>{escaped(run.title, 80)} · mipcash</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n{content(run, live=bool(live))}\n"
        f'<div id="tip" role="status" hidden></div>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def content(run: Run, *, live: bool = False) -> str:
    """Return the part of the page that changes during a run."""
    return f"<main>{_header(run, live)}{_banner(run)}{''.join(_cards(run))}{_footer(run)}</main>"


def _cards(run: Run) -> list[str]:
    try:
        found = effects(run) if run.place is not None and run.place.extents else None
    except InfeasibleSpaceError as error:
        return [parts.card("The space is empty", parts.missing(str(error), ""))]
    except FAILURES as error:
        found = None
        failed = [parts.card("What matters", parts.missing("It could not be computed:", str(error)))]
    else:
        failed = []
    made: list[tuple[str, Callable[[], str]]] = [
        ("Summary", lambda: sections.tiles(run)),
        ("Pareto front", lambda: sections.front_card(run)),
        ("Convergence", lambda: sections.convergence_card(run)),
        ("Best configuration", lambda: sections.best_card(run)),
        ("Parallel coordinates", lambda: sections.coordinates_card(run, found)),
        ("What matters", lambda: "".join(failed) or sections.effects_card(run, found)),
        ("Slices through the incumbent", lambda: "" if failed else sections.slices_card(run, found)),
        ("Limits", lambda: sections.limits_card(run)),
        ("Residuals", lambda: sections.residuals_card(run)),
        ("Solver", lambda: sections.solver_card(run)),
        ("Failures", lambda: sections.failures_card(run)),
        ("Trials", lambda: sections.trials_card(run)),
    ]
    return [_card(title, make) for title, make in made]


def _card(title: str, make: Callable[[], str]) -> str:
    """Return a part of the page, or its error message if a solver gives up or a model cannot be fitted."""
    try:
        return make()
    except FAILURES as error:
        return parts.card(title, parts.missing("It could not be computed:", str(error)))


def _header(run: Run, live: bool) -> str:
    record, stopped = run.record, run.result.stopped
    state = f"ended: {stopped}" if stopped else "running" if record is not None else ""
    chip = f'<span class="chip {"ended" if stopped else "running"}">{escaped(state, 120)}</span>' if state else ""
    facts = []
    if record is not None:
        facts = [record.optimizer, f"solver {record.solver}", f"seed {record.seed}"]
        if record.created:
            facts.append(time.strftime("%Y-%m-%d %H:%M", time.localtime(record.created)))
    if run.source:
        facts.append(run.source)
    line = "".join(f"<li>{escaped(f, 120)}</li>" for f in facts)
    asleep = '<span id="lost" class="chip lost" hidden>no news from mipcash dash</span>' if live else ""
    return f'<header><h1>{escaped(run.title, 120)}</h1>{chip}{asleep}<ul class="facts">{line}</ul></header>'


def _banner(run: Run) -> str:
    if run.place is not None:
        return ""
    what = (
        "Importance, interactions, slices, legal ranges, gaps, the program's size and the legal share need the space, "
        "which this journal does not describe, as it is on a Pyomo model, or was changed there."
    )
    cure = "Give the file that declares it by --model FILE, or the space itself by space=."
    return f'<aside class="banner"><p>{escaped(what)}</p><p>{escaped(cure)}</p></aside>'


def _footer(run: Run) -> str:
    version = "" if run.record is None else f" · journal by {run.record.version}"
    return f"<footer>made {escaped(time.strftime('%Y-%m-%d %H:%M:%S'))} by mipcash{escaped(version)}</footer>"


@lru_cache(maxsize=4)
def _file(name: str) -> str:
    return resources.files("mipcash.report.page").joinpath(name).read_text(encoding="utf-8")

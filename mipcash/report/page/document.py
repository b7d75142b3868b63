"""The whole page: one self-contained HTML document.

Its Content-Security-Policy allows only the page's own script, named by its hash, and loads nothing. Code injected through a name or
message is shown as text, and could not run even if it were not.

A section with nothing to show is an empty text.
"""

from __future__ import annotations

import base64
import hashlib
import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import resources

import numpy as np

from mipcash.display import counted, value_text
from mipcash.errors import InfeasibleSpaceError, MipcashError
from mipcash.report.data.convergence import curve
from mipcash.report.data.coordinates import coordinates
from mipcash.report.data.effects import PAIRED, Effects, effects
from mipcash.report.data.front import fronts
from mipcash.report.data.limits import limits
from mipcash.report.data.run import Run
from mipcash.report.data.settings import setting_text
from mipcash.report.data.slices import incumbent, slice_bounds, slices
from mipcash.report.data.solving import SIZES, best_as_code, solving
from mipcash.report.page import charts, model, parts
from mipcash.report.page.svg import HALF, NARROW, WIDE, both, escaped, number, seconds
from mipcash.report.residuals import NAMES, Residuals
from mipcash.study.failures import kinds
from mipcash.study.result import Result
from mipcash.study.trial import Trial
from mipcash.text import one_line

BEST_ROWS = 12
"""Number of trials in the table."""
NO_MODEL = "This part needs a model of the loss, which takes at least four evaluations with different losses."


def tiles(run: Run) -> str:
    """Return the tiles with the key figures."""
    result = run.result
    best, found, word = result.best, [], result.objectives.word
    if result.objectives.several:
        balanced = "" if best is None else f"balanced: trial {best.number}"
        found.append(parts.tile("on the Pareto front", str(len(result.front)), balanced, "main"))
    elif best is not None:
        found.append(parts.tile(f"best {word}", number(result.value), f"trial {best.number}", "main"))
    else:
        found.append(parts.tile(f"best {word}", "–", _lacking(result, word), "main"))
    if math.isfinite(result.fresh):
        found.append(parts.tile("on fresh repeats", number(result.fresh)))
    failed = f"{result.n_failed} failed" if result.n_failed else "none failed"
    pending = sum(t.pending for t in result.history)
    failed += f", {pending} open" if pending else ""
    failed += f", {result.n_known} known" if result.n_known else ""
    by_count = run.record is not None and result.objectives.fidelity is None  # with a fidelity, the budget is a cost
    planned = run.record.budget if run.record is not None and by_count else None
    done = f"{result.n_evaluations}" + (f" of {planned}" if planned and planned >= result.n_evaluations else "")
    found.append(parts.tile("evaluations", done, failed))
    if result.under:
        share = f"of {result.n_done} that succeeded" if result.n_done else ""
        found.append(parts.tile("satisfy all constraints", str(result.n_feasible), share))
    spent = result.seconds
    asked = sum(not t.known for t in result.history)
    each = f"{seconds(spent['ask'] / asked)} a suggestion" if asked else ""
    found.append(parts.tile("time suggesting", seconds(spent["ask"]), each))
    reported = sum(t.duration is not None and not t.known for t in result.history)
    each = f"{seconds(spent['evaluation'] / reported)} an evaluation" if reported else ""
    found.append(parts.tile("time evaluating", seconds(spent["evaluation"]), each))
    return f'<div class="tiles">{"".join(found)}</div>'


def convergence_card(run: Run) -> str:
    """Return the section on convergence, by evaluations and by seconds."""
    found = curve(run.result)
    if not len(found.x) and not len(found.failed):
        return parts.card("Convergence", parts.missing("No evaluation has ended yet.", ""), ident="convergence")
    views = [
        (name, both(*(charts.convergence_chart(found, w, by) for w in (WIDE, NARROW))))
        for name, by in (("by evaluations", False), ("by seconds", True))
    ]
    entries = [("best", "best so far"), ("dot", "evaluation")]
    entries += [("limit", "violates a constraint")] if found.infeasible.any() else []
    entries += [("estimate", f"{found.reason}, an estimate")] if found.incomplete.any() else []
    entries += [("off", "off the scale")] if (~found.inside).any() else []
    entries += [("failed", "failed")] if len(found.failed) else []
    body = parts.switch("convergence-by", views) + parts.legend(*entries)
    return parts.card("Convergence", body, ident="convergence")


def front_card(run: Run) -> str:
    """Return the section on the Pareto front of several objectives."""
    found = fronts(run)
    if not found:
        return ""
    wide = WIDE if len(found) == 1 else HALF
    drawn = [both(*(charts.front_chart(pair, w) for w in (wide, NARROW))) for pair in found]
    body = "".join(f"<figure>{chart}</figure>" for chart in drawn)
    entries = [("member", "on the front"), ("star", "balanced"), ("dot", "dominated")]
    entries += [("limit", "violates a constraint")] if any(not pair.feasible.all() for pair in found) else []
    names = ", ".join(run.result.objectives.names)
    note = f"Of {names}: on the front is what nothing is better than in all of them."
    return parts.card("Pareto front", f'<div class="halves">{body}</div>{parts.legend(*entries)}', note, ident="front")


def _lacking(result: Result, word: str) -> str:
    """Return why there is no best evaluation."""
    if not result.n_done:
        return f"no {word} yet"
    return "nothing satisfies all constraints" if result.under else "no complete evaluation yet"


def best_card(run: Run) -> str:
    """Return the section on the best configuration, as a table and as code."""
    result, best = run.result, incumbent(run)
    if best is None:
        incomplete = "No complete evaluation yet." if result.n_done else "No evaluation has a loss yet."
        wording = result.problem() or incomplete
        return parts.card("Best configuration", parts.missing(one_line(wording, 400), ""), ident="best")
    rows = [(name, setting_text(value)) for name, value in best.config.items()]
    values = [(result.objectives.word, number(best.loss) if best.loss is not None else "–")]
    further = result.values if result.best else best.values
    values += [(name, number(v)) for name, v in further.items() if name != values[0][0]]
    values += [(name, one_line(v, 120)) for name, v in best.texts.items()]
    note = "" if result.best is not None else f"Nothing satisfies all constraints yet; {result.nearest}."
    text = best_as_code(run)
    left = parts.table(("parameter", "value"), rows) + parts.table(("output", "value"), values, numbers=(1,))
    body = f'<div class="halves"><div>{left}</div><div>{parts.code(text) if text else ""}</div></div>'
    return parts.card("Best configuration", body, note, ident="best")


def coordinates_card(run: Run, effects: Effects | None) -> str:
    """Return the section with parallel coordinates over legal ranges."""
    shown = coordinates(run, None if effects is None else effects.labels)
    if len(shown.trials) < 2 or not shown.axes:
        return ""
    body = both(*(charts.parallel_chart(shown, w) for w in (WIDE, NARROW)))
    entries = [("top", "best configuration"), ("good", "good"), ("poor", "poor")]
    entries += [("allowed", "what the rules leave of the range")] if any(a.legal for a in shown.axes) else []
    parameters, trials = shown.left_out
    note = "Lines break where a parameter is absent."
    note += (
        f" The {'most important' if effects else 'first'} {len(shown.axes)} parameters; {parameters} are left out."
        if parameters
        else ""
    )
    note += f" {trials} trials are left out." if trials else ""
    return parts.card("Parallel coordinates", body + parts.legend(*entries), note, ident="coordinates")


def effects_card(run: Run, effects: Effects | None) -> str:
    """Return the section on the importance of parameters and pairs."""
    if run.place is None:
        return ""
    if effects is None or not effects.parameters:
        return parts.card("What matters", parts.missing(NO_MODEL, ""), ident="importance")
    left = "<h3>Parameters</h3>" + both(*(model.importance_chart(effects, w) for w in (HALF, NARROW)))
    left += parts.legend(("inner", "alone"), ("bar", "with others"), ("whisker", "90 % interval"))
    right = "<h3>Pairs</h3>"
    if effects.pairs:
        right += both(*(model.pairs_chart(effects, w) for w in (HALF, NARROW)))
        paired = min(PAIRED, len(effects.parameters))
        wording = f"Of the {paired} most important parameters: what two do together and neither alone."
        right += f'<p class="note">{wording}</p>'
    else:
        right += parts.missing("There is one parameter.", "")
    more = len(effects.parameters) - model.SHOWN
    note = "Shares of the variance of the modelled loss over legal configurations; whiskers say how sure the model is."
    note += f" {counted(more, 'less important parameter')} not shown." if more > 0 else ""
    return parts.card(
        "What matters", f'<div class="halves"><div>{left}</div><div>{right}</div></div>', note, ident="importance"
    )


def slices_card(run: Run, effects: Effects | None) -> str:
    """Return the section with slices through the incumbent."""
    if run.place is None:
        return ""
    found = slices(run, None if effects is None else effects.labels)
    if not found:
        return ""
    bounds = slice_bounds(found, curve(run.result).log)
    body = "".join(f"<figure>{model.slice_chart(s, bounds)}</figure>" for s in found)
    entries = [("band", f"predicted {found[0].word} ± 2 standard deviations"), ("star", "incumbent")]
    entries += [("evaluated", "other evaluations")] if any(len(s.evaluated) for s in found) else []
    entries += [("forbidden", "forbidden by the rules")] if any(s.forbidden for s in found) else []
    active = len(incumbent(run).config) - len(found)  # type: ignore[union-attr]
    note = "One parameter moves, the others stay at the best configuration; what it switches on takes the middle of its range."
    note += " Reals that an equation ties to it move in proportion." if run.place.domain.program.has_base_rows else ""
    note += f" {counted(active, 'active parameter')} not shown." if active > 0 else ""
    return parts.card(
        "Slices through the incumbent", f'<div class="grid">{body}</div>{parts.legend(*entries)}', note, ident="slices"
    )


def limits_card(run: Run) -> str:
    """Return the section on outputs, constrained or not, against the loss."""
    found = limits(run)
    if not found:
        return ""
    cells = []
    for each in found:
        wording = "".join(f'<p class="note">{escaped(text)}</p>' for text in each.text)
        chart = charts.against_chart(each, 400) if len(each.value) else parts.missing("Nothing is known of it yet.", "")
        cells.append(f"<figure><h3>{escaped(each.output, 48)}</h3>{chart}{wording}</figure>")
    limited = any(a.limit is not None for a in found)
    entries = [("dot", "satisfies all constraints" if limited else "evaluation"), ("star", "best configuration")]
    if limited:
        entries[1:1] = [("limit", "violates a constraint"), ("bound", "limit"), ("forbidden", "beyond the limit")]
        entries += [("thin", f"{found[0].objectives.best} if the limit stood there")]
    title = f"{'Limits' if limited else 'Outputs'} against the {found[0].objectives.word}"
    return parts.card(title, f'<div class="grid">{"".join(cells)}</div>{parts.legend(*entries)}', ident="limits")


def residuals_card(run: Run) -> str:
    """Return the section on the residuals of an ADMM optimizer."""
    found = Residuals.of(run.result)
    if found is None:
        return ""
    entries = [(f"r-{list(NAMES).index(name)}", NAMES[name]) for name in found.values]
    body = both(*(charts.residuals_chart(found, w) for w in (WIDE, NARROW))) + parts.legend(*entries)
    return parts.card("Residuals of ADMM", body, ident="residuals")


def solver_card(run: Run) -> str:
    """Return the section on the program, the time of proposals, gaps, and the legal share of the box."""
    found, body = solving(run), ""
    if run.place is not None:
        program, share = f"<h3>The program</h3>{_sizes(run)}", f"<h3>How much is legal</h3>{_share(run)}"
        body += f'<div class="halves"><div>{program}</div><div>{share}</div></div>'
    if len(found.x) and np.isfinite(found.ask).any():
        total = sum(s for _, s in found.parts) or 1.0
        rows = [(name, seconds(s), f"{100 * s / total:.3g} %") for name, s in found.parts]
        times = "<h3>Time of suggestions</h3>" + both(*(charts.times_chart(found, w) for w in (HALF, NARROW)))
        times += parts.legend(("ask", "suggestion"), ("dot", "evaluation"))
        gaps = parts.table(("part of suggestions", "time", "share"), rows, numbers=(1, 2))
        if np.isfinite(found.gap).any():
            proven, solved = found.proven
            by = ", ".join(f"{name} {n}" for name, n in found.solvers)
            gaps = (
                "<h3>Gaps</h3>"
                + both(*(charts.gaps_chart(found, w) for w in (HALF, NARROW)))
                + f'<p class="note">{proven} of {solved} solves proven optimal. Bounds by solver: {escaped(by)}.</p>'
                + gaps
            )
        else:
            gaps = f"<h3>Where the time goes</h3>{gaps}"
        body += f'<div class="halves"><div>{times}</div><div>{gaps}</div></div>'
    return parts.card("Solver", body, ident="solver") if body else ""


def _sizes(run: Run) -> str:
    sizes = run.place.sizes if run.place else {}
    rows = [(SIZES[name], f"{sizes[name]:,}") for name in SIZES if name in sizes]
    return parts.table((), rows, numbers=(1,))


def _share(run: Run) -> str:
    box = run.place.box if run.place else None
    if box is None or not len(box.legal):
        return parts.missing("Whether draws are legal could not be told in time.", "")
    (low, high), n, k = box.interval, len(box.legal), int(box.legal.sum())
    share = f"{_percent(box.share)}" if k else f"below {_percent(high)}"
    between = f"left:{100 * low:.2f}%;width:{max(0.4, 100 * (high - low)):.2f}%"
    bar = (
        f'<div class="share"><div class="between" style="{between}"></div>'
        f'<div class="point" style="left:{100 * box.share:.2f}%"></div></div>'
        '<div class="ends"><span>0 %</span><span>100 %</span></div>'
    )
    wording = (
        f"of the box is legal, between {_percent(low)} and {_percent(high)} with 95 % confidence: {k:,} of {n:,} "
        "draws, every parameter by itself and uniform on its scale. No proposal is drawn that way: all are legal."
    )
    return f'<p class="big">{escaped(share)}</p>{bar}<p class="note">{escaped(wording)}</p>'


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.3g} %"


def failures_card(run: Run) -> str:
    """Return the section on failures by kind."""
    failed = [t for t in run.result.history if t.failed]
    if not failed:
        return ""
    rows = []
    for name, of_kind in list(kinds(failed).items())[:12]:
        numbers = ", ".join(str(t.number) for t in of_kind[:8]) + (", …" if len(of_kind) > 8 else "")
        rows.append((name or "failed", str(len(of_kind)), numbers, one_line(of_kind[0].message, 200)))
    return parts.card(
        "Failures", parts.table(("kind", "how many", "trials", "first message"), rows, (1,)), ident="failures"
    )


def trials_card(run: Run) -> str:
    """Return the section on the best and the latest trials."""
    result = run.result
    if not result.history:
        return ""
    ranked = [result.history[k] for k in result.feasibility.ranked if result.history[k].loss is not None]
    ranked = list(result.front) if result.objectives.several else ranked
    latest = list(result.history[::-1][:BEST_ROWS])
    views = [
        ("front" if result.objectives.several else "best", _trials(run, ranked[:BEST_ROWS])),
        ("latest", _trials(run, latest)),
    ]
    return parts.card("Trials", parts.switch("trials-by", views if ranked else views[1:]), ident="trials")


def _trials(run: Run, trials: Sequence[Trial]) -> str:
    result, marked = run.result, list[int]()
    further = (
        [name for name in result.objectives.names if name != result.objectives.word]
        if result.objectives.several
        else []
    )
    head = [
        "trial",
        result.objectives.word,
        *further,
        *(["violations"] if result.under else []),
        "evaluation",
        "origin",
        "configuration or failure",
    ]
    rows = []
    for k, t in enumerate(trials):
        broken = [] if t.failed or t.pending else [one_line(", ".join(map(str, result.violations(t))), 60)]
        wording = "failed" if t.failed else "open" if t.pending else number(t.loss) if t.loss is not None else "–"
        what = one_line(t.message, 120) if t.failed else ", ".join(f"{n}={value_text(v)}" for n, v in t.config.items())
        others = ["–" if (v := t.outcome[name].value) is None else number(v) for name in further]
        row = [str(t.number), wording, *others, *((broken or [""]) if result.under else [])]
        rows.append(
            [*row, seconds(math.nan if t.duration is None else t.duration), one_line(t.origin, 30), one_line(what, 160)]
        )
        if result.best is not None and t.number == result.best.number:
            marked.append(k)
    return parts.table(head, rows, (0, *range(1, 2 + len(further)), head.index("evaluation")), marked)


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
        ("Summary", lambda: tiles(run)),
        ("Pareto front", lambda: front_card(run)),
        ("Convergence", lambda: convergence_card(run)),
        ("Best configuration", lambda: best_card(run)),
        ("Parallel coordinates", lambda: coordinates_card(run, found)),
        ("What matters", lambda: "".join(failed) or effects_card(run, found)),
        ("Slices through the incumbent", lambda: "" if failed else slices_card(run, found)),
        ("Limits", lambda: limits_card(run)),
        ("Residuals", lambda: residuals_card(run)),
        ("Solver", lambda: solver_card(run)),
        ("Failures", lambda: failures_card(run)),
        ("Trials", lambda: trials_card(run)),
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

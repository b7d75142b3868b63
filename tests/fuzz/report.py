"""The table of a run of the harness, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from tests.fuzz.engine import Plan
from tests.fuzz.record import Record

FEW = 5


def table(records: Sequence[Record], kinds: Sequence[str]) -> str:
    """Spaces, empties and disagreements by kind, by feature and by solver."""
    columns = (
        "kind",
        "spaces",
        "empty",
        "of these hidden",
        "1 to 5 left",
        "redrawn rules",
        "asked",
        "refused",
        "wrong",
    )
    lines = [_row(columns), _rule(len(columns))]
    for kind in kinds:
        mine = [r for r in records if r.kind == kind]
        if mine:
            lines.append(_row((kind, *_figures(mine))))
    lines += [_row(("all", *_figures(records))), "", _features(records), "", _solvers(records)]
    return "\n".join(lines)


def summary(records: Sequence[Record], plan: Plan, seconds: float) -> str:
    """What was drawn and found, in words, and the command that repeats it."""
    wrong = sum(len(r.disagreements) for r in records)
    small = sum(r.left <= FEW for r in records)
    drawn, asked = (sum(r.seconds[i] for r in records) for i in (0, 1))
    share = small / max(1, len(records))
    return "\n".join(
        (
            f"spaces: {len(records):,}; empty or with 1 to {FEW} legal configurations: {small:,} ({share:.0%}); "
            f"disagreements: {wrong:,} in {sum(bool(r.disagreements) for r in records):,} spaces",
            "hidden: empty, though no two of the rules, clauses and disjunctions contradict each other",
            f"{seconds:.0f} s of wall-clock time; {drawn:.0f} s of drawing and brute force, {asked:.0f} s of questions",
            f"repeat: python -m tests.fuzz --spaces {len(records)} --seed {plan.seed} "
            f"--solvers {','.join(plan.solvers)}{f' --kinds {chr(34)}{chr(44).join(plan.kinds)}{chr(34)}' if plan.kinds else ''}"
            f"; one space: --only K",
        )
    )


def classes(records: Sequence[Record]) -> str:
    """Disagreements by question, solver and kind, with the first space of each."""
    counts: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], int] = {}
    for record in sorted(records, key=lambda r: r.k):
        for d in record.disagreements:
            key = (d.question, d.solver, d.kind)
            counts[key] += 1
            first.setdefault(key, d.k)
    lines = [_row(("question", "solver", "kind", "disagreements", "first K")), _rule(5)]
    lines += [_row((*key, str(n), str(first[key]))) for key, n in sorted(counts.items())]
    return "\n".join(lines)


def _figures(records: Sequence[Record]) -> tuple[str, ...]:
    def total(of: Callable[[Record], int]) -> str:
        return f"{sum(map(of, records)):,}"

    return (
        f"{len(records):,}",
        total(lambda r: r.left == 0),
        total(lambda r: r.hidden),
        total(lambda r: 1 <= r.left <= FEW),
        total(lambda r: r.knives),
        total(lambda r: r.asked.total()),
        total(lambda r: r.refused.total()),
        total(lambda r: len(r.disagreements)),
    )


def _features(records: Sequence[Record]) -> str:
    counts: Counter[str] = Counter(f for r in records for f in r.features)
    empty: Counter[str] = Counter(f for r in records for f in r.features if r.left == 0)
    wrong: Counter[str] = Counter(f for r in records for f in r.features if r.disagreements)
    lines = [_row(("with", "spaces", "empty", "spaces with a wrong answer")), _rule(4)]
    lines += [_row((f, f"{n:,}", f"{empty[f]:,}", f"{wrong[f]:,}")) for f, n in counts.most_common()]
    return "\n".join(lines)


def _solvers(records: Sequence[Record]) -> str:
    asked: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    unproven: Counter[str] = Counter()
    wrong: Counter[str] = Counter(d.solver for r in records for d in r.disagreements)
    for r in records:
        asked.update(r.asked)
        refused.update(r.refused)
        unproven.update(r.unproven)
    lines = [_row(("solver", "asked", "refused", "unproven", "wrong")), _rule(5)]
    for s, n in asked.most_common():
        lines.append(_row((s, *(f"{count:,}" for count in (n, refused[s], unproven[s], wrong[s])))))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(count: int) -> str:
    return "|" + "---|" * count

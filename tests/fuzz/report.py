"""The table of a run of the harness, in Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from tests.fuzz.engine import Plan
from tests.fuzz.record import MEGABYTES, SECONDS, Disagreement, Record

FEW = 5


COLUMNS = {
    "spaces": lambda r: 1,
    "empty": lambda r: r.left == 0,
    "of these hidden": lambda r: r.hidden,
    "1 to 5 left": lambda r: 1 <= r.left <= FEW,
    "redrawn rules": lambda r: r.knives,
    "asked": lambda r: r.asked.total(),
    "refused": lambda r: r.refused.total(),
    "wrong answers": lambda r: len(r.disagreements),
    "spaces with one": lambda r: bool(r.disagreements),
    "hangs": lambda r: r.hangs,
    "over 1 GB": lambda r: r.megabytes > MEGABYTES,
}


def table(records: Sequence[Record], kinds: Sequence[str]) -> str:
    """Figures by kind of space and by construct."""
    constructs = Counter(f for r in records for f in r.features)
    rows = {kind: [r for r in records if r.kind == kind] for kind in kinds}
    rows |= {"all": list(records)}
    rows |= {f"with {f}": [r for r in records if f in r.features] for f, _ in constructs.most_common()}
    lines = [_row(("construct", *COLUMNS)), _rule(len(COLUMNS) + 1)]
    lines += [
        _row((name, *(f"{sum(map(of, mine)):,}" for of in COLUMNS.values()))) for name, mine in rows.items() if mine
    ]
    return "\n".join(lines)


def summary(records: Sequence[Record], plan: Plan, seconds: float) -> str:
    """What was drawn and found, in words, and the command that repeats it."""
    wrong = sum(len(r.disagreements) for r in records)
    small = sum(r.left <= FEW for r in records)
    drawn, asked = (sum(r.seconds[i] for r in records) for i in (0, 1))
    share = small / max(1, len(records))
    first = min((r.k for r in records), default=0)
    refused: Counter[str] = sum((r.refused for r in records), Counter())
    unproven: Counter[str] = sum((r.unproven for r in records), Counter())
    return "\n".join(
        (
            f"spaces: {len(records):,}; empty or with 1 to {FEW} legal configurations: {small:,} ({share:.0%}); "
            f"disagreements: {wrong:,} in {sum(bool(r.disagreements) for r in records):,} spaces",
            f"hidden: empty, though no two of the rules, clauses and disjunctions contradict each other; hang: over {SECONDS} s",
            f"refused and unproven by solver: {dict(refused)}, {dict(unproven)}",
            slowest(records),
            f"{seconds:.0f} s of wall-clock time; {drawn:.0f} s of drawing and brute force, {asked:.0f} s of questions",
            f"repeat: python -m tests.fuzz --spaces {len(records)} --seed {plan.seed} --first {first} "
            f"--solvers {','.join(plan.solvers)}{f' --kinds {chr(34)}{chr(44).join(plan.kinds)}{chr(34)}' if plan.kinds else ''}"
            f"; one space: --only K",
        )
    )


def classes(records: Sequence[Record]) -> str:
    """What goes wrong: disagreements by question and by the error or answer that came, with the first space of each."""
    found: dict[tuple[str, str], list[Disagreement]] = {}
    for record in sorted(records, key=lambda r: r.k):
        for d in record.disagreements:
            error = re.match(r"\w*(Error|Warning): .{0,60}|no answer|the process died", d.said)
            said = re.sub(r"'[^']*'|[0-9.]+", "..", error[0]) if error else "another answer"
            found.setdefault((d.question, said), []).append(d)
    lines = [_row(("question", "got", "times", "spaces", "kinds", "first K")), _rule(6)]
    for (question, said), listed in sorted(found.items(), key=lambda pair: (-len({d.k for d in pair[1]}), pair[0])):
        spaces = {d.k: d.kind for d in listed}
        kinds = ", ".join(f"{kind} {n}" for kind, n in Counter(spaces.values()).most_common())
        lines.append(
            _row((question, said.replace("|", "/"), str(len(listed)), str(len(spaces)), kinds, str(listed[0].k)))
        )
    return "\n".join(lines)


def slowest(records: Sequence[Record]) -> str:
    """The spaces with the longest questions and with the highest peaks of memory."""
    late = sorted(records, key=lambda r: -r.seconds[1])[:FEW]
    large = sorted(records, key=lambda r: -r.megabytes)[:FEW]
    return (
        f"longest: {', '.join(f'{r.k} ({r.seconds[1]:.0f} s)' for r in late)}; "
        f"largest: {', '.join(f'{r.k} ({r.megabytes:,} MB)' for r in large)}"
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(count: int) -> str:
    return "|" + "---|" * count

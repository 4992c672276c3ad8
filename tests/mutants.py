"""Every mutant of every part, and the table of who catches which.

    .venv/bin/python tests/mutants.py               a few random cases each, beside those known
    .venv/bin/python tests/mutants.py --seeds 0     the cases known to catch them, and no other

Prints Markdown; exit code 1 where a mutant is caught by nobody and nothing says why.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import mutants_derive
import mutants_exact
import mutants_simulate
import mutants_verify
from mutation import Case, Mutant

MUTANTS: tuple[Mutant, ...] = (
    *mutants_verify.MUTANTS,
    *mutants_derive.MUTANTS,
    *mutants_simulate.MUTANTS,
    *mutants_exact.MUTANTS,
)


def mutant(part: str, name: str) -> Mutant:
    """The mutant of this name."""
    return next(m for m in MUTANTS if (m.part, m.name) == (part, name))


def catches(mutant: Mutant, seeds: int) -> dict[str, Case]:
    """Who catches it, each with the first case: those that are known, then others."""
    found: dict[str, Case] = {}
    for catcher, case in mutant.caught.items():
        if catcher in mutant.objections(case):
            found[catcher] = case
    for case in mutant.harness.cases(seeds) if seeds else ():
        if set(mutant.harness.enough) <= set(found):
            break
        for catcher in mutant.objections(case):
            found.setdefault(catcher, case)
    return found


def row(mutant: Mutant, found: dict[str, Case]) -> str:
    """One line of the table."""
    if not found:
        told = mutant.covered or "**nobody**"
        shown = f"see *{mutant.shown_by}*" if mutant.shown_by else ""
        return f"| {mutant.name} | {mutant.removed} | survives: {told} | {shown} |"
    examples: dict[str, None] = {}
    for case in found.values():
        detail = mutant.detail(case)
        told = f"seed {case}" if isinstance(case, int) else str(case)
        examples[told + (f" ({detail})" if detail else "")] = None
    caught, shown = "; ".join(found), "; ".join(examples)
    if mutant.covered:
        caught, shown = f"{caught}: {mutant.covered}", f"{shown}; see *{mutant.shown_by}*"
    return f"| {mutant.name} | {mutant.removed} | {caught} | {shown} |"


def table(seeds: int, parts: set[str]) -> Iterator[tuple[str, bool]]:
    """Lines, and whether what they tell is as it should be."""
    part = ""
    for one in MUTANTS:
        if parts and one.part not in parts:
            continue
        if one.part != part:
            part = one.part
            yield f"\n### {part.capitalize()}\n\n| mutant | removed | caught by | example |", True
            yield "|---|---|---|---|", True
        found = catches(one, seeds)
        yield row(one, found), bool(found) or bool(one.covered)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What catches each mutant, as Markdown.")
    parser.add_argument("--seeds", type=int, default=4, help="more random cases (default: 4)")
    parser.add_argument("--part", action="append", default=[], help="this part only")
    asked = parser.parse_args()
    good = True
    for line, fine in table(asked.seeds, set(asked.part)):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        good &= fine
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

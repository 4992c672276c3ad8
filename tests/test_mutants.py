"""The parts check each other: whatever is taken out of one, another notices.

`tests/mutants.py` prints the table; `docs/soundness.md` shows it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import mutants_derive
import mutants_exact
import mutants_simulate
import mutants_verify
from mutants import MUTANTS, mutant
from mutation import Case, Harness, Mutant
from stretto.simulation import VIOLATION_NAMES
from stretto.verification import RULES

EACH = pytest.mark.parametrize("mutant", MUTANTS, ids=[m.id for m in MUTANTS])
HARNESSES = (
    mutants_verify.VERIFIER,
    mutants_derive.DERIVATION,
    mutants_simulate.SIMULATOR,
    mutants_exact.EXACT,
    mutants_exact.RUNS,
    mutants_exact.GENERATORS,
)


@cache
def objections(harness: int, case: Case) -> tuple[str, ...]:
    """Who objects to a case though nothing is removed."""
    chosen: Harness = HARNESSES[harness]
    chosen.prepare(case)
    return chosen.objections(case)


def silent_at(mutant: Mutant, case: Case) -> bool:
    return objections(HARNESSES.index(mutant.harness), case) == ()


@EACH
def test_each_mutant_is_caught(mutant: Mutant) -> None:
    assert mutant.caught or mutant.shown_by
    for case in dict.fromkeys(mutant.caught.values()):
        assert silent_at(mutant, case), "nothing is removed, and somebody objects"
        catchers = {catcher for catcher, known in mutant.caught.items() if known == case}
        assert catchers <= set(mutant.objections(case))


SPARED = [m for m in MUTANTS if m.shown_by]


@pytest.mark.parametrize("spared", SPARED, ids=[m.id for m in SPARED])
def test_what_can_be_spared_is_told_twice(spared: Mutant) -> None:
    """Where something else tells the same, both have to go before anybody notices."""
    assert spared.covered
    both = mutant(spared.part, spared.shown_by)
    assert both.caught
    for catcher, case in both.caught.items():
        assert catcher in both.objections(case)
        assert catcher not in spared.objections(case)


def test_names_are_told_apart() -> None:
    assert len({m.id for m in MUTANTS}) == len(MUTANTS)
    assert all(m.removed.endswith(".") for m in MUTANTS)


def test_every_rule_is_removed_whole() -> None:
    names = {m.name for m in MUTANTS if m.part == "verifier"}
    assert {f"rule {rule}" for rule in RULES} <= names


def test_every_violation_of_a_run_is_lost_with_some_mutant() -> None:
    lost: set[str] = set()
    for one in mutants_simulate.MUTANTS:
        for case in one.caught.values():
            one.harness.prepare(case)
            with one.applied():
                lost |= mutants_simulate.expected(case) - mutants_simulate.told(case)
    assert lost == set(VIOLATION_NAMES)


def test_what_was_removed_is_back() -> None:
    """A patch ends with its context, also one of a class."""
    for one in MUTANTS:
        with one.applied():
            pass
    assert objections.__wrapped__(0, "read early") == ()


def test_the_docs_show_every_mutant() -> None:
    page = Path(__file__).parents[1] / "docs" / "soundness.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    shown = [tuple(cell.strip() for cell in line.split("|")[1:3]) for line in lines if "|" in line]
    assert [row for row in shown if row in {(m.name, m.removed) for m in MUTANTS}] == [
        (m.name, m.removed) for m in MUTANTS
    ]

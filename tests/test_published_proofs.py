"""Published proofs say what the page about them says, and shipped loops still have the bounds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from proofs import PUBLISHED, in_time, kernels, published  # noqa: E402 - beside the scripts

PAGE = (ROOT / "docs" / "exact.md").read_text(encoding="utf-8")


def test_the_page_counts_what_is_published() -> None:
    rows = published(PUBLISHED / "h200.json")
    proved = {name for name, found in rows.items() if in_time(found)}
    tutorials = {name for name in rows if name.startswith("tutorials/")}
    counts = re.findall(r"^\| (?:shipped|Triton's|both).*?\| (\d+) \| (\d+)", PAGE, re.MULTILINE)
    assert [(int(a), int(b)) for a, b in counts] == [
        (len(rows) - len(tutorials), len(proved - tutorials)),
        (len(tutorials), len(proved & tutorials)),
        (len(rows), len(proved)),
    ]
    assert len(proved) >= 0.9 * len(rows)


def test_graphs_that_are_called_proved_are() -> None:
    entries = published(PUBLISHED / "hatschet.json").values()
    known = {found.loop.partition("/")[2]: found for found in entries}
    rows = re.findall(
        r"^\| `(\w+/graph\d+)`(, 200 MHz)? \| ([\d,]+) \| (\d+) .*?\| (\d+) \| (\d+) \|$",
        PAGE,
        re.MULTILINE,
    )
    assert len(rows) == len(known) == sum(found.proved for found in entries)
    for graph, rate, ops, mii, ii, seconds in rows:
        entry = known[graph + (".200MHz" if rate else "")]
        assert (entry.ops, entry.mii) == (int(ops.replace(",", "")), int(mii))
        assert entry.ii == entry.lower_bound == int(ii)
        assert round(entry.seconds) == int(seconds) <= 60


def test_shipped_loops_are_those_that_were_proved() -> None:
    rows = published(PUBLISHED / "h200.json")
    shipped = {ready.loop.name: ready for ready in kernels(None)}
    assert set(shipped) == {name for name in rows if not name.startswith("tutorials/")}
    for name, ready in shipped.items():
        assert len(ready.loop.ops) == rows[name].ops


@pytest.mark.parametrize("name", ["triton/softmax softmax", "cutile/softmax softmax.0"])
def test_a_published_ii_is_proved_anew(name: str) -> None:
    from exact import row  # noqa: PLC0415 - loads the solver

    ready = next(ready for ready in kernels(None) if ready.loop.name == name)
    found, known = row(ready, 60.0), published(PUBLISHED / "h200.json")[name]
    assert (found.mii, found.ii, found.proved) == (known.mii, known.ii, known.proved)

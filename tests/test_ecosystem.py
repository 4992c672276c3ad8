"""The ecosystem suite's own parts: what counts as how far, and that its files belong together."""

import json
from pathlib import Path

import pytest
from outcomes import LEVELS, Outcome, compared, kind_of, page, summary
from steps import plain

FOLDER = Path(__file__).parent / "ecosystem"


def known() -> list[Outcome]:
    return [Outcome(**one) for one in json.loads((FOLDER / "table.json").read_text("utf-8"))]


def test_the_page_is_that_of_the_table():
    assert (FOLDER / "table.md").read_text("utf-8") == page(known())


def test_the_part_is_in_the_table_and_was_recorded():
    names = {one.name for one in known()}
    part = (FOLDER / "part.txt").read_text("utf-8").split()
    assert len(part) == len(set(part))
    assert names.issuperset(part)
    recorded = {file.stem for file in (FOLDER / "launches").glob("*.jsonl")}
    assert recorded == {file.stem for file in (FOLDER / "cases").glob("*.py")}
    assert recorded.issuperset(name.split(".")[0] for name in part)


def test_launches_name_a_kernel_and_what_it_is_compiled_by():
    for file in (FOLDER / "launches").glob("*.jsonl"):
        for line in file.read_text("utf-8").splitlines():
            launch = json.loads(line)
            assert launch["case"].startswith(f"{file.stem}.")
            assert launch["module"]
            assert launch["kernel"]
            assert launch["signature"]
            assert launch["grid"]


def outcome(level: str = LEVELS[-1], **more: object) -> Outcome:
    return Outcome("lib.case.kernel", loops=1, level=level, **more)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("number", range(1, len(LEVELS)))
def test_a_kernel_that_comes_less_far_is_lost(number: int):
    before = {"lib.case.kernel": outcome(LEVELS[number]).to_json()}
    assert compared([outcome(LEVELS[number])], before) == []
    (told,) = compared([outcome(LEVELS[number - 1], reason="no such thing")], before)
    assert "no such thing" in told
    assert LEVELS[number] in told


def test_a_kernel_that_comes_farther_or_is_new_is_not_lost():
    before = {"lib.case.kernel": outcome("read").to_json()}
    assert compared([outcome()], before) == []
    assert compared([outcome()], {}) == []


def test_what_triton_fails_on_now_and_did_not_is_lost():
    before = {"lib.case.kernel": outcome().to_json()}
    assert compared([Outcome("lib.case.kernel", loops=1, triton="aborts")], before)


def test_what_is_printed_without_overlap_counts_in_no_later_column():
    told = summary([outcome("printed without overlap"), outcome()])
    assert told[3] == "| with loops, no product | 2 | 2 | 2 | 1 | 1 | 1 | 1 |"


def test_reasons_of_one_kind_have_one_name():
    a = kind_of("`scan` in `q.k` spills 12 bytes, Triton's own 0")
    assert a == kind_of("`scan` in `q.k` spills 4 bytes, Triton's own 8")
    assert kind_of("`tt.foo` is unknown") != kind_of("`tt.bar` is unknown")


def test_a_reason_has_no_place_and_one_line():
    assert plain("/a/b.py:12:3: no\n  such thing") == "no such thing"

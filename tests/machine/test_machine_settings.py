"""A machine that is almost another, by settings or by a file that extends it."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

import stretto
from stretto.errors import DocumentError, StrettoError
from stretto.loop import Demand, Facts, Loop, Op, Operand, Space, Storage, TileType, Use, Value
from stretto.machine import Machine, load_machine, machine_names, read_machine
from stretto.machine.digest import digest
from stretto.machine.settings import Setting, parse_setting, settings_toml, with_settings
from stretto.solution import spilling

CHANGED: dict[str, Setting] = {
    "budgets.smem.bytes": 65536,
    "slots.CUDA.capacity": 2,
    "encodings.mma.latency": "300 + k",
    "encodings.mma.uses[0].duration": 77,
}


def nameless(machine: Machine) -> Machine:
    return replace(machine, name="")


def test_a_setting_changes_its_value_and_nothing_else() -> None:
    plain = load_machine("b200-pipes")
    changed = with_settings("b200-pipes", {"budgets.smem.bytes": 65536})
    smem = changed.budget("smem")
    assert smem is not None
    assert smem.bytes == 65536
    others = [b for b in plain.budgets if b.space != "smem"]
    assert [b for b in changed.budgets if b.space != "smem"] == others
    assert replace(changed, budgets=plain.budgets) == plain
    assert digest(changed) != digest(plain)
    assert load_machine("b200-pipes") == plain


def figures(machine: Machine) -> dict[str, int]:
    """The published capacities of a machine, by what they are called."""
    cells = {f"cells[{cell.index}]": cell.value for cell in machine.cells}
    return cells | {row.name: row.values[0] for row in machine.tier2}


BLACKWELL = Path(str(resources.files("stretto.machine"))) / "targets" / "blackwell.toml"
PUBLISHED = tomllib.loads(BLACKWELL.read_text(encoding="utf-8"))
BOUND = [
    *((f"cells[{row['index']}]", row["of"]) for row in PUBLISHED["cells"] if "of" in row),
    *((name, row["of"]) for name, row in PUBLISHED["tier2"].items()),
]


@pytest.mark.parametrize(("name", "path"), BOUND)
def test_a_published_capacity_is_the_figure_of_its_rule(name: str, path: str) -> None:
    """What honours a row is where its number stands: both change, or neither."""
    plain = load_machine("blackwell", {})
    before = figures(plain)
    changed = with_settings("blackwell", {path: before[name] + 2}, {})
    assert figures(changed)[name] == before[name] + 2
    rules = (changed.slots, changed.pools, changed.budgets)
    assert rules != (plain.slots, plain.pools, plain.budgets)
    row = name if name.startswith("cells") else f"tier2.{name}"
    with pytest.raises(StrettoError, match="value"):
        with_settings("blackwell", {f"{row}.value": before[name] + 2}, {})


TILE = TileType((128, 128), "f32")


def crowd(use: Use | None = None, demand: Demand | None = None, kind: str = "other") -> Loop:
    """Four operations that are alike."""
    uses = None if kind != "other" else (use or Use("omitted_simt", 4),)
    asked = () if demand is None else (demand,)
    names = [f"op{i}" for i in range(4)]
    ops = tuple(
        Op(
            name,
            kind,
            uses=uses,
            latency=None if uses is None else 4,
            demands=asked,
            facts=Facts(bank=0),
        )
        for name in names
    )
    return Loop("crowd", ops, machine="blackwell")


def held(space: Space, registers: bool = False) -> Loop:
    """A tile that is loaded and read two IIs later, at the earliest, if there is room for three."""
    where = None if registers else "tile"
    storages = () if registers else (Storage("tile", space, TILE.bytes),)
    writes = () if registers else ("tile",)
    load = Op("load", "other", (), ("v",), (), writes, uses=(Use("tma", 8),), latency=20)
    take = Op("take", "other", (Operand("v"),), uses=(Use("tp_smem_rd", 8),), latency=8)
    return Loop("held", (load, take), (Value("v", TILE, where),), storages, machine="blackwell")


FIGURES: dict[str, tuple[Loop, int]] = {
    "slots.alu_or_fmaheavy.capacity": (crowd(Use("alu_or_fmaheavy", 4)), 2),
    "slots.dual_alu.capacity": (crowd(Use("dual_alu", 4)), 2),
    "slots.tp_smem_rd.fusion_cap": (crowd(kind="async.smem_read"), 2),
    "pools.smem_lock.cap": (crowd(demand=Demand("smem_lock", 1)), 2),
    "pools.register_bank.cap": (crowd(demand=Demand("register_bank", 1)), 1),
    "pools.bank_width.cap": (crowd(demand=Demand("bank_width", 1024)), 1024),
    "budgets.smem.bytes": (held("smem"), 65_536),
    "budgets.tmem.bytes": (held("tmem"), 65_536),
    "budgets.register.bytes": (held("register", registers=True), 65_536),
}
"""By the place of each figure that rows are bound to: a loop, and a number that changes it."""


@pytest.mark.parametrize("path", dict.fromkeys(path for _, path in BOUND))
def test_a_changed_figure_changes_a_schedule(path: str) -> None:
    loop, number = FIGURES[path]
    plain = stretto.schedule(loop, generator="cost-based")
    changed = stretto.schedule(
        loop, with_settings("blackwell", {path: number}, {}), generator="cost-based"
    )
    assert (plain.ii, spilling(plain)) != (changed.ii, spilling(changed))


def test_every_row_of_the_tier_two_and_of_the_cells_is_bound_or_dominated() -> None:
    rows = [*PUBLISHED["cells"], *PUBLISHED["tier2"].values()]
    assert [row for row in rows if ("of" in row) == ("value" in row)] == []
    assert [row for row in rows if "value" in row and "at_least" not in row] == []


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("cells[2].value", 2, r"cells\[2\]\.value: error: is 2; `slots\.dual_alu\.capacity` is 3"),
        (
            "slots.alu_or_fmaheavy.capacity",
            7,
            r"cells\[7\]\.value: error: is 6; `slots\.alu_or_fma",
        ),
        ("cells[0].value", 22, r"cells\[0\]\.value: error: is 22; `tags` is 23"),
        ("cells[1].of", "slots.nobody", r"cells\[1\]\.of: error: no number stands there"),
        (
            "families.transport.latency",
            6,
            r"tags\[14\]\.latency: error: is 7; family `transport` h",
        ),
        ("tags[0].latency", 5, r"tags\[0\]\.latency: error: is 5; family `alu_or_fma` has 4"),
    ],
)
def test_a_figure_that_contradicts_another_is_refused(
    path: str, value: Setting, message: str
) -> None:
    with pytest.raises(DocumentError, match=message):
        with_settings("blackwell", {path: value}, {})


def test_a_row_with_two_numbers_is_refused() -> None:
    text = 'extends = "blackwell"\n[machine]\nname = "x"\n[tier2.alu_issue]\nvalue = 4\n'
    with pytest.raises(DocumentError, match=r"it stands in `slots\.dual_alu\.capacity`: change it"):
        read_machine("my.toml", text, {})


@pytest.mark.parametrize("row", ["tier2.alu_issue", "cells[6]"])
def test_a_number_that_no_rule_has_is_refused(row: str) -> None:
    """It would be shown, and decide nothing."""
    text = (resources.files("stretto.machine") / "targets" / "blackwell.toml").read_text("utf-8")
    rule = 'of = "slots.dual_alu.capacity"'
    before, *rest = text.split(rule)
    assert len(rest) == 2
    number = {"cells[6]": 0, "tier2.alu_issue": 1}[row]
    parts = [rule, rule]
    parts[number] = "value = 4"
    with pytest.raises(DocumentError, match="states a number that no rule has"):
        read_machine("my.toml", before + parts[0] + rest[0] + parts[1] + rest[1], {})


def test_a_setting_goes_through_names_with_dots() -> None:
    name = next(s.name for s in load_machine("h200").slots if "." in s.name)
    assert with_settings("h200", {f"slots.{name}.capacity": 3}).slot(name).capacity == 3


def test_a_saved_file_makes_the_machine_of_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(settings_toml("b200-pipes", CHANGED, "mine"), encoding="utf-8")
    again = load_machine(str(file))
    assert again.name == "mine"
    assert again.extends == "b200-pipes"
    assert nameless(again) == nameless(with_settings("b200-pipes", CHANGED))
    once_more = tmp_path / "more.toml"
    once_more.write_text('extends = "mine.toml"\n[slots.TC]\ncapacity = 2\n', encoding="utf-8")
    assert load_machine(str(once_more)).slot("TC").capacity == 2
    assert load_machine(str(once_more)).slot("CUDA").capacity == 2


@pytest.mark.parametrize("name", machine_names())
def test_a_machine_without_a_name_to_extend_is_saved_whole(name: str) -> None:
    target = Path(__file__).parents[2] / "src/stretto/machine/targets" / f"{name}.toml"
    whole = settings_toml(target.read_text(encoding="utf-8"), {})
    assert read_machine("whole.toml", whole, os.environ) == load_machine(name)


def test_a_file_changes_with_the_one_it_extends(tmp_path: Path) -> None:
    base, over = tmp_path / "base.toml", tmp_path / "over.toml"
    base.write_text(settings_toml("b200-pipes", {"slots.TC.capacity": 2}), encoding="utf-8")
    over.write_text('extends = "base.toml"\n', encoding="utf-8")
    long_ago = 1_000_000_000
    for file in (base, over):
        os.utime(file, (long_ago, long_ago))
    assert load_machine(str(over)).slot("TC").capacity == 2
    base.write_text(settings_toml("b200-pipes", {"slots.TC.capacity": 5}), encoding="utf-8")
    assert load_machine(str(over)).slot("TC").capacity == 5


@pytest.mark.parametrize(
    ("path", "value", "place", "told"),
    [
        ("budgets.smem.bytes", 0, "budgets.smem.bytes", "is 0"),
        ("budgets.smem.bytes", "much", "budgets.smem.bytes", "expected a whole number"),
        ("slots.CUDA.capacit", 1, "slots.CUDA.capacit", "did you mean `capacity`?"),
        ("slots.CUD.capacity", 1, "slots.CUD.capacity", "did you mean `CUDA`?"),
        ("slots.CUDA", 1, "slots.CUDA", "is no single value"),
        ("encodings.mma.uses[3].duration", 1, "encodings.mma.uses[3].duration", "the last is 0"),
        ("encodings.mma.uses[0]", 1, "encodings.mma.uses[0]", "is no single value"),
        ("slots.CUDA.capacity.more", 1, "slots.CUDA.capacity.more", "below a single value"),
        ("encodings.mma.latency", "bytes +", "encodings.mma.latency", "expected a cost"),
    ],
)
def test_a_setting_that_cannot_be_says_where_and_why(
    path: str, value: Setting, place: str, told: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        with_settings("b200-pipes", {path: value})
    assert caught.value.path == place
    assert told in str(caught.value)


def test_files_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text('extends = "two.toml"\n', encoding="utf-8")
    two.write_text('extends = "one.toml"\n', encoding="utf-8")
    with pytest.raises(DocumentError, match="is it a circle"):
        load_machine(str(one))
    one.write_text('extends = "h2000"\n', encoding="utf-8")
    with pytest.raises(DocumentError, match=r"one\.toml: extends: error: .*no machine `h2000`"):
        load_machine(str(one))


def test_the_short_form_is_read() -> None:
    assert parse_setting("budgets.smem.bytes=65536") == ("budgets.smem.bytes", 65536)
    assert parse_setting("slots.tma.capacity=unlimited") == ("slots.tma.capacity", "unlimited")
    assert parse_setting("slots.tma.primary = true") == ("slots.tma.primary", True)
    assert parse_setting("encodings.mma.latency=a == b") == ("encodings.mma.latency", "a == b")
    for wrong in ("", "=", "a", "a=", "=1"):
        with pytest.raises(StrettoError, match="is no setting"):
            parse_setting(wrong)


def test_a_machine_without_a_name_has_that_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "slower.toml"
    file.write_text('extends = "blackwell"\n', encoding="utf-8")
    machine = load_machine(str(file))
    assert (machine.name, machine.extends) == ("slower", "blackwell")


def test_a_required_key_that_is_misspelled_is_told_with_what_stands_there(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[machine]\nname = "mine"\n[slots.tma]\ncapcity = 1\n', encoding="utf-8")
    with pytest.raises(DocumentError, match="is missing; there is `capcity`; is that meant"):
        load_machine(str(file))

"""Why an II was refused, where users of compilers look: text, JSON, remarks at their place.

a   holds u at 0 and 2           u   █·█·     at II 4, as the bound has it, b finds no two
b   holds u for 2 cycles             ··██     cycles in a row: the smallest II is 5
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import stretto
from stretto.cli.main import main
from stretto.ir.opt.__main__ import main as opt
from stretto.loop import Constraint, Demand, Dependence, Loop, Op, Use
from stretto.machine import Machine, Pool, Slot
from stretto.solution import Refusal, sought

MACHINE = Machine("m", "", (Slot(3, "u", 1), Slot(5, "v", None)), (Pool("p", 1),))
TOML = """
[machine]
name = "m"
[slots.u]
id = 3
capacity = 1
[slots.v]
id = 5
capacity = "unlimited"
"""
SPLIT = (Use("u", 1), Use("u", 1, 2))
TOGETHER = Constraint(gid=1)
LOOP = Loop(
    "l",
    (
        Op("a", "k", uses=SPLIT, latency=3, constraint=TOGETHER),
        Op("b", "k", uses=(Use("u", 2),), latency=2, constraint=TOGETHER),
    ),
)
MODULE = """
func.func @l(%n: index) {
  scf.for %i = %n to %n step %n {
    %a = nv_tileas.generic "k"() {stretto.uses = [{slot = "u", duration = 1},
      {slot = "u", duration = 1, offset = 2}], stretto.latency = 3} : () -> i32
    %b = nv_tileas.generic "k"() {stretto.uses = [{slot = "u", duration = 2}],
      stretto.latency = 2} : () -> i32
  }
  func.return
}
"""


def refused(loop: Loop = LOOP, machine: Machine = MACHINE, ii: int = 4) -> Refusal:
    (refusal,) = stretto.schedule(loop, machine, max_ii=ii).refused
    return refusal


def test_a_refusal_knows_all_six_things() -> None:
    """II; operation and footprint; rows; window; what refused; group, stage and order."""
    found = refused()
    footprints = {"a": SPLIT, "b": (Use("u", 2),)}
    assert found.ii == 4
    assert found.uses == footprints[found.op]
    assert found.window == (0, 3)
    assert found.rows
    assert all(word == 0x4 for _, word in found.rows)
    assert found.limit == "u"
    assert found.group == ("a", "b")
    assert (found.stage, found.order) == (0, 0)


def test_stages_that_a_group_asks_for_and_no_ii_has_are_proved_and_named() -> None:
    """`r` waits for `p`, by way of `q`, and is to stand in the stage before."""

    def op(name: str, slot: str, wanted: Constraint) -> Op:
        return Op(name, "k", uses=(Use(slot, 2),), latency=4, constraint=wanted)

    ops = (
        op("p", "u", Constraint(gid=0, stage_offset=1)),
        op("q", "v", Constraint()),
        op("r", "u", Constraint(gid=0)),
    )
    order = (Dependence("p", "q", 4), Dependence("q", "r", 4))
    machine = Machine("two", "", (Slot(3, "u", 1), Slot(5, "v", 1)))
    found = stretto.schedule(Loop("never", ops, stated=order), machine)
    assert not found.success
    told = [one for one in found.refused if one.limit == "group"]
    assert told
    for one in told:
        assert one.proved
        assert one.group == ("p", "r")
        assert "`p` -> `q` -> `r` take longer than the stages of their group leave" in one.reason


def test_a_pool_that_refuses_is_named() -> None:
    """At II 3, b has to start one cycle after a, which draws all there is for two."""
    ops = (
        Op("a", "k", uses=(Use("u", 1), Use("v", 2)), demands=(Demand("p", 1),), latency=1),
        Op("b", "k", uses=(Use("v", 1),), demands=(Demand("p", 1),), latency=2),
    )
    around = (Dependence("a", "b", 1), Dependence("b", "a", 2, 1))
    found = refused(Loop("l", ops, stated=around), ii=3)
    assert (found.op in ("a", "b"), found.limit) == (True, "p")
    assert stretto.schedule(Loop("l", ops, stated=around), MACHINE).ii == 4


def test_an_operation_that_meets_itself_is_told_with_its_footprint() -> None:
    own = Op("a", "k", uses=(Use("u", 2), Use("u", 2, 4)), latency=3)
    found = refused(Loop("l", (own, Op("b", "k", uses=(), latency=1))), ii=4)
    assert found.proved
    assert (found.op, found.limit, found.window) == ("a", "u", (0, 3))
    assert found.rows == ((0, 0x0),)


def test_in_words() -> None:
    words = dict(sought(refused()))
    assert words["operation"] in ("a", "b")
    assert words["footprint"] in ("(u, 0, 1) (u, 2, 1)", "(u, 0, 2)")
    assert words["window"] == "0 to 3"
    assert ":0x4" in words["rows"]
    assert (words["limit"], words["group"]) == ("u", "a b")
    assert (words["stage"], words["order"]) == ("0", "0")
    closed = Refusal(4, "too late", op="a", window=(5, 3))
    assert dict(sought(closed)) == {
        "operation": "a",
        "footprint": "holds no slot",
        "window": "empty",
    }
    assert sought(Refusal(4, "smem is full", limit="smem")) == (("limit", "smem"),)


# Where they are looked for --------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "m.toml").write_text(TOML)
    (tmp_path / "l.mlir").write_text(MODULE)
    return str(tmp_path / "l.mlir"), str(tmp_path / "m.toml")


def test_as_text(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", files[0], "--machine", files[1], "--max-ii", "4"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "window 0 to 3; rows " in told
    assert ":0x4" in told
    assert "limit u; stage 0; order 0" in told
    assert "footprint (u, " in told


def test_a_schedule_tells_of_smaller_iis_where_it_is_asked(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", files[0], "--machine", files[1]]) == 0
    assert "footprint" not in capsys.readouterr().out
    assert main(["schedule", files[0], "--machine", files[1], "-v"]) == 0
    assert "footprint (u, " in capsys.readouterr().out


def test_as_json(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["schedule", files[0], "--machine", files[1], "--max-ii", "4", "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    schema = Path(stretto.__file__).parent / "solution" / "schedule.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    (row,) = document["loops"][0]["refused"]
    assert row["ii"] == 4
    assert {use["slot"] for use in row["uses"]} == {"u"}
    assert row["window"] == [0, 3]
    assert row["rows"]
    assert all(word == 4 for _, word in row["rows"])
    assert (row["limit"], row["stage"], row["order"]) == ("u", 0, 0)


def test_as_remarks(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """At the operation that found no seat, with every number by name."""
    one = f"tileas-generate-schedule{{machine={files[1]} max-ii=4}}"
    opt([files[0], "-p", one, "--remarks-format=json", "--remarks-filter=Missed"])
    told = capsys.readouterr().err
    document = json.loads(told[told.index('{\n  "schema"') :])
    schema = Path(stretto.__file__).parent / "ir" / "remarks.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    by_name = {remark["name"]: remark for remark in document["remarks"]}
    found = by_name["Refused"]
    assert found["kind"] == "Missed"
    assert found["location"]["line"] in (4, 6)
    assert set(found["arguments"]) >= {
        "II",
        "Operation",
        "Footprint",
        "Window",
        "Rows",
        "Limit",
        "Stage",
        "Order",
    }
    assert "LeftAlone" in by_name


def test_a_warning_points_to_the_operation(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    opt([files[0], "-p", f"tileas-generate-schedule{{machine={files[1]} max-ii=4}}"])
    told = capsys.readouterr().err
    assert "warning: l: left alone" in told
    assert "l.mlir:" in told
    assert "at II 4: footprint (u, " in told

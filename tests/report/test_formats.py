"""Pictures, sheets and traces say what the document says; Perfetto's own schema reads the trace."""

from __future__ import annotations

import csv
import io
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import pytest

import stretto
from stretto.cli.main import main
from stretto.loop import Facts, Loop, Op, Use
from stretto.machine import Machine, Slot
from stretto.report.formats import rendered, with_source
from stretto.report.sheet import record
from stretto.report.unrolled import iterations_of

EXAMPLES = Path(__file__).parents[2] / "examples"
SVG = "{http://www.w3.org/2000/svg}"
FUSING = Loop(
    "fusing",
    tuple(
        Op(name, "read", uses=(Use("rd", k),), latency=k, facts=Facts(bank=0))
        for name, k in (("a", 4), ("b", 7), ("instant", 0))
    ),
)
FUSES = Machine("fuses", "", (Slot(1, "rd", 1, fusion_cap=5),))


def document(name: str) -> dict[str, Any]:
    if name == "fusing":
        found = stretto.schedule(FUSING, FUSES)
        assert found.fused
        return found.to_document()
    return stretto.schedule(stretto.read(EXAMPLES / name)[0]).to_document()


@pytest.fixture(
    scope="module", params=["attention_forward.mlir", "four_op.json", "pool_bound.json", "fusing"]
)
def told(request: pytest.FixtureRequest) -> dict[str, Any]:
    return document(cast("str", request.param))


# Traces -----------------------------------------------------------------------------------


def packets(told: dict[str, Any]) -> list[Any]:
    schema: Any = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    data = rendered(told, "trace")
    trace = schema.Trace()
    assert trace.ParseFromString(data) == len(data)
    assert trace.IsInitialized()
    # Nothing is in it that the schema does not know: written anew, it is as long as it was.
    trace.DiscardUnknownFields()
    assert trace.ByteSize() == len(data)
    return list(trace.packet)


def slices(told: dict[str, Any], kind: str) -> dict[str, list[tuple[int, int, str]]]:
    """Of tracks whose names begin so: begin, end and name; no two of a track overlap."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    names: dict[int, str] = {}
    opened: dict[int, tuple[int, str]] = {}
    for packet in packets(told):
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
            continue
        event, at = packet.track_event, packet.timestamp
        track = event.track_uuid
        if not names[track].startswith(kind):
            continue
        row = found.setdefault(names[track], [])
        if event.type == event.TYPE_INSTANT:
            row.append((at, at, event.name))
        elif event.type == event.TYPE_SLICE_BEGIN:
            assert track not in opened
            opened[track] = at, event.name
        elif event.type == event.TYPE_SLICE_END:
            begin, name = opened.pop(track)
            assert begin < at
            row.append((begin, at, name))
    assert not opened
    return found


def test_time_goes_forward_and_every_event_has_its_track(told: dict[str, Any]) -> None:
    known: set[int] = set()
    last = 0
    for packet in packets(told):
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in known
            assert not descriptor.parent_uuid or descriptor.parent_uuid in known
            known.add(descriptor.uuid)
        else:
            assert packet.track_event.track_uuid in known
            assert packet.timestamp >= last
            last = packet.timestamp


def test_every_operation_is_on_the_track_of_its_agent(told: dict[str, Any]) -> None:
    (entry,) = told["loops"]
    count = iterations_of(entry)
    found = sorted(s for row in slices(told, "agent ").values() for s in row)
    assert found == sorted(
        (begin, begin + op["completion"], op["name"])
        for op in entry["ops"]
        for begin in (op["start"] + entry["ii"] * i for i in range(count))
    )


def counters(told: dict[str, Any]) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    names: dict[int, str] = {}
    for packet in packets(told):
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
        elif packet.track_event.type == packet.track_event.TYPE_COUNTER:
            row = found.setdefault(names[packet.track_event.track_uuid], [])
            row.append((packet.timestamp, packet.track_event.counter_value))
    return found


def at(rows: list[tuple[int, int]], cycle: int) -> int:
    return next((value for begin, value in reversed(rows) if begin <= cycle), 0)


def test_counters_are_the_reservation_table_and_the_occupancy(told: dict[str, Any]) -> None:
    (entry,) = told["loops"]
    ii, rows = entry["ii"], counters(told)
    # As far into the steady state as the longest hold and the longest life take to be there.
    reach = max([op["start"] + op["completion"] for op in entry["ops"]])
    steady = -(-reach // ii) * ii
    assert steady < ii * iterations_of(entry)
    for slot in entry["slots"]:
        name = f"{slot['name']} held, of {slot['capacity']}"
        for row in entry["table"]:
            for cycle in (row["cycle"], row["cycle"] + row["cycles"] - 1):
                assert at(rows[name], steady + cycle) == row["held"].get(slot["name"], 0)
        assert max(value for _, value in rows[name]) <= slot["capacity"]
    for row in entry["occupancy"]:
        if row["unit"] == "bytes" and row["space"] in entry["memory"]:
            (name,) = [name for name in rows if name.startswith(f"{row['space']} bytes")] or [""]
            for step in row["steps"]:
                assert at(rows.get(name, []), steady + step["cycle"]) == step["live"]


def test_every_dependence_is_a_flow_from_one_slice_to_another(told: dict[str, Any]) -> None:
    (entry,) = told["loops"]
    leave: dict[int, tuple[int, str]] = {}
    arrive: dict[int, tuple[int, str]] = {}
    for packet in packets(told):
        for flow in packet.track_event.flow_ids:
            assert flow not in leave
            leave[flow] = packet.timestamp, packet.track_event.name
        for flow in packet.track_event.terminating_flow_ids:
            assert flow not in arrive
            arrive[flow] = packet.timestamp, packet.track_event.name
    assert leave.keys() == arrive.keys()
    count = iterations_of(entry)
    deps = entry["dependences"]
    assert len(leave) == sum(max(0, count - d["distance"]) for d in deps)
    ways = {(leave[k][1], arrive[k][1], arrive[k][0] - leave[k][0]) for k in leave}
    starts = {op["name"]: op["start"] for op in entry["ops"]}
    assert ways == {
        (d["src"], d["dst"], starts[d["dst"]] - starts[d["src"]] + d["distance"] * entry["ii"])
        for d in deps
        if d["distance"] < count
    }


# Pictures and sheets ----------------------------------------------------------------------


def test_the_picture_has_a_bar_for_every_hold(told: dict[str, Any]) -> None:
    (entry,) = told["loops"]
    root = ElementTree.fromstring(cast("str", rendered(told, "svg")))
    bars = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") is None]
    held = sum(1 for op in entry["ops"] for use in op["uses"] if use["duration"])
    groups = {tuple(sorted([op["name"], *op["fused_with"]])) for op in entry["ops"]}
    shared = sum(len(group) - 1 for group in groups)  # each of them has one use
    assert len(bars) == (held - shared) * iterations_of(entry)
    width = float(root.get("width") or 0)
    for bar in bars:
        assert 0 <= float(bar.get("x") or -1) <= width
        assert float(bar.get("x") or 0) + float(bar.get("width") or 0) <= width + 1


def test_the_picture_names_every_operation_and_explains_its_colours(told: dict[str, Any]) -> None:
    (entry,) = told["loops"]
    root = ElementTree.fromstring(cast("str", rendered(told, "svg")))
    shown = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
    assert "iteration 0" in shown
    assert "shaded: one interval of the steady state" in shown
    words = set(shown.replace(",", " ").split())
    limited = {slot["name"] for slot in entry["slots"]}
    for op in entry["ops"]:
        if any(use["duration"] and use["slot"] in limited for use in op["uses"]):
            assert op["name"] in words


def test_names_that_are_markup_are_shown_not_obeyed() -> None:
    ops = (Op("<script>\x07&", "read", uses=(Use("rd", 4),), latency=4),)
    made = stretto.schedule(Loop("<b>", ops), FUSES).to_document()
    picture = cast("str", rendered(made, "svg"))
    assert "<script" not in picture
    assert "&lt;script&gt;" in picture
    ElementTree.fromstring(picture)


def test_the_sheet_has_a_row_for_every_operation(told: dict[str, Any]) -> None:
    (entry,) = told["loops"]
    unit = entry["unit"]
    rows = list(csv.DictReader(io.StringIO(cast("str", rendered(told, "csv")))))
    assert [row["op"] for row in rows] == [op["name"] for op in entry["ops"]]
    for row, op in zip(rows, entry["ops"], strict=True):
        assert int(row[f"start_{unit}"]) == op["start"]
        assert int(row[f"ii_{unit}"]) == entry["ii"]
        later = op["slack"]["later"]
        assert row[f"slack_later_{unit}"] == ("" if later is None else str(later))


# The command line -------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "svg", "trace"])
def test_a_format_goes_to_a_file_or_to_stdout(
    form: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    command = ["schedule", str(EXAMPLES / "gemm.mlir"), "--format", form]
    assert main(command) == 0
    out = capfdbinary.readouterr().out
    assert main([*command, "-o", str(tmp_path / "x")]) == 0
    assert (tmp_path / "x").read_bytes() == out
    assert not capfdbinary.readouterr().out


def test_json_is_a_format(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bounds", str(EXAMPLES / "gemm.mlir")]
    main([*command, "--json"])
    plain = capsys.readouterr().out
    main([*command, "--format", "json"])
    assert capsys.readouterr().out == plain
    assert main(["bounds", "--format", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["success"] is False
    assert main([*command, "--format", "svg"]) == 2


def test_a_loop_without_a_schedule_leaves_the_others_their_picture() -> None:
    good = document("four_op.json")
    bad = {"name": "bad", "success": False, "errors": ["no"]}
    both = {**good, "loops": [bad, *good["loops"]]}
    for form in ("csv", "svg", "trace"):
        assert rendered(both, form)
    assert ">no<" in str(rendered(both, "svg"))


@pytest.mark.parametrize("form", ["csv", "html", "svg", "trace"])
def test_a_loop_without_a_schedule_says_why_beside_every_view(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["schedule", str(EXAMPLES / "four_op.json"), "--max-ii", "14", "--format", form]
    assert main([*command, "-o", str(tmp_path / "x")]) == 1
    assert "no schedule" in capsys.readouterr().err


def test_a_picture_in_a_notebook_changes_nothing_around_it() -> None:
    found = re.search("<style>(.*)</style>", str(rendered(document("four_op.json"), "svg")))
    assert found is not None
    selectors = re.findall(r"([^{}]+)\{", found[1])
    assert {s for s in selectors if not s.startswith(".stretto ")} == {
        "@media(prefers-color-scheme:dark)"
    }


def test_no_name_is_a_formula_in_a_spreadsheet() -> None:
    names = ["=1+1", "+a", "-2+3", "@SUM(A1)", "\t=1", "-5", "+1e3", "plain", 'a,"b']
    (row,) = csv.reader(io.StringIO(record([*names, -5])))
    told = ["'=1+1", "'+a", "'-2+3", "'@SUM(A1)", "'\t=1", *names[5:], "-5"]
    assert row == told


def test_the_source_of_a_page_is_what_its_operations_come_from(tmp_path: Path) -> None:
    file = str(EXAMPLES / "gemm.mlir")
    text = Path(file).read_text("utf-8")
    told = stretto.schedule(stretto.read(file)[0]).to_document() | {"source": {"file": file}}
    assert with_source(told, text)["source"] == {"file": file, "text": text}
    kernel = next((EXAMPLES / "triton").glob("*.ttir"))
    own = stretto.schedule(stretto.read(kernel, "h200")[0], "h200").to_document()
    own["source"] = {"file": str(kernel)}
    shown = with_source(own, "what was read")["source"]
    assert shown["file"].endswith(".py")
    assert "def " in shown["text"]
    own["source"] = {"file": str(tmp_path / kernel.name)}
    assert with_source(own, "what was read")["source"]["text"] == "what was read"

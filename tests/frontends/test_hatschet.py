"""Graphs of HatScheT: read with the model beside them, every fault with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from stretto import DocumentError, StrettoError
from stretto.cli.main import main
from stretto.loop import Dependence, Use

GRAPH = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <graph>
    <node id="1"><data key="name">a</data><data key="uses_resource">mult</data></node>
    <node id="2"><data key="name">b</data><data key="uses_resource">mult</data></node>
    <node id="3"><data key="name">c</data><data key="uses_resource">wire</data></node>
    <edge source="1" target="2">
      <data key="distance">0</data><data key="delay">1</data><data key="deptype">Data</data>
    </edge>
    <edge source="2" target="1">
      <data key="distance">2</data><data key="delay">0</data><data key="deptype">Precedence</data>
    </edge>
    <edge source="1" target="3"/>
  </graph>
</graphml>
"""
MODEL = """<ModelInformation><Resources>
<Resource blockingTime="3" latency="4" limit="1" name="mult" physicalDelay="0.0"/>
<Resource blockingTime="0" latency="0" limit="-1" name="wire" physicalDelay="0.4"/>
<Resource blockingTime="1" latency="2" limit="7" name="unused" physicalDelay="0.0"/>
</Resources></ModelInformation>
"""


def _files(folder: Path, graph: str = GRAPH, model: str = MODEL, end: str = "_RM.xml") -> Path:
    (folder / f"g{end}").write_text(model, encoding="utf-8")
    (folder / "g.graphml").write_text(graph, encoding="utf-8")
    return folder / "g.graphml"


@pytest.mark.parametrize("end", ["_RM.xml", "RM.xml"])
def test_a_graph_is_a_loop_on_the_machine_of_its_model(tmp_path: Path, end: str) -> None:
    source = stretto.read(_files(tmp_path, end=end))
    (loop,) = source
    assert loop.name == "g"
    assert [(op.name, op.kind, op.uses, op.latency) for op in loop.ops] == [
        ("a", "mult", (Use("mult", 3),), 4),
        ("b", "mult", (Use("mult", 3),), 4),
        ("c", "wire", (), 0),
    ]
    assert loop.stated == (
        Dependence("a", "b", 5, 0, "flow"),
        Dependence("b", "a", 4, 2, "order"),
        Dependence("a", "c", 4, 0, "order"),
    )
    found = stretto.schedule(loop, prove=True)
    assert {slot.name: slot.capacity for slot in found.problem.machine.slots} == {"mult": 1}
    # One unit, held for 3 cycles by each, would allow 6: then b is 3 or 9 after a. But it is at
    # least 5 after a, and the next a but one 4 after b, so at most 2 × 6 - 4 = 8.
    assert (found.ii, found.proved) == (7, True)


def test_what_is_not_modelled_is_noted(tmp_path: Path) -> None:
    (note,) = stretto.read(_files(tmp_path)).notes
    assert note.text == (
        "g_RM.xml states physical delays (wire); how operations share a cycle is not modelled"
    )


def test_keys_may_be_declared(tmp_path: Path) -> None:
    keys = '<key id="d0" for="node" attr.name="uses_resource" attr.type="string"/><graph>'
    graph = GRAPH.replace("<graph>", keys).replace('key="uses_resource"', 'key="d0"')
    assert len(stretto.read(_files(tmp_path, graph))[0].ops) == 3


def test_nodes_of_one_name_go_by_their_ids(tmp_path: Path) -> None:
    graph = GRAPH.replace(">b<", ">a<")
    (loop,) = stretto.read(_files(tmp_path, graph))
    assert [op.name for op in loop.ops] == ["n1", "n2", "n3"]


def test_a_loop_without_limits_is_pipelined_all_the_same(tmp_path: Path) -> None:
    model = MODEL.replace('limit="1"', 'limit="-1"')
    found = stretto.schedule(stretto.read(_files(tmp_path, model=model))[0])
    assert (found.ii, found.generator) == (5, "cost-based")  # (5 + 4) / 2, rounded up


def test_letters_are_those_of_utf_8_whatever_the_file_says(tmp_path: Path) -> None:
    plain = GRAPH.replace("UTF-8", "ISO-8859-1")
    assert stretto.read(_files(tmp_path, plain))[0] == stretto.read(_files(tmp_path))[0]
    with pytest.raises(DocumentError, match="is said to be in `ISO-8859-1`"):
        stretto.read(_files(tmp_path, plain.replace(">a<", ">ä<")))
    assert stretto.read(_files(tmp_path, GRAPH.replace(">a<", ">ä<")))[0].ops[0].name == "ä"


def test_every_command_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(_files(tmp_path))
    for command in ("schedule", "bounds", "explain", "simulate"):
        assert main([command, file]) == 0, capsys.readouterr().err
        assert "g" in capsys.readouterr().out


FAULTS = [
    ("</graphml>", "", r"g\.graphml:\d+:\d+: error: not XML: no element found"),
    (
        "<graphml ",
        "<!DOCTYPE x [<!ENTITY e 'e'>]><graphml ",
        r"g\.graphml:2:\d+: error: has a document type",
    ),
    ('encoding="UTF-8"', 'encoding="UTF9"', r"g\.graphml:1:1: error: .*`UTF9`, and .* UTF-8"),
    ('encoding="UTF-8"', 'encoding="utf-7"', r"g\.graphml:1:1: error: .*`utf-7`, and .* UTF-8"),
    ('encoding="UTF-8"', 'encoding="idna"', r"g\.graphml:1:1: error: .*`idna`, and .* UTF-8"),
    ("graphml", "html", r"g\.graphml:2:1: error: is <html>; expected <graphml>"),
    ('source="1"', 'source="9"', r"7:5: error: `source` is `9`; expected the id of a node"),
    ('target="2"', "", r"7:5: error: <edge> has no `target`"),
    ('id="2"', 'id="1"', r"5:5: error: node `1` stands twice"),
    ("wire<", "wires<", r"6:5: error: node `3` uses resource `wires`; .*has mult, wire, unused"),
    ('<data key="uses_resource">wire</data>', "", r"6:5: error: node `3` uses no resource"),
    ('>2</data><data key="delay"', '>two</data><data key="delay"', r"`distance` is 'two'"),
    ('"distance">2', '"distance">-2', r"10:5: error: `distance` is -2; expected .* at least 0"),
    ('"delay">1', '"delay">-5', r"the latency is -1 \(4 of `a` and a delay of -5\)"),
]


@pytest.mark.parametrize(("old", "new", "told"), FAULTS)
def test_a_fault_of_the_graph_has_its_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in GRAPH
    with pytest.raises(DocumentError, match=told):
        stretto.read(_files(tmp_path, GRAPH.replace(old, new)))


MODEL_FAULTS = [
    ('limit="1"', 'limit="0"', r"g_RM\.xml:2:1: error: `limit` is 0; expected a number of units"),
    ('latency="4"', 'latency="-4"', r"`latency` is -4; expected a whole number of at least 0"),
    ('latency="4"', 'latency="four"', r"`latency` is 'four'; expected a whole number"),
    ('latency="4"', f'latency="{"9" * 5000}"', r"`latency` is '9999"),
    ("0.4", "quick", r"`physicalDelay` is no number"),
    ('name="wire"', 'name="mult"', r"resource `mult` stands twice"),
    ("Resource ", "Res ", r"has no <Resource>"),
]


@pytest.mark.parametrize(("old", "new", "told"), MODEL_FAULTS)
def test_a_fault_of_the_model_has_its_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in MODEL
    with pytest.raises(DocumentError, match=told):
        stretto.read(_files(tmp_path, model=MODEL.replace(old, new)))


def test_a_reservation_table_is_refused_not_dropped(tmp_path: Path) -> None:
    row = 'name="mult" physicalDelay="0.0"'
    model = MODEL.replace(row + "/>", row + "><ReservationTable/></Resource>")
    with pytest.raises(DocumentError, match="resource `mult` has a reservation table"):
        stretto.read(_files(tmp_path, model=model))


def test_a_graph_without_a_model_says_which_is_sought(tmp_path: Path) -> None:
    file = _files(tmp_path)
    (tmp_path / "g_RM.xml").unlink()
    with pytest.raises(StrettoError, match=r"with g_RM\.xml or gRM\.xml beside it"):
        stretto.read(file)


def test_an_empty_graph_is_no_loop(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="has no node"):
        stretto.read(_files(tmp_path, "<graphml><graph/></graphml>"))

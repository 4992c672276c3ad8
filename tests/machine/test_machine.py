"""Machines: the shipped ones state what they should, and a bad file says what is wrong."""

from __future__ import annotations

import pickle
import re

import pytest

from stretto.errors import DocumentError, MachineError
from stretto.machine import Machine, load_machine, machine_names, read_machine

MINIMAL = """
[machine]
name = "mine"
[slots.a]
capacity = 2
[pools.p]
cap = 3
[encodings.add]
opcodes = ["add"]
uses = [{ slot = "a", duration = 4 }]
latency = "max(4, elements // 32)"
demands = { p = 1 }
"""


@pytest.fixture(scope="module")
def blackwell() -> Machine:
    return load_machine("blackwell", {})


@pytest.fixture(scope="module")
def b200() -> Machine:
    return load_machine("b200-pipes", {})


def test_four_targets_ship() -> None:
    assert machine_names() == ("b200", "b200-pipes", "blackwell", "h200")


def test_the_b200_has_the_pipes_of_another_and_agents_of_its_own(b200: Machine) -> None:
    """The rows cost what they cost there, and hold the issue slot of whoever has the work."""
    machine = load_machine("b200", {})
    agents = {agent.name: agent.issues for agent in machine.agents}
    assert agents == {"copy": ("tma",), "product": ("mma",), "compute": ("simt",)}
    for row in machine.encodings:
        alone = b200.encoding(row.name)
        pipes = [use for use in row.uses if use.slot not in agents]
        assert [use.duration for use in pipes] == [use.duration for use in alone.uses]
        assert [use.slot for use in pipes] == [use.slot for use in alone.uses]
        assert len([use for use in row.uses if use.slot in agents]) == bool(row.uses)
        assert row.latency == alone.latency


def test_blackwell_slots(blackwell: Machine) -> None:
    names = [
        *("issue", "xu", "xu64", "fp32x2_fp16ultra", "alu", "alu_or_fmaheavy", "dual_alu", "lsu"),
        *("tmem", "mma", "tc_and_mma", "tma", "tp_gnic_rd", "tp_gnic_wr", "tp_smem_rd"),
        *("tp_smem_wr", "tp_tmem_rd", "tp_tmem_wr", "tp_mma", "unknown", "omitted_simt"),
        *("test_simt", "test_mma", "test_dma"),
    ]
    assert [s.name for s in blackwell.slots] == names
    assert [s.id for s in blackwell.slots] == list(range(1, 25))
    coarse = {s.id for s in blackwell.slots if s.kind == "coarse"}
    assert coarse == {1, 2, 3, 5, 8, 9, 10, 12}
    assert [s.name for s in blackwell.slots if s.kind == "test"] == ["test_dma"]
    primary = {s.id for s in blackwell.slots if s.primary}
    assert primary == {4, 6, 7, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}


def test_blackwell_capacities_and_fusion(blackwell: Machine) -> None:
    special = {s.name: s.capacity for s in blackwell.slots if s.capacity != 1}
    assert special == {"alu_or_fmaheavy": 4, "dual_alu": 3, "omitted_simt": None}
    assert {s.name: s.fusion_cap for s in blackwell.slots if s.fusion_cap > 1} == {"tp_smem_rd": 5}


def test_blackwell_latency_table(blackwell: Machine) -> None:
    by_slot = {
        6: (4, [0x0B, 0x09, 0x0A, 0x15, 0x16, 0x17]),
        7: (2, [0x0C, 0x03, 0x01, 0x02]),
        4: (4, [0x0D, 0x0E, 0x0F, 0x10]),
        15: (7, [0x1C]),
        16: (7, [0x1C, 0x1D]),
        17: (7, [0x1E]),
        18: (7, [0x1F]),
        11: (8, [0x18, 0x19]),
        19: (7, [0x20]),
        13: (7, [0x21]),
        14: (7, [0x22]),
    }
    assert len(blackwell.tags) == 23
    for id, (latency, tags) in by_slot.items():
        name = blackwell.slots[id - 1].name
        assert [t.tag for t in blackwell.tags if name in t.slots] == tags
        assert {t.latency for t in blackwell.tags if name in t.slots} == {latency}
    absent = {0x11, 0x12, 0x13, 0x14, 0x1A, 0x1B}
    assert not absent & {t.tag for t in blackwell.tags}


def test_blackwell_figures(blackwell: Machine) -> None:
    anchors = [s.anchor for s in blackwell.slots]
    assert anchors[:20] == [
        *(100, 100, 110, 101, 102, 102, 103, 103, 120, 104, 121, 104),
        *(200, 400, 800, 900, 1500, 2000, 2400, 3000),
    ]
    assert anchors[20:] == [None] * 4
    assert [f.values for f in blackwell.anchors] == [(50, 100, 200, 360), (600, 800, 1000, 1200)]
    assert {f.name: f.values[0] for f in blackwell.ceilings} == {
        "far_memory": 5000,
        "cross_cluster": 7000,
    }
    assert {f.values[0] for f in blackwell.fences} == {1600, 2000}
    assert (blackwell.cost("spill_weight"), blackwell.cost("spill_cap")) == (17, 4096)
    caps = ("bank_claims_in_iteration", "bank_claims_carried")
    assert [blackwell.limit(name) for name in caps] == [4, 3]
    assert [c.value for c in blackwell.cells] == [37, 4, 7, 37, 5, 1, 3, 6, 2]
    assert [c.index for c in blackwell.cells] == list(range(9))
    assert {f.name: f.values[0] for f in blackwell.tier2} == {
        "tmem_bytes": 262144,
        "register_bytes": 262144,
        "alu_issue": 3,
        "smem_bytes": 232448,
        "alu_or_fma_issue": 4,
        "register_bank_width": 2048,
    }
    assert {f.name: f.latency for f in blackwell.families} == {
        "dual_alu": 2,
        "alu_or_fma": 4,
        "transport": 7,
        "tensor_core": 8,
        "far_memory": None,
    }
    assert {b.space: b.bytes for b in blackwell.budgets} == {
        "smem": 232448,
        "tmem": 262144,
        "register": 262144,
    }
    assert {p.name: p.cap for p in blackwell.pools} == {
        "register_bank": 2,
        "bank_width": 2048,
        "smem_lock": 1,
    }


def test_b200_pipes(b200: Machine) -> None:
    assert [(s.name, s.capacity) for s in b200.slots] == [
        ("TMA", 1),
        ("TC", 1),
        ("CUDA", 1),
        ("SFU", 1),
    ]
    assert {b.space: b.bytes for b in b200.budgets if b.space != "register"} == {
        "smem": 232448,
        "tmem": 262144,
    }
    assert b200.fallback is None
    assert all(s.fusion_cap == 1 for s in b200.slots)


@pytest.mark.parametrize("name", ["blackwell", "b200-pipes"])
def test_every_constant_has_its_source(name: str) -> None:
    machine = load_machine(name, {})
    rows = [
        *machine.slots,
        *machine.pools,
        *machine.budgets,
        *machine.encodings,
        *machine.families,
        *machine.tags,
        *machine.cells,
        *machine.tier2,
        *machine.anchors,
        *machine.ceilings,
        *machine.fences,
        *machine.costs,
        *machine.limits,
    ]
    assert [row for row in rows if not row.source] == []


@pytest.mark.parametrize("name", ["blackwell", "b200-pipes"])
def test_unlimited_smem_is_lifted_and_said(name: str) -> None:
    variable = "TILE_AS_DEBUG_UNLIMITED_SMEM"
    lifted = load_machine(name, {variable: "1"})
    budget = lifted.budget("smem")
    assert budget is not None
    assert budget.bytes is None
    assert any(variable in note for note in lifted.notes)
    for value in ("0", "true", ""):
        kept = load_machine(name, {variable: value}).budget("smem")
        assert kept is not None
        assert kept.bytes == 232448
    assert load_machine(name, {}).notes == ()


def test_machines_pickle(blackwell: Machine) -> None:
    assert pickle.loads(pickle.dumps(blackwell)) == blackwell


def test_users_own_machine() -> None:
    machine = read_machine("my.toml", MINIMAL, {})
    assert machine.slot("a").capacity == 2
    assert machine.slot("a").id == 1
    many = MINIMAL + "".join(f"[slots.x{i}]\ncapacity = {i + 1}\n" for i in range(100))
    assert len(read_machine("my.toml", many, {}).slots) == 101


def test_no_such_machine() -> None:
    with pytest.raises(
        MachineError, match="no machine `turing`; known: b200, b200-pipes, blackwell, h200"
    ):
        load_machine("turing")
    with pytest.raises(DocumentError, match=r"^gone\.toml: error: cannot be read: No such file"):
        load_machine("gone.toml")


BAD: list[tuple[str, str, str]] = [
    ("capacity = 2", "capacity = 0", r"slots\.a\.capacity: error: is 0; expected .* at least 1"),
    ("capacity = 2", 'capacity = "two"', r"slots\.a\.capacity: error: is \"two\"; .*\"unlimited\""),
    ("capacity = 2", "capacity = true", r"slots\.a\.capacity: error: is true; expected a whole"),
    ("capacity = 2", "capacity = 1.5", r"slots\.a\.capacity: error: is 1\.5; expected a whole"),
    ("capacity = 2", "", r"slots\.a\.capacity: error: is missing; this key is required"),
    (
        "capacity = 2",
        "capacity = 2\ncapacty = 2",
        r"slots\.a\.capacty: error: unknown key; did you",
    ),
    ("[slots.a]\ncapacity = 2", "", r"slots: error: is missing"),
    ("[slots.a]\ncapacity = 2", "[slots]", r"slots: error: has no slot"),
    ("capacity = 2", "capacity = 2\nid = 1\n[slots.b]\ncapacity = 1\nid = 1", r"slots\.b: .*id 1"),
    ('name = "mine"', "", r"machine\.name: error: is missing"),
    ('name = "mine"', 'name = ""', r"machine\.name: error: is \"\"; expected a string"),
    ("cap = 3", "cap = -1", r"pools\.p\.cap: error: is -1; expected .* at least 1"),
    (
        'slot = "a"',
        'slot = "b"',
        r"encodings\.add\.uses\[0\]\.slot: error: no slot 'b'; .*one of a",
    ),
    ("duration = 4", "duration = -4", r"encodings\.add\.uses\[0\]\.duration: error: is -4"),
    (
        "duration = 4",
        "duration = 4, occupancy = 3",
        r"uses\[0\]\.occupancy: error: is 3; .*capacity 2",
    ),
    (
        "{ p = 1 }",
        "{ q = 1 }",
        r"encodings\.add\.demands\.q: error: no pool `q`; expected one of p",
    ),
    ("elements // 32", "elements ** 32", r"encodings\.add\.latency: error: .*formulas do not have"),
    ("elements // 32", "elements //", r"encodings\.add\.latency: error: .*is not a formula"),
    ("latency =", "tag = 7\nlatency =", r"encodings\.add\.tag: error: is 0x07, which the tags"),
    (
        "latency =",
        "charges = [7]\nlatency =",
        r"encodings\.add\.charges\[0\]: error: is 0x07, which the tags",
    ),
    ("[pools.p]", "[whatsits]\n[pools.p]", r"whatsits: error: unknown key; known keys: .*slots"),
    (
        "[pools.p]",
        "[celings]\n[pools.p]",
        r"celings: error: unknown key; did you mean `ceilings`\?",
    ),
    (
        'name = "mine"',
        'name = "mine"\npipelining = [["z"]]',
        r"pipelining\[0\]: error: is \[\"z\"\]",
    ),
    ('name = "mine"', 'name = "mine"\nfallback = []', r"machine\.fallback: error: is \[\]"),
    ('slot = "a"', 'slot = ["a"]', r"uses\[0\]\.slot: error: is \[\"a\"\]; expected a string"),
    (
        "[pools.p]",
        '[ceilings.far_memory]\nvalues = []\nmeaning = "x"\n[pools.p]',
        r"ceilings\.far_memory\.values: error: is empty; expected one number or more",
    ),
    ("cap = 3", "cap = 0x" + "f" * 9000, r"pools\.p\.cap: error: a number is too long"),
    ("cap = 3", "cap = " + "9" * 9000, r"error: not TOML: a number is too long"),
    ('name = "mine"', "name = 0x" + "f" * 9000, r"machine\.name: error: a number is too long"),
    ("cap = 3", "cap = " + "[" * 9000, r"error: not TOML: nested too deeply"),
    (
        "[pools.p]",
        "[budgets.l2]\nbytes = 5\n[pools.p]",
        r"budgets\.l2: error: unknown memory space",
    ),
    (
        'name = "mine"',
        'name = "mine"\nfallback = "x"',
        r"machine\.fallback: error: is 'x'; expected",
    ),
    (
        'name = "mine"',
        'name = "mine"\npipelining = ["z"]',
        r"machine\.pipelining\[0\]: error: no slot",
    ),
    ("[machine]", "[machine", r"^my\.toml: error: not TOML: "),
]


FORMULAS: list[tuple[str, str, str]] = [
    (
        "elements // 32",
        "elemnts // 32",
        r"add\.latency: error: .* names `elemnts`; known: elements,",
    ),
    (
        "max(4, elements // 32)",
        "ceil(1, 2)",
        r"latency: error: .*gives ceil 2; it takes one argument",
    ),
    ("max(4, elements // 32)", "max(4)", r"latency: error: .*gives max 1; it takes two arguments"),
    ("max(4, elements // 32)", "min()", r"latency: error: .*gives min 0; it takes two arguments"),
    ("max(4, elements // 32)", "4 - 5", r"add\.latency: error: `4 - 5` is -1, below 0"),
    ("max(4, elements // 32)", "7 / 2", r"add\.latency: error: `7 / 2` is 7/2, not whole"),
    ("max(4, elements // 32)", "7 // 0", r"add\.latency: error: `7 // 0` divides by zero"),
    (
        "max(4, elements // 32)",
        "bytes < 4",
        r"latency: error: `bytes < 4` is a condition, not a num",
    ),
    ("max(4, elements // 32)", "buffer", r"add\.latency: error: `buffer` is a word, not a number"),
    ("max(4, elements // 32)", "buffer * 2", r"`buffer` is a word where a number is needed"),
    (
        'uses = [{ slot = "a", duration = 4 }]',
        'uses = [{slot = "a", duration = "m +"}]',
        "duration",
    ),
    ("{ p = 1 }", '{ p = "1 / 3" }', r"add\.demands\.p: error: `1 / 3` is 1/3, not whole"),
    ("demands =", "when = 3\ndemands =", r"add\.when: error: is 3, a number; expected a condition"),
    (
        "demands =",
        'when = "m + 1"\ndemands =',
        r"add\.when: error: `m \+ 1` is a number, not a cond",
    ),
    ("demands =", "when = 'buffer == 3'\ndemands =", r"`3` is a number where a word is needed"),
    ("demands =", "when = 'not m'\ndemands =", r"`m` is a number where a condition is needed"),
    (
        "demands =",
        'needs = [{ condition = "1 + 1", why = "x" }]\ndemands =',
        r"needs\[0\]\.condition: error: `1 \+ 1` is a number, not a condition",
    ),
    (
        "[encodings.add]",
        '[demands]\np = "bank_pears"\n[encodings.add]',
        r"^my\.toml: demands\.p: error: .*names `bank_pears`; known",
    ),
]

TAGGED = """
[[tags]]
tag = 7
latency = 5
slots = ["a"]
family = "f"
"""


def test_the_cost_of_a_tag_is_that_of_its_row() -> None:
    tagged = MINIMAL.replace("latency =", "tag = 7\nlatency =") + TAGGED
    with pytest.raises(DocumentError) as caught:
        read_machine("my.toml", tagged, {})
    assert str(caught.value) == (
        "my.toml: encodings.add.uses[0].duration: error: is 4; tag 0x07 has 5 on `a`; "
        "make them equal, or say in a `note` why they differ"
    )
    explained = tagged.replace("tag = 7\nlatency =", 'tag = 7\nnote = "half"\nlatency =', 1)
    assert read_machine("my.toml", explained, {}).encoding("add").note == "half"
    read_machine("my.toml", tagged.replace("latency = 5", "latency = 4"), {})


def test_blackwell_holds_as_its_tags_say(blackwell: Machine) -> None:
    tags = {tag.tag: tag for tag in blackwell.tags}
    for encoding in blackwell.encodings:
        if encoding.tag is not None:
            tag = tags[encoding.tag]
            held = {u.slot: u.duration.cost({}) for u in encoding.uses}
            assert {held[slot] for slot in tag.slots if slot in held} == {tag.latency}


def test_a_tma_load_is_charged_under_both_transports(blackwell: Machine) -> None:
    assert blackwell.encoding("tma_load").tags == (0x1C, 0x1D)
    assert blackwell.encoding("smem_read").tags == (0x1C,)
    assert blackwell.encoding("view").tags == ()


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read_machine("my.toml", "\ufeff" + MINIMAL, {}).name == "mine"


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_a_name_that_is_no_path(name: str) -> None:
    with pytest.raises(MachineError, match="no machine"):
        load_machine(name)
    with pytest.raises(DocumentError, match="cannot be read"):
        load_machine(f"{name}.toml")


@pytest.mark.parametrize(("old", "new", "message"), BAD + FORMULAS)
def test_bad_file_says_key_fault_and_expectation(old: str, new: str, message: str) -> None:
    assert old in MINIMAL
    with pytest.raises(DocumentError) as caught:
        read_machine("my.toml", MINIMAL.replace(old, new), {})
    assert str(caught.value).startswith("my.toml: ")
    assert re.search(message, str(caught.value)), str(caught.value)


# Machines that stand in the loop ----------------------------------------------------------


def test_a_text_of_several_lines_is_a_machine_file() -> None:
    machine = load_machine('[machine]\nname = "here"\n[slots.mult]\ncapacity = 2\n')
    assert (machine.name, machine.slot("mult").capacity) == ("here", 2)


def test_its_faults_have_their_key() -> None:
    with pytest.raises(DocumentError, match=r"^<machine>: slots\.mult\.capacity: error: is 0"):
        load_machine('[machine]\nname = "here"\n[slots.mult]\ncapacity = 0\n')


def test_any_number_of_them_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, object] = {}
    monkeypatch.setattr("stretto.machine.load._LOADED", kept)
    monkeypatch.setattr("stretto.machine.load.KEPT", 4)
    for units in range(1, 20):
        load_machine(f'[machine]\nname = "here"\n[slots.mult]\ncapacity = {units}\n')
        assert len(kept) <= 4

"""Loop JSON: exact round trip, a schema that agrees with the reader, the path of every fault."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import parse_loop
from generated import Problem, problems
from stretto.errors import DocumentError
from stretto.loop import Facts, Loop, Op, Value
from stretto.loop.json import dump_loop, loop_to_json

SCHEMA = json.loads(
    resources.files("stretto.loop").joinpath("loop.schema.json").read_text(encoding="utf-8")
)
VALIDATOR: Any = jsonschema.Draft202012Validator(SCHEMA)


def accepts(document: Any) -> bool:
    return VALIDATOR.is_valid(document)


def reads(document: Any) -> bool:
    try:
        parse_loop("l.json", json.dumps(document))
    except DocumentError:
        return False
    return True


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@given(problems())
def test_round_trip_is_exact(problem: Problem) -> None:
    text = dump_loop(problem.loop)
    again = parse_loop("l.json", text)
    assert again == problem.loop
    assert dump_loop(again) == text
    assert accepts(json.loads(text))


def test_every_field_survives() -> None:
    facts = Facts(1, 2, 3, (-4, 5), "tmem", 6, 7, 8, 9, True, 10, False, 11, (0, 63))
    assert None not in [getattr(facts, name) for name in Facts.__dataclass_fields__]
    loop = Loop(
        "l",
        (Op("a", "k", facts=facts, parent="b", encoding="e", agent="x", uses=()), Op("b", "k")),
        (Value("ü"),),
        machine="m",
        slots=("own",),
        force_serial=True,
    )
    assert parse_loop("l.json", dump_loop(loop)) == loop


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[Any]", value)))
    for key, part in inner:
        found += places(part, (*path, key))
    return found


DAMAGE: list[Any] = ["drop", "unknown", -1, 0, 1, 1.5, "", "text", None, True, [], {}]


@given(problems(max_ops=3), st.data())
def test_reader_and_schema_agree_on_damaged_documents(
    problem: Problem, data: st.DataObject
) -> None:
    document = loop_to_json(problem.loop)
    document = json.loads(json.dumps(document))
    *way, last = data.draw(st.sampled_from([p for p in places(document) if p]))
    inner: Any = document
    for step in way:
        inner = inner[step]
    damage = data.draw(st.sampled_from(DAMAGE))
    if damage == "drop":
        del inner[last]
    elif damage == "unknown" and isinstance(inner, dict):
        inner["surprise"] = 1
    else:
        inner[last] = damage
    # The schema cannot know element types; the reader does.
    if last != "type":
        assert accepts(document) == reads(document), document


BASE: dict[str, Any] = {
    "schema": "stretto.loop/1",
    "name": "l",
    "values": [{"name": "x", "type": "4xf32"}],
    "storages": [{"name": "m", "space": "smem", "bytes": 4}],
    "ops": [
        {"name": "a", "kind": "k", "results": ["x"], "uses": [{"slot": "s", "duration": 1}]},
        {"name": "b", "kind": "k", "operands": [{"value": "x"}], "facts": {"bounds": [0, 1]}},
    ],
    "dependences": [{"src": "a", "dst": "b", "latency": 3}],
}

BAD: list[tuple[tuple[Any, ...], Any, str]] = [
    (("schema",), "stretto.loop/9", r"\$\.schema: error: is 'stretto.loop/9'; expected \"stretto"),
    (("ops", 0, "uses", 0, "duration"), -1, r"\$\.ops\[0\]\.uses\[0\]\.duration: error: is -1"),
    (("ops", 0, "uses", 0), 7, r"\$\.ops\[0\]\.uses\[0\]: error: is 7; expected a table"),
    (("ops", 1, "operands", 0, "value"), "", r"\$\.ops\[1\]\.operands\[0\]\.value: error"),
    (("ops", 1, "facts", "bounds"), [3, 1], r"\$\.ops\[1\]\.facts\.bounds: error: is \[3, 1\]"),
    (("ops",), {}, r"\$\.ops: error: is \{\}; expected a list"),
    (("values", 0, "type"), "4xf99x", r"\$\.values\[0\]\.type: error: `4xf99x` is not a tile type"),
    (
        ("storages", 0, "space"),
        "l2",
        r"\$\.storages\[0\]\.space: error: is \"l2\"; expected one of",
    ),
    (("dependences", 0, "kind"), "true", r"\$\.dependences\[0\]\.kind: error: is \"true\""),
    (("machin",), "m", r"\$\.machin: error: unknown key; did you mean `machine`\?"),
    (
        ("ops", 0, "latensy"),
        1,
        r"\$\.ops\[0\]\.latensy: error: unknown key; did you mean `latency`",
    ),
    (("name",), "a\ud800", r"\$\.name: error: \"a\\ud800\" is not text; \\ud800 alone is half"),
    (("ops", 1, "kind"), "\udfff", r"\$\.ops\[1\]\.kind: error: .* is not text"),
    (("\ud800",), 1, r"\$: error: \"\\ud800\" is not text"),
    (
        ("ops", 0, "uses", 0, "duration"),
        10**1000,
        r"\$\.ops\[0\]\.uses\[0\]\.duration: error: a number is too long; at most 1000 digits",
    ),
    (("opps",), [], r"\$\.opps: error: unknown key; did you mean `ops`\?"),
]


@pytest.mark.parametrize(("place", "value", "message"), BAD)
def test_a_fault_has_its_path(place: tuple[Any, ...], value: Any, message: str) -> None:
    document = json.loads(json.dumps(BASE))
    assert reads(document)
    inner = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(DocumentError) as caught:
        parse_loop("l.json", json.dumps(document))
    assert str(caught.value).startswith("l.json: $")
    assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "l.json:1:1: error: not JSON"),
        ("{", "l.json:1:2: error: not JSON"),
        ('{"a": NaN}', "l.json: error: not JSON: NaN is not a JSON number"),
        ('{"a": 1, "a": 2}', "l.json: error: not JSON: a key stands twice"),
        (
            '{"schema": "stretto.loop/1", "a": 1, "a": 2}',
            'l.json: error: not JSON: the key "a" stands twice',
        ),
        ("[" * 100_000, "l.json: error: not JSON: nested too deeply"),
        ("[]", "l.json: $: error: is []; expected a table"),
    ],
)
def test_what_is_no_json(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_loop("l.json", text)
    assert str(caught.value).startswith(message)


def test_pairs_of_surrogates_are_characters() -> None:
    document = json.dumps(BASE | {"name": "\U0001d11e"})
    assert "\\ud834\\udd1e" in document
    assert parse_loop("l.json", document).name == "\U0001d11e"


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse_loop("l.json", "\ufeff" + json.dumps(BASE)).name == "l"


def test_a_number_too_long_for_python() -> None:
    document = json.dumps(BASE).replace('"duration": 1', '"duration": ' + "9" * 5000)
    with pytest.raises(
        DocumentError, match=r"error: not JSON: a number is too long \(5000 digits\)"
    ):
        parse_loop("l.json", document)

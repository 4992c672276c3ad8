"""`stretto view`: the answers behind the page, and who gets them."""

from __future__ import annotations

import http.client
import importlib.util
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

import stretto
from stretto.errors import StrettoError
from stretto.machine import load_machine
from stretto.machine.settings import with_settings
from stretto.view.change import Change
from stretto.view.server import Server
from stretto.view.tiles import extents, with_tiles
from stretto.view.workshop import Workshop

EXAMPLES = Path(__file__).parents[2] / "examples"
FORWARD = str(EXAMPLES / "attention_forward.mlir")
NAME = "attention_forward"


@pytest.fixture(scope="module")
def workshop() -> Workshop:
    return Workshop.opened(FORWARD)


def built(**sizes: int) -> stretto.Loop:
    """Attention forward as its own builder makes it, with other sizes."""
    path = EXAMPLES / "attention_forward.py"
    found = importlib.util.spec_from_file_location("attention_of_other_sizes", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    text = path.read_text(encoding="utf-8")
    names = "ROWS, KEYS, DEPTH = 128, 64, 128"
    assert names in text
    values = ", ".join(str(sizes.get(name, size)) for name, size in SIZES.items())
    exec(compile(text.replace(names, f"ROWS, KEYS, DEPTH = {values}"), path, "exec"), vars(module))
    return module.make()


SIZES = {"rows": 128, "keys": 64, "depth": 128}


# Tiles ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "sizes"),
    [
        ({"load_k[0]": 128}, {"keys": 128}),
        ({"load_k[0]": 32}, {"keys": 32}),
        ({"q[0]": 64}, {"rows": 64}),
        ({"q[1]": 64, "o[1]": 64}, {"depth": 64}),
        ({"q[0]": 64, "load_k[0]": 32}, {"rows": 64, "keys": 32}),
    ],
)
def test_another_tile_makes_the_loop_that_its_builder_makes(
    changed: dict[str, int], sizes: dict[str, int]
) -> None:
    assert with_tiles(built(), changed) == built(**sizes)


def test_sizes_that_are_equal_by_chance_are_not_one_extent() -> None:
    found = {extent.name: extent for extent in extents(built())}
    assert {name: extent.size for name, extent in found.items()} == {
        "q[0]": 128,
        "q[1]": 128,
        "o[1]": 128,
        "load_k[0]": 64,
    }
    assert "p" in found["load_k[0]"].values
    assert "load_v" not in found["q[1]"].values


def test_a_broadcast_row_belongs_to_what_it_is_spread_over() -> None:
    (loop,) = stretto.read(EXAMPLES / "attention_backward.mlir")
    queries = next(e for e in extents(loop) if "load_lse" in e.values)
    assert {"load_q", "p", "load_delta"} <= set(queries.values)


def test_a_tile_that_cannot_be_is_refused() -> None:
    with pytest.raises(StrettoError, match="no extent `k\\[7\\]`"):
        with_tiles(built(), {"k[7]": 3})
    with pytest.raises(StrettoError, match="cannot be 99999999"):
        with_tiles(built(), {"q[0]": 99999999})


# Answers ----------------------------------------------------------------------------------


def test_the_document_is_what_the_command_line_prints(workshop: Workshop) -> None:
    text = stretto.schedule(stretto.read(FORWARD)[0]).to_json()
    (entry,) = workshop.document()["loops"]
    for key in ("ii", "ops", "storages", "bounds", "prediction", "slots"):
        assert entry[key] == text[key], key


@pytest.mark.parametrize(
    ("settings", "tiles"),
    [
        ({"slots.CUDA.capacity": 2}, {}),
        ({"budgets.smem.bytes": 65536}, {}),
        ({"encodings.mma.latency": 900}, {}),
        ({"encodings.reduce_sum.uses[0].duration": "100"}, {"load_k[0]": 128}),
    ],
)
def test_a_change_gives_what_the_front_door_gives_for_it(
    workshop: Workshop, settings: dict[str, int | str], tiles: dict[str, int]
) -> None:
    machine = with_settings("b200-pipes", settings)
    loop = with_tiles(stretto.read(FORWARD, machine)[0], tiles)
    expected = stretto.schedule(loop, machine)
    entry = workshop.solve(NAME, Change(settings, tiles))["entry"]
    assert entry["ii"] == expected.ii
    assert entry["bounds"]["mii"] == (expected.bounds.mii if expected.bounds else None)
    assert {op["name"]: op["start"] for op in entry["ops"]} == dict(expected.starts)
    plain = workshop.solve(NAME, Change())["entry"]
    assert (entry["ii"], entry["prediction"]) != (plain["ii"], plain["prediction"])


def test_a_pin_is_kept_and_the_rest_solved_anew(workshop: Workshop) -> None:
    entry = workshop.solve(NAME, Change(pins=("qk=start:900",)))["entry"]
    starts = {op["name"]: op["start"] for op in entry["ops"]}
    assert starts["qk"] == 900
    assert workshop.check(NAME, Change(pins=("qk=start:900",)), entry["ii"], placed(starts)) == []
    told = workshop.check(NAME, Change(pins=("qk=start:901",)), entry["ii"], placed(starts))
    assert {row["rule"] for row in told} == {"pin"}


def two(folder: Path) -> Workshop:
    """A loop of two operations that state their costs."""
    uses = [{"slot": "TC", "duration": 4}]
    ops = [{"name": name, "kind": "copy", "uses": uses, "latency": 9} for name in ("a", "b")]
    waits = [
        {"src": "a", "dst": "b", "latency": 9},
        {"src": "b", "dst": "a", "latency": 9, "distance": 1},
    ]
    document = {"schema": "stretto.loop/1", "name": "two", "machine": "b200-pipes", "ops": ops}
    file = folder / "two.json"
    file.write_text(json.dumps({**document, "dependences": waits}), encoding="utf-8")
    return Workshop.opened(str(file))


def test_a_change_that_leaves_no_schedule_says_why(workshop: Workshop, tmp_path: Path) -> None:
    entry = two(tmp_path).solve("two", Change(pins=("b=start:3",)))["entry"]
    assert not entry["success"]
    assert entry["errors"]
    with pytest.raises(StrettoError, match="smem holds 100 bytes"):
        workshop.solve(NAME, Change({"budgets.smem.bytes": 100}))
    with pytest.raises(StrettoError, match="did you mean `CUDA`"):
        workshop.solve(NAME, Change({"slots.CUD.capacity": 1}))
    with pytest.raises(StrettoError, match="there is no operation `qq`"):
        workshop.solve(NAME, Change(pins=("qq=start:1",)))


def placed(starts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "start": start} for name, start in starts.items()]


def test_the_rule_that_refuses_is_the_verifiers(workshop: Workshop) -> None:
    entry = workshop.solve(NAME, Change())["entry"]
    starts = {op["name"]: op["start"] for op in entry["ops"]}
    assert workshop.check(NAME, Change(), entry["ii"], placed(starts)) == []
    told = workshop.check(NAME, Change(), entry["ii"], placed({**starts, "load_s": 0}))
    expected = stretto.verify(
        stretto.read(FORWARD)[0], moved(entry, {**starts, "load_s": 0}), "b200-pipes"
    )
    assert told == [violation.to_json() for violation in expected.violations]
    assert "dependence" in {row["rule"] for row in told}


def moved(entry: dict[str, Any], starts: dict[str, int]) -> stretto.ScheduleAnalysis:
    from stretto.document import Cursor  # noqa: PLC0415
    from stretto.solution.json import read_schedule  # noqa: PLC0415

    row = {"name": NAME, "success": True, "ii": entry["ii"], "ops": placed(starts)}
    ready = stretto.prepare(stretto.read(FORWARD)[0])
    return read_schedule(Cursor("moved", "$", row), {NAME: ready.loop})


def test_what_can_be_changed_is_listed_with_its_path(workshop: Workshop) -> None:
    knobs = workshop.knobs(NAME)
    by_kind = {kind: [k for k in knobs if k["kind"] == kind] for kind in {k["kind"] for k in knobs}}
    assert set(by_kind) == {"capacity", "budget", "latency", "duration", "tile"}
    machine_paths = [k["path"] for k in knobs if k["kind"] != "tile"]
    for path in machine_paths:
        value = next(k["value"] for k in knobs if k["path"] == path)
        assert with_settings("b200-pipes", {path: value}) == load_machine("b200-pipes"), path


def test_a_latency_that_a_loop_states_can_be_changed(tmp_path: Path) -> None:
    stated = two(tmp_path)
    (loop,) = stated.source.loops
    own = [k for k in stated.knobs(loop.name) if k["kind"] == "stated"]
    assert [k["path"] for k in own] == ["a", "b"]
    slower = Change(latencies={own[0]["path"]: own[0]["value"] + 7})
    before, after = (
        next(
            op
            for op in stated.solve(loop.name, change)["entry"]["ops"]
            if op["name"] == own[0]["path"]
        )
        for change in (Change(), slower)
    )
    assert after["latency"] == before["latency"] + 7


def test_what_is_saved_reads_back(workshop: Workshop, tmp_path: Path) -> None:
    settings: dict[str, int | str] = {"slots.CUDA.capacity": 2}
    change = Change(settings, {"load_k[0]": 32}, {}, ("qk=start:900",))
    saved = {
        kind: workshop.save(NAME, change, kind) for kind in ("machine", "pins", "schedule", "loop")
    }
    for each in saved.values():
        (tmp_path / each.file).write_text(each.text, encoding="utf-8")
    machine = load_machine(str(tmp_path / saved["machine"].file))
    assert machine.slot("CUDA").capacity == 2
    (loop,) = stretto.read(tmp_path / saved["loop"].file)
    assert stretto.verify(loop, tmp_path / saved["schedule"].file, machine).legal
    assert schedule_with(f"--pin=@{tmp_path / saved['pins'].file}")["qk"] == 900
    assert schedule_with("--pin=qk=start:901")["qk"] == 901


def schedule_with(option: str) -> dict[str, int]:
    """The starts that the command line finds."""
    command = [sys.executable, "-c", "from stretto.cli import run; run()", "schedule", FORWARD]
    told = subprocess.run([*command, "--json", option], capture_output=True, check=True).stdout
    return {op["name"]: op["start"] for op in json.loads(told)["loops"][0]["ops"]}


# The server -------------------------------------------------------------------------------


@contextmanager
def serving(workshop: Workshop) -> Generator[Server]:
    server = Server(workshop)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


@pytest.fixture(scope="module")
def server(workshop: Workshop) -> Iterator[Server]:
    with serving(workshop) as found:
        yield found


def asked(
    server: Server, what: str, body: object = None, method: str = "", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    data = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json"} if data else {}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method or ("POST" if data else "GET"), what, data, sent)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_it_listens_on_the_loopback_interface_alone(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert urlsplit(server.address).hostname == "127.0.0.1"
    assert len(server.token) >= 32


def test_who_knows_the_token_gets_the_page_and_answers(server: Server) -> None:
    code, text = asked(server, f"/{server.token}/")
    assert code == 200
    assert b'"live"' in text
    code, text = asked(server, f"/{server.token}/solve", {"loop": NAME})
    assert code == 200
    assert json.loads(text)["entry"]["ii"] == 1325


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/guess/", {}),
        ("/guess/alive", {}),
        ("/{token}", {"Host": "attacker.example"}),
        ("/{token}/", {"Host": "attacker.example"}),
        ("/{token}/", {"Origin": "http://attacker.example"}),
        ("/{token}/", {"Origin": "null"}),
        ("/{token}/", {"Sec_Fetch_Site": "cross-site"}),
        ("/{token}/../../etc/passwd", {}),
        ("/{token}/page.html", {}),
    ],
)
def test_nobody_else_gets_anything(server: Server, path: str, headers: dict[str, str]) -> None:
    where = path.format(token=server.token)
    assert asked(server, where, **headers) == (404, b"")
    code, text = asked(server, where.rstrip("/") + "/solve", {"loop": NAME}, **headers)
    assert (code, text) == (404, b"")


def test_a_question_that_makes_no_sense_is_answered_in_words(server: Server) -> None:
    where = f"/{server.token}/solve"
    questions: tuple[tuple[object, str], ...] = (
        ([], "expected a table"),
        ({}, "$.loop: error: is missing"),
        ({"loop": "other"}, "there is no loop `other`"),
        ({"loop": NAME, "chnage": {}}, "unknown key"),
        ({"loop": NAME, "change": {"pins": "qk"}}, "expected a list"),
        ({"loop": NAME, "change": {"latencies": {"qk": -1}}}, "expected a whole number"),
    )
    for body, told in questions:
        code, text = asked(server, where, body)
        assert code == 200
        assert told in json.loads(text)["errors"][0]
    assert asked(server, where, {"loop": NAME}, Content_Type="text/plain")[0] == 415
    for length in ("99999999999", "9" * 5000, "-1", ""):
        assert asked(server, where, method="POST", Content_Length=length)[0] == 413
    assert asked(server, f"/{server.token}/save", {"loop": NAME, "kind": "rm"})[0] == 200


def test_a_port_that_is_taken_is_an_error_without_a_traceback(
    server: Server, workshop: Workshop
) -> None:
    with pytest.raises(StrettoError, match=f"cannot listen on 127.0.0.1:{server.port}"):
        Server(workshop, server.port)


@pytest.mark.parametrize("questions", [0, 1, 2, 3])
def test_ctrl_c_ends_it_quietly_right_after_an_answer_too(questions: int) -> None:
    command = [sys.executable, "-c", "from stretto.cli import run; run()", "view", FORWARD]
    with subprocess.Popen(
        [*command, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        asked_for = json.dumps({"loop": NAME, "kind": "pins"}).encode()
        for _ in range(questions):
            question = Request(f"{address}save", asked_for, {"Content-Type": "application/json"})
            with urlopen(question, timeout=20) as answer:
                assert answer.status == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "", "")


def test_an_input_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(StrettoError, match="cannot be read"):
        Workshop.opened("no-such-file.mlir")

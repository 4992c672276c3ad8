"""Dumps with a few characters changed: an error at a place, or a kernel; never a traceback."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from stretto.errors import StrettoError
from stretto.frontends.triton import read_ttir
from stretto.ir.kernels.writing import lowered_module
from stretto.ir.loops import read_loops
from stretto.ir.parsing import Parsed, verify_module
from stretto.machine import load_machine

HERE = Path(__file__).parents[1]
DUMPS = sorted(
    [*(HERE.parent / "examples/triton").glob("*.ttir"), *(HERE / "ttir").rglob("*.ttir")]
)
COUNT = 5000 if os.environ.get("STRETTO_HYPOTHESIS") == "deep" else 240
PARTS = 8


def _mutated(text: str, random: random.Random) -> str:
    """A text of which a few pieces are gone, doubled, exchanged or another."""
    body = text.index("tt.func")
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(body, len(text))
        end = min(len(text), at + random.choice([1, 1, 2, 8, 40]))
        match random.randrange(6):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:end] + text[at:end] + text[end:]
            case 2:
                other = random.randrange(body, len(text))
                text = text[:at] + text[other : other + (end - at)] + text[end:]
            case 3:
                text = text[:at] + random.choice("%#<>{}(),:=xi0129-\"'^@! \n") + text[at + 1 :]
            case 4:
                lines = text.split("\n")
                i, j = random.randrange(len(lines)), random.randrange(len(lines))
                lines[i], lines[j] = lines[j], lines[i]
                text = "\n".join(lines)
            case _:
                digits = [i for i in range(at, min(len(text), at + 200)) if text[i].isdigit()]
                if digits:
                    i = random.choice(digits)
                    text = text[:i] + random.choice("0123456789") + text[i + 1 :]
    return text


@pytest.mark.parametrize("part", range(PARTS))
def test_no_mutated_dump_ends_in_a_traceback(part: int) -> None:
    machine = load_machine("b200-pipes")
    chosen = random.Random(part)
    texts = [path.read_text() for path in DUMPS]
    read, told = 0, list[str]()
    for number in range(4 * COUNT // PARTS):
        if read and number >= COUNT // PARTS:
            break  # one at least is still a kernel
        text = _mutated(chosen.choice(texts), chosen)
        try:
            kernels = read_ttir("mutated.ttir", text)
            module, _ = lowered_module(kernels, machine)
            parsed = Parsed.of_module(module, "mutated.ttir")
            if not verify_module(parsed):
                read_loops(parsed, machine)
            read += 1
        except StrettoError as error:
            told.append(str(error))
    assert read > 0
    assert all("error" in said for said in told)

"""Recorded launches as TTIR, by Triton, without torch: `python dump.py FOLDER [NAME ...]`.

launches/liger.jsonl ──► FOLDER/liger.rms_norm._rms_norm_forward_kernel.ttir, .json beside it
                                                                             what Triton's own
                                                                             compile spills
"""

import argparse
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import absent
import triton.testing
from launches import TARGET, TUTORIALS, load, ttir_of
from triton.runtime.jit import JITFunction

import triton

HERE = Path(__file__).parent
ABSENT = (
    "torch", "einops", "transformers", "huggingface_hub", "tqdm", "regex",
    "requests", "pybase64", "orjson", "psutil", "sqlalchemy", "yaml", "safetensors",
)  # fmt: skip
"""What host code of the packages imports, and no kernel."""


LIMIT = 600
"""Seconds that a kernel may take."""
ABORTED = {"error": "the compiler aborts"}


def prepare(torch):
    """That packages can be imported: with torch and a GPU that is not there, or without torch."""
    if torch:
        import device  # noqa: PLC0415 - needs torch
        from record import ABSENT as MISSING  # noqa: PLC0415 - likewise

        absent.stand_in(*MISSING)
        device.pretend()
    else:
        absent.stand_in(*ABSENT)
    JITFunction.run = lambda *_, **__: None  # a tutorial launches when it is imported
    triton.testing.Mark.run = lambda *_, **__: None


def name_of(launch, names):
    """What a dump is called; those of one kernel and one case are counted."""
    first = name = f"{launch.case}.{launch.name.strip('_')}"
    while name in names:
        name = f"{first}.{names.count(first) + sum(n.startswith(first + '.') for n in names)}"
    names.append(name)
    return name


def named(asked):
    """Launches by the names of their dumps."""
    found = {}
    for file in sorted((HERE / "launches").glob("*.jsonl")):
        if file.stem == "tutorials" and not TUTORIALS:
            continue
        names = []
        for launch in load(file):
            name = name_of(launch, names)
            if not asked or name.startswith(tuple(asked)):
                found[name] = launch
    return found


def own(file, options):
    """What Triton's own compile takes: registers, spilled bytes and shared memory; or why not."""
    said = {"num_warps": options.num_warps, "num_stages": options.num_stages}
    if options.maxnreg:
        said["maxnreg"] = options.maxnreg
    try:
        kernel = triton.compile(str(file), target=TARGET, options=said)
    except Exception as error:
        while error.__cause__ is not None:
            error = error.__cause__
        return {"error": f"{type(error).__name__}: {str(error).strip()}"[:300]}
    ptxas = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as ptx:
        ptx.write(kernel.asm["ptx"])
        ptx.flush()
        command = [ptxas, "-v", "--gpu-name=sm_90a", ptx.name, "-o", "/dev/null"]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    text = told.stdout + told.stderr
    registers = re.findall(r"Used (\d+) registers", text)
    if told.returncode or not registers:
        return {"error": f"ptxas: {text.strip()[-300:]}"}
    return {
        "registers": max(map(int, registers)),
        "spilled": sum(map(int, re.findall(r"(\d+) bytes spill stores", text))),
        "smem": kernel.metadata.shared,
    }


def dumped(name, launch, folder):
    """Write one; what is known of it, or why there is none."""
    try:
        text, options = ttir_of(launch)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        while error.__cause__ is not None:
            error = error.__cause__
        return {"error": f"{type(error).__name__}: {str(error).strip()}"[-300:]}
    file = folder / f"{name}.ttir"
    file.write_text(text, "utf-8")
    said = {
        "name": launch.name, "num_warps": options.num_warps, "num_stages": options.num_stages,
        "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
        "triton_version": triton.__version__,
    }  # fmt: skip
    file.with_suffix(".json").write_text(json.dumps(said), "utf-8")
    return own(file, options)


def apart(work, limit=LIMIT):
    """What some work gives, done in a process of its own; None where that ends without a word."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def answer():
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            theirs.send(work())

    process = context.Process(target=answer)
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else {"error": f"takes longer than {limit} s"}
    except EOFError:
        return None
    finally:
        if process.is_alive():
            process.kill()
        process.join()


def main():
    """Dump what is asked for, and what Triton's own compile makes of it beside each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--torch", action="store_true", help="torch is there: stand in for nothing")
    asked = parser.parse_intermixed_args()
    prepare(asked.torch)
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name, launch in named(asked.names).items():
        told = apart(partial(dumped, name, launch, asked.folder)) or ABORTED
        (asked.folder / f"{name}.own.json").write_text(json.dumps(told), "utf-8")
        print(f"{name}: {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

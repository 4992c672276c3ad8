"""Runs configurations on a GPU so that one that hangs or dies costs only itself.

configurations ──► compiled by many processes at once ──► run one after the other
                                                          in a process that may die
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time

SILENCE = 45
"""Seconds without a word after which a process is given up."""


def work(configurations, run, first):
    """In a process of its own: one line a configuration, from number `first` on."""
    for number in range(first, len(configurations)):
        print(json.dumps({"begun": number}), flush=True)
        try:
            row = run(configurations[number])
        except Exception as failed:
            row = {"error": f"{type(failed).__name__}: {failed}"[:300]}
        print(json.dumps({"done": number, "row": row}), flush=True)
        if "CUDA" in row.get("error", "") or "Triton Error" in row.get("error", ""):
            os._exit(3)


def warm(configurations, compile_one, part, parts):
    """In a process of its own: compile every `parts`-th configuration into the cache."""
    for configuration in configurations[part::parts]:
        try:
            compile_one(configuration)
        except Exception as failed:
            print(f"{configuration}: {type(failed).__name__}: {failed}"[:300], file=sys.stderr)


def warmed(script, arguments, parts, limit=240):
    """All configurations, compiled by `parts` processes; seconds it took."""
    begun = time.time()
    command = [sys.executable, script, *arguments]
    running = [
        subprocess.Popen([*command, "--warm", f"{n}/{parts}"], stdout=subprocess.DEVNULL)
        for n in range(parts)
    ]
    for process in running:
        try:
            process.wait(timeout=max(1, limit - (time.time() - begun)))
        except subprocess.TimeoutExpired:
            process.kill()
    return time.time() - begun


def rows(script, arguments, count, silence=SILENCE):
    """(number, row) of each configuration, as they come."""
    first = 0
    while first < count:
        command = [sys.executable, script, *arguments, "--work", str(first)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = queue.Queue()

        def listen(process=process, lines=lines):
            for line in process.stdout:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=listen, daemon=True).start()
        at, answered = first, False
        while True:
            try:
                line = lines.get(timeout=silence)
            except queue.Empty:
                process.kill()
                yield at, {"error": f"silent for {silence} s: it hangs"}
                first = at + 1
                break
            if line is None:
                process.wait()
                if not answered and process.returncode:
                    yield at, {"error": f"the process died with {process.returncode}"}
                first = count if process.returncode == 0 else at + 1
                break
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if "begun" in said:
                at, answered = said["begun"], False
            else:
                answered = True
                yield at, said["row"]

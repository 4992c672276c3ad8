"""A schedule as a trace that Perfetto opens (https://ui.perfetto.dev): tracks, flows, counters.

    process      attention_forward on b200-pipes, II 1325
      slot CUDA    █load_s██ █row_max██ ...       a slice a hold, a track for each that overlaps
      agent tma    █load_k███████ ...             a slice an operation, from start until it is done
                          └──flow──► qk           a flow a dependence
      CUDA held    ▁▁███▁▁██                      a counter a slot: how much is held
      smem bytes   ▂▂▄▄▄▂▂                        a counter a memory space: what is alive

A cycle is a nanosecond. The file is a `perfetto.protos.Trace`: packets of track descriptors and
track events, written here as protocol buffers are on the wire, by field number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stretto.report.unrolled import (
    Span,
    copies,
    flights,
    holds,
    iterations_of,
    lanes,
    steps,
)

# Protocol buffers ---------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _fixed(field: int, value: int) -> bytes:
    return _varint(field << 3 | 1) + value.to_bytes(8, "little")


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


# Field numbers of perfetto.protos, by the names they have there.
_PACKET = 1
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _FLAGS, _DESCRIPTOR = 8, 10, 11, 13, 60
_UUID, _NAME, _PROCESS, _PARENT, _COUNTER, _ORDERING, _RANK = 1, 2, 3, 5, 8, 11, 12
_PID, _PROCESS_NAME = 1, 6
_UNIT, _UNIT_NAME = 3, 6
_TYPE, _EVENT_TRACK, _EVENT_NAME, _VALUE, _FLOWS, _LAST_FLOWS, _NOTES = 9, 11, 23, 30, 47, 48, 4
_NOTE_NAME, _NOTE_INT = 10, 4
_BEGIN, _END, _INSTANT, _COUNT = 1, 2, 3, 4
_CLEARED, _EXPLICIT, _COUNT_UNIT, _BYTES_UNIT = 1, 3, 2, 3


@dataclass(slots=True)
class _Writer:
    """Packets of one trace; events are put into the order of time at the end."""

    tracks: list[bytes] = field(default_factory=list[bytes])
    events: list[tuple[int, int, bytes]] = field(default_factory=list[tuple[int, int, bytes]])
    uuid: int = 0

    def track(self, name: str, parent: int | None = None, more: bytes = b"") -> int:
        """A track under another; its number."""
        self.uuid += 1
        body = _number(_UUID, self.uuid) + _bytes(_NAME, name) + more
        if parent is not None:
            body += _number(_PARENT, parent) + _number(_RANK, self.uuid)
        self.tracks.append(_bytes(_DESCRIPTOR, body))
        return self.uuid

    def process(self, name: str, pid: int) -> int:
        """The track that all of a loop hangs under."""
        told = _number(_PID, pid) + _bytes(_PROCESS_NAME, name)
        return self.track(name, None, _bytes(_PROCESS, told) + _number(_ORDERING, _EXPLICIT))

    def counter(self, name: str, parent: int, unit: int, rows: Iterable[tuple[int, int]]) -> None:
        """A track of numbers, each from its cycle on."""
        track = self.track(name, parent, _bytes(_COUNTER, _number(_UNIT, unit)))
        for cycle, value in rows:
            self.event(cycle, _COUNT, track, _number(_VALUE, value))

    def slice(self, track: int, span: Span, more: bytes = b"") -> None:
        """A span on a track; one of no cycles is a moment."""
        note = _bytes(_NOTE_NAME, "iteration") + _number(_NOTE_INT, span.iteration)
        named = _bytes(_EVENT_NAME, span.label) + _bytes(_NOTES, note) + more
        if span.begin == span.end:
            self.event(span.begin, _INSTANT, track, named)
            return
        self.event(span.begin, _BEGIN, track, named)
        self.event(span.end, _END, track)

    def event(self, cycle: int, kind: int, track: int, more: bytes = b"") -> None:
        """Something that happens at a cycle; ends come before what begins in the same cycle."""
        body = _number(_TYPE, kind) + _number(_EVENT_TRACK, track) + more
        self.events.append((cycle, 0 if kind == _END else 1, _bytes(_TRACK_EVENT, body)))

    def packets(self) -> Iterator[bytes]:
        """All of it, the first packet of the sequence saying that nothing went before."""
        for number, body in enumerate(self.tracks):
            flags = _number(_FLAGS, _CLEARED) if not number else b""
            yield _number(_SEQUENCE, 1) + flags + body
        for cycle, _, body in sorted(self.events, key=lambda event: event[:2]):
            yield _number(_TIMESTAMP, cycle) + _number(_SEQUENCE, 1) + body


# Tracks -------------------------------------------------------------------------------------


def to_trace(document: dict[str, Any]) -> bytes:
    """The loops of a document that have a schedule, each as a process."""
    writer = _Writer()
    for number, entry in enumerate(document["loops"], 1):
        if entry["success"]:
            _loop(writer, entry, number)
    return b"".join(_bytes(_PACKET, packet) for packet in writer.packets())


def _loop(writer: _Writer, entry: dict[str, Any], number: int) -> None:
    count = iterations_of(entry)
    unit = entry["unit"]
    ii = f"II {entry['ii']} {unit}"
    scale = f"1 ns is 1 {unit.removesuffix('s')}"
    name = f"{entry['name']} on {entry['machine']}, {ii}, {count} iterations ({scale})"
    process = writer.process(name, number)
    held = holds(entry, count)
    for slot in entry["slots"]:
        rows = [span for span in held if span.row == slot["name"]]
        _tracks(writer, f"slot {slot['name']}", process, rows)
    _agents(writer, entry, process, count)
    for slot in entry["slots"]:
        spans = [(s.begin, s.end, s.amount) for s in held if s.row == slot["name"]]
        told = f"{slot['name']} held, of {slot['capacity']}"
        writer.counter(told, process, _COUNT_UNIT, steps(spans))
    for space, row in entry["memory"].items():
        budget = "" if row["budget"] is None else f", of {row['budget']:,}"
        rows = steps(copies(entry, space, count))
        writer.counter(f"{space} bytes{budget}", process, _BYTES_UNIT, rows)


def _tracks(writer: _Writer, name: str, process: int, spans: list[Span]) -> None:
    """A row, and one below it for everything that overlaps: slices of a track never do."""
    tracks: list[int] = []
    for lane, span in lanes(spans):
        if lane == len(tracks):
            tracks.append(writer.track(name if not lane else f"{name} ({lane + 1})", process))
        writer.slice(tracks[lane], span)


def _agents(writer: _Writer, entry: dict[str, Any], process: int, count: int) -> None:
    """Operations by who issues them, with a flow for every dependence."""
    starts, ends = _flows(entry, count)
    tracks: dict[tuple[str, int], int] = {}
    flown = flights(entry, count)
    for agent in dict.fromkeys(span.row for span in flown):
        for lane, span in lanes(s for s in flown if s.row == agent):
            if (agent, lane) not in tracks:
                told = f"agent {agent}" if not lane else f"agent {agent} ({lane + 1})"
                tracks[agent, lane] = writer.track(told, process)
            key = (span.ops[0], span.iteration)
            more = b"".join(_fixed(_FLOWS, flow) for flow in starts.get(key, ()))
            more += b"".join(_fixed(_LAST_FLOWS, flow) for flow in ends.get(key, ()))
            writer.slice(tracks[agent, lane], span, more)


_Flows = dict[tuple[str, int], list[int]]


def _flows(entry: dict[str, Any], count: int) -> tuple[_Flows, _Flows]:
    """Numbers of the flows that leave each operation of each iteration, and that arrive there."""
    leave: _Flows = {}
    arrive: _Flows = {}
    number = 0
    for i in range(count):
        for d in entry["dependences"]:
            if i + d["distance"] < count:
                number += 1
                leave.setdefault((d["src"], i), []).append(number)
                arrive.setdefault((d["dst"], i + d["distance"]), []).append(number)
    return leave, arrive

"""What has happened before what, in a run of several agents: whatever the timing is.

    copy agent       Expect, CopyIn ──────► phase 0 of k_tile_full is over
    compute agent    Wait(k_tile_full, 0) ◄─┘ knows of the copy, so it may read the slot

Everything that touches memory or a barrier is an event, and has a bit. An agent knows the events
that have happened before whatever it does next: its own, and those of whom it has waited for. Two
accesses of a slot, one of which writes, are in order if the later one's agent knew of the earlier
one; else there is a timing in which they are not, and that is a fault, however this run went.

What TMA and products do (the asynchronous proxy) goes on beside its agent: it knows what the agent
knew when it was issued, and the agent knows of it only once it has waited. What threads did in
shared memory comes before what TMA and products do there only behind a fence, so of every agent
there are two sets of bits: what it knows, and what of that is fenced.

A wait for a parity ends as soon as it may: it learns of one phase at most, the first that it did
not know to be over, and of nothing if that has the other parity. And whoever ends a phase must have
known of all waits for the one before: such a wait would see the parity change back, and go on for
ever.

Beside this, each agent keeps the rules of a ring for itself, also where another's waits would do:
who reads a slot has waited for it to be full, who hands one back has fenced what its threads read,
no phase goes by that nobody has waited for, and at the end as many slots are handed back as were
filled, and everybody's positions stand behind what was touched last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stretto.kernel.tree import kind_of
from stretto.program.errors import EmitError
from stretto.program.instructions import Instruction
from stretto.program.kernel_program import Barriers

Proxy = Literal["threads", "asynchronous", "tensor"]
"""Who touches memory: threads in shared memory, TMA and products there, anybody in tensor memory,
where no fence is asked for."""


class FaultError(EmitError):
    """A program that may go wrong, and where."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    agent: str
    instruction: Instruction
    what: str
    """What it does: `copies`, `reads`, ..."""

    def __str__(self) -> str:
        origin = self.instruction.origin
        name = origin.op or ("" if origin.operation is None else kind_of(origin.operation))
        of = f" for `{name}`" if name else ""
        place = "" if origin.operation is None else f" ({origin.operation.location})"
        return f"{self.what} of {self.agent}{of}{place}"


@dataclass(slots=True)
class Knowledge:
    """Events that happened before."""

    known: int = 0
    fenced: int = 0
    """Those of them that the asynchronous proxy sees as well."""

    def learn(self, other: Knowledge) -> None:
        """All that another knows."""
        self.known |= other.known
        self.fenced |= other.fenced

    def copy(self) -> Knowledge:
        """The same, by itself."""
        return Knowledge(self.known, self.fenced)


@dataclass(slots=True)
class Phase:
    """A phase of a barrier."""

    pending: int
    """Arrivals that are still to come."""
    events: int = 0
    """All arrivals, and copies whose bytes count."""
    by: Knowledge = field(default_factory=Knowledge)
    """What those who arrived knew."""
    expected: int = 0
    bytes: int = 0
    over: bool = False
    observed: int = 0
    """Waits that this was the last phase for which they knew to be over."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Of which turn of loops, and of which iteration of one that runs by a schedule."""

    turns: tuple[int, ...]
    loop: int | None = None
    iteration: int | None = None

    def of_another(self, other: Tag) -> bool:
        """Whether what one writes is not what the other wants to read."""
        if self.loop is not None and self.loop == other.loop and self.iteration != other.iteration:
            return True
        return any(a != b for a, b in zip(self.turns, other.turns, strict=False))


@dataclass(slots=True)
class Cell:
    """A slot of shared or tensor memory: who touched it since it was written last."""

    written: dict[Proxy, int] = field(default_factory=dict[Proxy, int])
    read: dict[Proxy, int] = field(default_factory=dict[Proxy, int])
    tag: Tag | None = None


class Orders:
    """All events of a run."""

    def __init__(
        self, barriers: Mapping[str, Barriers], note: str, most: int | None = None
    ) -> None:
        self.most = most
        """Events and turns of loops that there may be; None: any number."""
        self._declared = barriers
        self._note = note
        """What is run, for whoever reads of a fault."""
        self.events: list[Event] = []
        self._cells: dict[tuple[str, int], Cell] = {}
        self._phases: dict[tuple[str, int], list[Phase]] = {}
        self._known: dict[tuple[str, str, int], int] = {}
        self._waited: dict[tuple[str, str, int], int] = {}
        """The phase that each agent waited for last, of each barrier."""
        self._waits: dict[tuple[str, int], int] = {}
        """How often anybody waited for each barrier."""
        self._full = {one.of: one.name for one in barriers.values() if one.role == "full"}

    def event(self, agent: str, instruction: Instruction, what: str) -> int:
        """One more: its bit."""
        self.require_room(len(self.events) + 1, instruction)
        self.events.append(Event(agent, instruction, what))
        return 1 << (len(self.events) - 1)

    def require_room(self, count: int, instruction: Instruction) -> None:
        """That a run is no longer than may be; FaultError where it is."""
        if self.most is not None and count > self.most:
            raise self.fault(f"a run has more than {self.most:,} events or turns", instruction)

    def fault(self, told: str, instruction: Instruction) -> FaultError:
        """What is wrong, at the user's place where there is one."""
        return FaultError(f"{told} ({self._note})", instruction.origin.operation)

    def _first(self, events: int) -> Event:
        return self.events[(events & -events).bit_length() - 1]

    # Memory --------------------------------------------------------------------------------------

    def touch(
        self, place: tuple[str, int], bit: int, before: Knowledge, proxy: Proxy, tag: Tag,
        *, writes: bool,
    ) -> None:  # fmt: skip
        """An access, whose agent knows what was before; FaultError where it may be too early."""
        cell = self._cells.get(place)
        if cell is None:
            cell = self._cells[place] = Cell()
        for earlier in (cell.written, cell.read) if writes else (cell.written,):
            for by, events in earlier.items():
                fence = proxy == "asynchronous" and by == "threads"
                missing = events & ~(before.fenced if fence else before.known)
                if missing:
                    self._unordered(place, bit, missing, before, fence=fence)
        if writes:
            cell.written, cell.read, cell.tag = {proxy: bit}, {}, tag
            return
        event = self._first(bit)
        if cell.tag is None:
            raise self.fault(f"{event} finds {_slot(place)} never filled", event.instruction)
        if cell.tag.of_another(tag):
            told = f"{event} finds {_slot(place)} filled for another iteration"
            raise self.fault(told, event.instruction)
        self._require_waited(place, event)
        cell.read[proxy] = cell.read.get(proxy, 0) | bit

    def _require_waited(self, place: tuple[str, int], event: Event) -> None:
        full = self._full.get(place[0])
        if full is None:
            return
        last = sum(phase.over for phase in self.phases((full, place[1]))) - 1
        if self._waited.get((event.agent, full, place[1]), -1) != last:
            told = f"{event} reads {_slot(place)}, for which {event.agent} has not waited"
            raise self.fault(told, event.instruction)

    def _require_fenced(self, barrier: tuple[str, int], by: Knowledge, event: Event) -> None:
        """Of who hands a slot back: what its threads did there is fenced."""
        declared = self._declared[barrier[0]]
        cell = self._cells.get((declared.of, barrier[1]))
        if cell is None or declared.role != "free":
            return
        touched = cell.read.get("threads", 0) | cell.written.get("threads", 0)
        if touched & by.known & ~by.fenced:
            told = f"{event} hands back {_slot((declared.of, barrier[1]))}"
            raise self.fault(f"{told} before a fence", event.instruction)

    def _unordered(
        self, place: tuple[str, int], bit: int, missing: int, before: Knowledge, *, fence: bool
    ) -> None:
        event, other = self._first(bit), self._first(missing)
        why = "nothing orders the two"
        if fence and not missing & ~before.known:
            why = "no fence stands between the two"
        told = f"{event} touches {_slot(place)}, and may come before {other}: {why}"
        raise self.fault(told, event.instruction)

    # Barriers ------------------------------------------------------------------------------------

    def phases(self, barrier: tuple[str, int]) -> list[Phase]:
        """Those of a barrier, the present one last."""
        found = self._phases.get(barrier)
        if found is None:
            found = self._phases[barrier] = [Phase(self._declared[barrier[0]].arrivals)]
        return found

    def arrive(
        self, barrier: tuple[str, int], bit: int, by: Knowledge, *, count: int = 1,
        expected: int = 0, bytes: int = 0,
    ) -> None:  # fmt: skip
        """An arrival, or bytes that have come (`count` 0)."""
        phases = self.phases(barrier)
        phase, event = phases[-1], self._first(bit)
        if len(phases) > 1 and phases[-2].events & ~by.known:
            told = f"{event} may count in the phase before of {_slot(barrier)}"
            raise self.fault(f"{told}: it does not know that it is over", event.instruction)
        if count:
            self._require_fenced(barrier, by, event)
        if self._declared[barrier[0]].role == "named":
            self._require_another(barrier, phase, event)
        phase.pending -= count
        if phase.pending < 0:
            told = f"{event} is one arrival too many at {_slot(barrier)}"
            raise self.fault(told, event.instruction)
        phase.events |= bit
        phase.by.learn(by)
        phase.by.known |= bit
        phase.by.fenced |= bit
        phase.expected += expected
        phase.bytes += bytes
        if phase.pending == 0 and phase.bytes > phase.expected:
            told = f"{event} brings {phase.bytes} bytes, and {_slot(barrier)} expects"
            raise self.fault(f"{told} {phase.expected}", event.instruction)
        if phase.pending == 0 and phase.bytes == phase.expected:
            self._over(barrier, phases, event)

    def _require_another(self, barrier: tuple[str, int], phase: Phase, event: Event) -> None:
        """Of a barrier of the hardware, which counts threads: nobody's arrive twice in a phase."""
        if phase.events and self._first(phase.events).agent == event.agent:
            told = f"{event} is the second of its agent in a phase of {_slot(barrier)}"
            raise self.fault(told, event.instruction)

    def _over(self, barrier: tuple[str, int], phases: list[Phase], event: Event) -> None:
        phase = phases[-1]
        before = phases[-2].observed if len(phases) > 1 else self._unborn(barrier)
        missed = before & ~phase.by.known
        if missed:
            told = f"{self._first(missed)} waits for {_slot(barrier)}, which {event} may turn"
            raise self.fault(f"{told} a phase further before that is seen", event.instruction)
        if len(phases) > 1 and not phases[-2].observed:
            told = f"{event} ends a phase of {_slot(barrier)}, and nobody waited for the one before"
            raise self.fault(told, event.instruction)
        phase.over = True
        phases.append(Phase(self._declared[barrier[0]].arrivals))

    def _unborn(self, barrier: tuple[str, int]) -> int:
        return self._known.get(("", *barrier), 0)

    def awaited(self, agent: str, barrier: tuple[str, int], parity: int, known: int) -> int | None:
        """The number of the phase that a wait is for; None: it may end at once."""
        phases, key = self.phases(barrier), (agent, *barrier)
        over = self._known.get(key, 0)
        while over < len(phases) and phases[over].over and not phases[over].events & ~known:
            over += 1
        self._known[key] = over
        return None if (over - 1) & 1 == parity else over

    def waited(
        self, agent: str, barrier: tuple[str, int], phase: int | None, bit: int, by: Knowledge
    ) -> None:
        """A wait is over: the agent learns of the phase, if it was for one."""
        phases, key = self.phases(barrier), (agent, *barrier)
        self._waits[barrier] = self._waits.get(barrier, 0) + 1
        last = self._known[key] - 1 if phase is None else phase
        if last + 1 < len(phases) and phases[last + 1].over:
            event = self._first(bit)
            told = f"{event} may find {_slot(barrier)} a phase further than it waits for"
            raise self.fault(told, event.instruction)
        if last >= 0:
            phases[last].observed |= bit
            self._waited[key] = last
        else:
            first = ("", *barrier)
            self._known[first] = self._known.get(first, 0) | bit
        if phase is not None:
            by.learn(phases[phase].by)
            self._known[key] = phase + 1

    def met(self, barrier: tuple[str, int], phase: int, bit: int, by: Knowledge) -> None:
        """Who waited in a phase of a barrier of the hardware learns of all that arrived."""
        self._waits[barrier] = self._waits.get(barrier, 0) + 1
        self.phases(barrier)[phase].observed |= bit
        by.learn(self.phases(barrier)[phase].by)

    def finish(self, last: Instruction) -> None:
        """At the end of all agents: slots are handed back, and nothing is on its way."""
        over = {place: len(phases) - 1 for place, phases in self._phases.items()}
        turns: dict[str, int] = {}
        for place, count in over.items():
            declared, phases = self._declared[place[0]], self._phases[place]
            full = (self._full.get(declared.of, ""), place[1])
            filled, waits = over.get(full, 0), self._waits.get(place, 0)
            told = ""
            if phases[-1].events:
                told = f"arrivals at {_slot(place)} end amid a phase"
            elif declared.role == "full" and count and not phases[-2].observed:
                told = f"nobody waits for the last phase of {_slot(place)}"
            elif declared.role == "free" and full[0] and not count == filled == waits:
                told = f"{_slot((declared.of, place[1]))} is filled {filled} times, and handed back"
                told += f" {count} times, of which {waits} are waited for"
            elif declared.role in ("turn", "named"):
                turns[place[0]] = turns.get(place[0], 0) + count - waits
            if told:
                raise self.fault(told, last)
        for name, apart in turns.items():
            if apart:
                told = f"`{name}` has {abs(apart)} turns {'more' if apart > 0 else 'fewer'}"
                raise self.fault(f"{told} than are waited for", last)


def _slot(place: tuple[str, int]) -> str:
    name, index = place
    return f"`{name}`[{index}]"

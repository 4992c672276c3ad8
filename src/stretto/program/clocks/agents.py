"""Instructions of one agent, run by clocks: who touches what, who waits for whom.

    Wait      goes on once the phase is over; a generator yields until it is
    CopyIn    an event of its own, which the agent learns of by waiting
    Product   the same, until the agent settles it; its target cannot be read before

Of numbers only those are worked out that slots, phases and trip counts depend on. What the host or
memory decides is not known: how often a loop goes round and which way a branch goes is asked of the
`Choices` of a run, the same for all agents.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

from stretto.program.clocks.orders import Knowledge, Orders, Proxy, Tag
from stretto.program.expressions import (
    Arithmetic,
    Barrier,
    Computed,
    Expression,
    Iteration,
    Literal,
    Name,
    Slot,
    Trips,
)
from stretto.program.instructions import (
    Advance,
    Arrive,
    Assign,
    Atomic,
    Commit,
    CommitGroup,
    CopyIn,
    CopyOut,
    Expect,
    Fence,
    Flip,
    For,
    If,
    Instruction,
    Load,
    NamedArrive,
    NamedSync,
    Pipelined,
    Product,
    ProductInit,
    Put,
    Read,
    Settle,
    Step,
    Store,
    StoreWait,
    TensorProduct,
    ThreadBarrier,
    ThreadCopy,
    TraceSteps,
    Wait,
    WaitGroup,
    While,
)
from stretto.program.kernel_program import AgentProgram, KernelProgram, TensorMemory
from stretto.program.walk import names_in

Number = int | None
"""None: it is not known."""


@dataclass(frozen=True)
class Choices:
    """What the host and memory would decide."""

    trips: int
    """Of each loop that runs by a schedule."""
    turns: int
    """Of each loop around those."""
    branch: bool
    """Which way branches go."""
    singly: bool = False
    """Whether iterations go one after the other, as if there were too few for a pipeline."""

    def __str__(self) -> str:
        told = f"{self.trips} trips" + (", one by one" if self.singly else "")
        return f"{told}, {self.turns} turns of loops around"


@dataclass(slots=True)
class Flight:
    """A product that is not waited for yet."""

    bit: int
    target: str


@dataclass
class AgentRun:
    """One agent, as far as it has come."""

    agent: AgentProgram
    orders: Orders
    choices: Choices
    depths: dict[str, int | None]
    """Slots of what is declared."""
    tensors: frozenset[str]
    """Sums in tensor memory."""
    names: dict[int, frozenset[str]]
    """Variables that instructions read, by their ids."""
    now: Knowledge = field(default_factory=Knowledge)
    numbers: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of variables, where they are known."""
    flights: list[Flight] = field(default_factory=list[Flight])
    flying: set[str] = field(default_factory=set[str])
    """Variables that products write, and that nobody has waited for by name."""
    stores: list[int] = field(default_factory=list[int])
    chained: Knowledge = field(default_factory=Knowledge)
    """What the last product into tensor memory knew: they come one after the other."""
    products: int = 0
    """All of those so far."""
    reads: int = 0
    """What its own threads read: they have it in registers before they issue a copy."""
    groups: list[int] = field(default_factory=list[int])
    """Copies by threads in groups that are not waited for, the oldest first."""
    asked: int = 0
    """Those that are in no group yet."""
    copied: int = 0
    """All of those so far."""
    landed: Knowledge = field(default_factory=Knowledge)
    """Those of them that each thread has waited for by itself, and has fenced: others learn of them
    when all meet."""
    met: int = 0
    """What all threads knew when they met last."""
    goes_round: dict[str, int] = field(default_factory=dict[str, int])
    """Slots that each variable counts."""
    behind: dict[str, None] = field(default_factory=dict[str, None])
    """Variables of slots and phases that were used since they went on."""
    turns: tuple[int, ...] = ()
    loop: int | None = None
    step: Number = None
    waits: Wait | NamedSync | None = None
    """What it waits for at present."""

    def run(self) -> Generator[None]:
        """From its first instruction to its last; it yields while it waits."""
        yield from self.body(self.agent.body)
        last = self.agent.body[-1] if self.agent.body else Fence()
        for name in self.behind:
            told = f"{self.agent.name} ends with `{name}` at a slot or a phase that it has had"
            raise self.orders.fault(told, last)
        open_ = (
            (sum(self.stores), "a copy out"),
            (sum(self.groups) | self.asked, "a copy by threads"),
            (self._open(), "a product"),
        )
        for bits, told in open_:
            if bits:
                raise self.orders.fault(f"{self.agent.name} ends before {told} is done", last)

    def _open(self) -> int:
        return sum(flight.bit for flight in self.flights)

    def body(self, body: Iterable[Instruction]) -> Generator[None]:
        """Instructions, one after the other."""
        for instruction in body:
            match instruction:
                case Wait():
                    yield from self._wait(instruction)
                case NamedSync():
                    yield from self._meet(instruction)
                case If():
                    taken = self.takes(instruction)
                    yield from self.body(instruction.body if taken else instruction.otherwise or ())
                case For():
                    yield from self._for(instruction)
                case While():
                    yield from self.go_round(instruction)
                case Pipelined():
                    before, self.loop = self.loop, instruction.number
                    yield from self.body(instruction.body)
                    self.loop = before
                case Step():
                    self.step = self.number(instruction.counted)
                    yield from self.body(instruction.body)
                    self.step = None
                case _:
                    self._do(instruction)

    def go_round(self, loop: While) -> Generator[None]:
        """A loop of which nobody knows how often it goes round."""
        for turn in range(self.choices.turns):
            yield from self.turn(loop.body, turn)

    def takes(self, branch: If) -> bool:
        """Whether it is the first body that runs."""
        pipelined = self.loop is not None and branch.operation is None
        if pipelined and branch.otherwise is not None and self.choices.singly:
            return False
        known = self.number(branch.condition)
        return self.choices.branch if known is None else bool(known)

    def _for(self, loop: For) -> Generator[None]:
        lower = 0 if loop.lower is None else self.number(loop.lower)
        upper = self.number(loop.upper)
        by = 1 if loop.step is None else self.number(loop.step)
        if loop.operation is None:
            if lower is None or upper is None or by is None or by < 1:
                told = f"{self.agent.name} has no numbers that a loop could count by"
                raise self.orders.fault(told, loop)
            turns = range(lower, upper, by)
            self.orders.require_room(len(turns), loop)
            for at in turns:
                self.numbers[loop.variable] = at
                yield from self.body(loop.body)
            return
        yield from self.go_through(loop, lower, upper, by)

    def go_through(self, loop: For, lower: Number, upper: Number, by: Number) -> Generator[None]:
        """A loop of the kernel that does not run by a schedule."""
        turns = self.choices.turns
        if lower is not None and upper is not None and by is not None:
            turns = min(turns + 1, len(range(lower, upper, by)))
        self.numbers[loop.variable] = None
        for turn in range(turns):
            yield from self.turn(loop.body, turn)

    def turn(self, body: Iterable[Instruction], turn: int) -> Generator[None]:
        """One turn of such a loop."""
        before, self.turns = self.turns, (*self.turns, turn)
        yield from self.body(body)
        self.turns = before

    # Numbers -------------------------------------------------------------------------------------

    def number(self, value: Expression) -> Number:
        """A number, where it is known."""
        match value:
            case Name(name):
                return self.numbers.get(name)
            case Literal(number):
                return number if isinstance(number, int) else None
            case Trips():
                return max(0, self.choices.trips - value.fewer)
            case Iteration(counter, ahead, behind):
                base = self.numbers.get(counter) if counter else 0
                return None if base is None else base + (ahead or 0) - behind
            case Arithmetic(sign, left, right):
                one, other = self.number(left), self.number(right)
                return None if one is None or other is None else _SIGNS[sign](one, other)
            case Computed(operation, (wide,)) if operation.name == "arith.trunci":
                return self.number(wide)
            case _:
                return None

    # Instructions --------------------------------------------------------------------------------

    def _do(self, instruction: Instruction) -> None:
        act = ACTS.get(type(instruction))
        if self.flying:
            self._require_settled(instruction)
        if act is not None:
            getattr(self, act)(instruction)

    def _require_settled(self, instruction: Instruction) -> None:
        """That no variable is read which a product in flight writes, but by a sum that goes on."""
        if isinstance(instruction, Settle | ProductInit):
            return
        names = self.names.get(id(instruction))
        if names is None:
            names = self.names[id(instruction)] = _read_names(instruction)
        read = sorted(self.flying & names)
        if read:
            told = f"{self.agent.name} reads `{read[0]}`, which a product in flight may not"
            raise self.orders.fault(f"{told} have written", instruction)

    def _tag(self, instruction: Instruction) -> Tag:
        if self.step is None or not instruction.origin.op:
            return Tag(self.turns)
        return Tag(self.turns, self.loop, self.step - instruction.origin.stage)

    def place(self, where: Slot | Barrier, instruction: Instruction) -> tuple[str, int]:
        """What was declared, and which of its slots."""
        name = where.memory if isinstance(where, Slot) else where.name
        if where.index is None:
            return name, 0
        at = self.numbers.get(where.index)
        if at is None:
            told = f"{self.agent.name} has no number for slots of `{name}`"
            raise self.orders.fault(told, instruction)
        depth = self.depths[name] or 1
        if at >= depth or self.goes_round.setdefault(where.index, depth) != depth:
            told = f"{self.agent.name} counts slots of `{name}`, of which there are {depth}, by"
            raise self.orders.fault(f"{told} `{where.index}`, which is {at}", instruction)
        self.behind[where.index] = None
        return name, int(at)

    def touch(
        self, where: Slot, instruction: Instruction, bit: int, before: Knowledge, proxy: Proxy,
        *, writes: bool,
    ) -> None:  # fmt: skip
        """An access of a slot."""
        if where.memory in self.tensors:
            proxy = "tensor"
        place, tag = self.place(where, instruction), self._tag(instruction)
        self.orders.touch(place, bit, before, proxy, tag, writes=writes)

    def happens(self, instruction: Instruction, what: str) -> int:
        """An event: its bit."""
        return self.orders.event(self.agent.name, instruction, what)

    def learn(self, bits: int) -> None:
        """Of what happened in the asynchronous proxy."""
        self.now.known |= bits
        self.now.fenced |= bits

    def _wait(self, wait: Wait) -> Generator[None]:
        place, parity = self.place(wait.barrier, wait), self.number(wait.phase)
        if parity is None:
            raise self.orders.fault(f"{self.agent.name} waits for no parity", wait)
        for name in names_in((wait.phase,)):
            self.behind[name] = None
        bit = self.happens(wait, "a wait")
        self.learn(bit)
        phase = self.orders.awaited(self.agent.name, place, parity, self.now.known)
        self.waits = wait
        while phase is not None and not self.orders.phases(place)[phase].over:
            yield
        self.waits = None
        self.orders.waited(self.agent.name, place, phase, bit, self.now)

    def _meet(self, one: NamedSync) -> Generator[None]:
        """An arrival, and a wait for the phase that it counts in."""
        place, bit = (one.barrier, 0), self.happens(one, "a meeting")
        phase = len(self.orders.phases(place)) - 1
        self.orders.arrive(place, bit, self.now)
        self.learn(bit)
        self.waits = one
        while not self.orders.phases(place)[phase].over:
            yield
        self.waits = None
        self.orders.met(place, phase, bit, self.now)

    def named_arrive(self, one: NamedArrive) -> None:
        """An arrival at a barrier of the hardware."""
        bit = self.happens(one, "an arrival")
        self.orders.arrive((one.barrier, 0), bit, self.now)
        self.learn(bit)

    def assign(self, one: Assign) -> None:
        """Variables get values."""
        values = [self.number(value) for value in one.values]
        if len(values) < len(one.targets):
            values = [None] * len(one.targets)
        self.numbers.update(zip(one.targets, values, strict=True))

    def advance(self, one: Advance) -> None:
        """One slot further."""
        slot, phase = self.numbers.get(one.slot), self.numbers.get(one.phase)
        if slot is None or phase is None:
            told = f"{self.agent.name} has no number for `{one.slot}` or `{one.phase}`"
            raise self.orders.fault(told, one)
        if self.goes_round.get(one.slot, one.depth) != one.depth:
            told = f"{self.agent.name} has `{one.slot}` go round after {one.depth} slots"
            raise self.orders.fault(f"{told} of {self.goes_round[one.slot]}", one)
        self.behind.pop(one.slot, None)
        self.behind.pop(one.phase, None)
        wraps = slot + 1 == one.depth
        self.numbers[one.slot] = 0 if wraps else slot + 1
        self.numbers[one.phase] = phase ^ 1 if wraps else phase

    def flip(self, one: Flip) -> None:
        """The other phase."""
        phase = self.numbers[one.phase]
        assert phase is not None
        self.behind.pop(one.phase, None)
        self.numbers[one.phase] = phase ^ 1

    def arrive(self, one: Arrive) -> None:
        """One arrival."""
        bit = self.happens(one, "an arrival")
        self.orders.arrive(self.place(one.barrier, one), bit, self.now)
        self.learn(bit)

    def expect(self, one: Expect) -> None:
        """One arrival, and bytes."""
        bit = self.happens(one, "an arrival")
        place = self.place(one.barrier, one)
        self.orders.arrive(place, bit, self.now, expected=one.bytes)
        self.learn(bit)

    def commit(self, one: Commit) -> None:
        """One arrival, behind all products into tensor memory."""
        self.issue_commit(one)()

    def issue_commit(self, one: Commit) -> Callable[[], None]:
        """The same; what is returned has it arrive."""
        by = self.now.copy()
        by.learn(self.chained)
        by.known |= self.products
        by.fenced |= self.products
        place, bit = self.place(one.barrier, one), self.happens(one, "an arrival")
        return lambda: self.orders.arrive(place, bit, by)

    def copy_in(self, one: CopyIn) -> None:
        """TMA writes a slot, and its bytes count."""
        self.issue_copy(one)()

    def issue_copy(self, one: CopyIn) -> Callable[[], None]:
        """TMA writes a slot; what is returned has its bytes count."""
        bit, before = self.happens(one, "a copy"), self.now.copy()
        before.fenced |= self.reads
        self.touch(one.target, one, bit, before, "asynchronous", writes=True)
        place, by = self.place(one.barrier, one), self.now.copy()
        return lambda: self.orders.arrive(place, bit, by, count=0, bytes=one.bytes)

    def copy_out(self, one: CopyOut) -> None:
        """TMA reads a slot."""
        bit = self.happens(one, "a copy out")
        self.touch(one.source, one, bit, self.now, "asynchronous", writes=False)
        self.stores.append(bit)

    def store_wait(self, one: StoreWait) -> None:
        """All copies out but the last have read."""
        done = len(self.stores) - one.left
        if done > 0:
            self.learn(sum(self.stores[:done]))
            del self.stores[:done]

    def thread_copy(self, one: ThreadCopy) -> None:
        """Threads write a slot in their own time: all must have been done with it when they met."""
        bit, before = self.happens(one, "a copy"), self.now.copy()
        before.known &= self.met
        self.touch(one.target, one, bit, before, "threads", writes=True)
        self.asked |= bit
        self.copied |= bit

    def commit_group(self, one: CommitGroup) -> None:
        """A group more, which may be empty."""
        del one
        self.groups.append(self.asked)
        self.asked = 0

    def wait_group(self, one: WaitGroup) -> None:
        """Each thread has what it asked for itself, but for the youngest groups."""
        done = max(0, len(self.groups) - one.left)
        self.landed.known |= sum(self.groups[:done])
        del self.groups[:done]

    def meet(self, _: ThreadBarrier) -> None:
        """All threads of the agent meet, and know what each of them knew."""
        self.now.learn(self.landed)
        self.met = self.now.known

    def fence(self, _: Fence) -> None:
        """What is known is seen by the asynchronous proxy as well; of copies by threads, what each
        has waited for: others' are fenced by those who asked for them, before all meet."""
        self.landed.fenced = self.landed.known
        self.now.fenced |= self.now.known & ~self.copied

    def read(self, one: Read) -> None:
        """Memory to registers."""
        bit = self.happens(one, "a read")
        nothing = one.added is not None and self.number(one.added) == 0
        if not nothing:
            self.touch(one.source, one, bit, self.now, "threads", writes=False)
        self.now.known |= bit
        self.reads |= bit
        self.numbers[one.target] = None

    def put(self, one: Put) -> None:
        """Registers to memory."""
        bit = self.happens(one, "a write")
        self.touch(one.target, one, bit, self.now, "threads", writes=True)
        self.now.known |= bit

    def load(self, one: Load) -> None:
        """Global memory to registers."""
        self.numbers[one.target] = None

    def store(self, one: Store) -> None:
        """Registers to global memory."""

    def combine(self, one: Atomic) -> None:
        """Registers and global memory."""
        if one.target is not None:
            self.numbers[one.target] = None

    def product(self, one: Product) -> None:
        """A product reads shared memory, until it is settled."""
        bit = self.happens(one, "a product")
        for factor in (one.left, one.right):
            if isinstance(factor, Slot):
                self.touch(factor, one, bit, self.now, "asynchronous", writes=False)
        if one.asynchronous:
            self.flights.append(Flight(bit, one.target))
            self.flying.add(one.target)
        else:
            self.learn(bit | self._open())
            self.flights.clear()

    def settle(self, one: Settle) -> None:
        """All products but the youngest are done, and those that are named may be read."""
        done = max(0, len(self.flights) - one.left)
        self.learn(sum(flight.bit for flight in self.flights[:done]))
        del self.flights[:done]
        still = {flight.target for flight in self.flights}
        self.flying -= {kept.name for kept in one.names} - still

    def tensor_product(self, one: TensorProduct) -> None:
        """A product into tensor memory, behind those before it."""
        bit, before = self.happens(one, "a product"), self.now.copy()
        before.learn(self.chained)
        before.known |= self.products
        before.fenced |= self.products
        for factor in (one.left, one.right):
            self.touch(factor, one, bit, before, "asynchronous", writes=False)
        self.touch(one.total, one, bit, before, "tensor", writes=True)
        self.chained = before
        self.products |= bit


ACTS: dict[type[Any], str] = {
    Assign: "assign",
    Advance: "advance",
    Flip: "flip",
    Arrive: "arrive",
    Expect: "expect",
    Commit: "commit",
    NamedArrive: "named_arrive",
    CopyIn: "copy_in",
    CopyOut: "copy_out",
    StoreWait: "store_wait",
    ThreadCopy: "thread_copy",
    CommitGroup: "commit_group",
    WaitGroup: "wait_group",
    ThreadBarrier: "meet",
    Fence: "fence",
    Read: "read",
    Put: "put",
    Load: "load",
    Store: "store",
    Atomic: "combine",
    Product: "product",
    Settle: "settle",
    TensorProduct: "tensor_product",
}
"""What is called for each kind."""
_SIGNS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: int(a < b),
    ">=": lambda a, b: int(a >= b),
}


def _read_names(instruction: Instruction) -> frozenset[str]:
    """Variables that an instruction reads; a product's sum may be in flight."""
    match instruction:
        case Product():
            return names_in((instruction.left,))
        case Assign():
            return names_in(instruction.values)
        case Store() | Load() | Atomic() | ThreadCopy():
            return names_in(instruction.operands)
        case Put():
            return names_in((instruction.value,))
        case CopyIn() | CopyOut():
            return names_in(instruction.coordinates)
        case TraceSteps():
            return names_in((instruction.steps,))
        case _:
            return frozenset()


def agents_of(
    program: KernelProgram, orders: Orders, choices: Choices, names: dict[int, frozenset[str]]
) -> list[AgentRun]:
    """All of them, at their beginning; `names` keeps what instructions read, for further runs."""
    depths = {one.name: one.depth for one in program.memory}
    sums = frozenset(one.name for one in program.memory if isinstance(one, TensorMemory))
    return [AgentRun(agent, orders, choices, depths, sums, names) for agent in program.agents]

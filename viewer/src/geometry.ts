// Where everything is drawn: rows, bars and lanes, from the document alone.
//
//   ops × iterations ──► bars [start + II·i + offset, + duration) on the row of their slot or agent
//   storages         ──► bars [begin + II·i, + lifetime) on the lane of copy i mod ring depth

import type { Loop, Measured, Op, Slot } from "./report";

export interface Bar {
  row: number;
  lane: number;
  from: number;
  to: number;
  /** Where its result is ready, where that is later than the hold. */
  done: number;
  op: string;
  others: string[];
  label: string;
  iteration: number;
}

export interface Row {
  label: string;
  note: string;
  lanes: number;
  marked: boolean;
}

export interface Picture {
  rows: Row[];
  bars: Bar[];
}

const MOST_LANES = 24;
export const NO_SLOT = "no slot";
const NOBODY = "nobody";

/** Bars that overlap go below each other. */
const intoLanes = (rows: Row[], bars: Bar[]): void => {
  const ends: number[][] = rows.map(() => []);
  for (const bar of [...bars].sort((a, b) => a.from - b.from || a.to - b.to)) {
    const row = ends[bar.row];
    let lane = row.findIndex((end) => end <= bar.from);
    if (lane < 0) lane = Math.min(row.length, MOST_LANES - 1);
    row[lane] = Math.max(bar.to, bar.from + 1);
    bar.lane = lane;
  }
  rows.forEach((row, i) => (row.lanes = Math.max(1, ends[i].length)));
};

const rowOf = (label: string, note = "", marked = false): Row => ({ label, note, lanes: 1, marked });

/** The first of a fused group stands for all of it. */
const leads = (op: Op, rank: Map<string, number>): boolean =>
  op.fused_with.every((name) => (rank.get(name) ?? 0) > (rank.get(op.name) ?? 0));

export const unrolled = (loop: Loop, by: "slot" | "agent", count: number): Picture => {
  const rows = by === "slot" ? slotRows(loop) : agentRows(loop);
  const index = new Map(rows.map((row, i) => [row.label, i]));
  const rank = new Map(loop.ops.map((op, i) => [op.name, i]));
  const bars: Bar[] = [];
  for (const op of loop.ops) {
    const label = [op.name, ...op.fused_with].join(" + ");
    for (let i = 0; i < count; i++) {
      const start = op.start + loop.ii * i;
      const add = (row: string, from: number, to: number): void => {
        const done = Math.max(to, start + op.completion);
        bars.push({
          row: index.get(row) ?? 0,
          lane: 0,
          from,
          to,
          done,
          op: op.name,
          others: op.fused_with,
          label,
          iteration: i,
        });
      };
      const held = op.uses.filter((use) => use.duration > 0);
      if (by === "agent") {
        const end = Math.max(0, ...held.map((use) => use.offset + use.duration));
        add(op.agent ?? NOBODY, start, start + end);
      } else if (held.length === 0) {
        add(NO_SLOT, start, start);
      } else if (leads(op, rank)) {
        for (const use of held)
          add(use.slot, start + use.offset, start + use.offset + use.duration);
      }
    }
  }
  intoLanes(rows, bars);
  return { rows, bars };
};

/** Every slot that is held: those with a limit, as listed, then the others. */
export const slotsOf = (loop: Loop): Slot[] => {
  const listed = new Set(loop.slots.map((slot) => slot.name));
  const held = new Set(loop.ops.flatMap((op) => op.uses.map((use) => use.slot)));
  const free = [...held].filter((name) => !listed.has(name));
  const open = { capacity: null, held: 0, utilization: null, limiting: false };
  return [...loop.slots, ...free.map((name) => ({ name, id: 0, ...open }))];
};

const slotRows = (loop: Loop): Row[] => {
  const rows = slotsOf(loop).map((slot) => {
    const used = slot.utilization === null ? "no limit" : percent(slot.utilization);
    return rowOf(slot.name, used, slot.limiting);
  });
  const free = loop.ops.some((op) => !op.uses.some((use) => use.duration > 0));
  return free ? [...rows, rowOf(NO_SLOT)] : rows;
};

const agentRows = (loop: Loop): Row[] =>
  [...new Set(loop.ops.map((op) => op.agent ?? NOBODY))].map((name) => rowOf(name));

export const percent = (share: number): string => `${Math.round(share * 100)} %`;

const sizeOf = (bytes: number): string =>
  bytes && bytes % 1024 === 0 ? `${(bytes / 1024).toLocaleString("en-US")} KB` : `${bytes.toLocaleString("en-US")} B`;

export const lifetimes = (loop: Loop, count: number): Picture => {
  const rows: Row[] = [];
  const bars: Bar[] = [];
  loop.storages.forEach((storage, row) => {
    const note = `${storage.space}, ${sizeOf(storage.bytes)} × ${storage.ring_depth}`;
    rows.push({ ...rowOf(storage.name, note), lanes: storage.ring_depth });
    const begin = storage.begin ?? 0;
    for (let i = 0; i < count; i++) {
      const from = begin + loop.ii * i;
      bars.push({
        row,
        lane: i % storage.ring_depth,
        from,
        to: from + storage.lifetime,
        done: from + storage.lifetime,
        op: storage.writers[0] ?? storage.readers[0]?.op ?? "",
        others: [...storage.writers, ...storage.readers.map((reader) => reader.op)],
        label: storage.name,
        iteration: i,
      });
    }
  });
  return { rows, bars };
};

export const measuredBars = (loop: Loop, measured: Measured, by: "slot" | "agent"): Picture => {
  const slot = new Map(loop.ops.map((op) => [op.name, op.uses[0]?.slot ?? NO_SLOT]));
  const key = (event: Measured["events"][number]): string =>
    by === "agent" ? event.agent : (slot.get(event.op) ?? NO_SLOT);
  const names = [...new Set(measured.events.map(key))];
  const rows = names.map((name) => rowOf(name, "measured"));
  const bars = measured.events.map((event) => ({
    row: names.indexOf(key(event)),
    lane: 0,
    from: event.start,
    to: event.end,
    done: event.end,
    op: event.op,
    others: [],
    label: event.op,
    iteration: event.iteration,
  }));
  intoLanes(rows, bars);
  return { rows, bars };
};

export interface Cells {
  from: number;
  to: number;
  held: Map<string, string[]>;
  drawn: Record<string, number>;
}

/** The II × slot table: a row for each run of cycles in which the same operations hold the same. */
export const cellsOf = (loop: Loop): Cells[] => {
  const holds = loop.ops.flatMap((op) =>
    op.uses.flatMap(({ slot, offset, duration }) =>
      folded(op.start + offset, duration, loop.ii).map(([from, to]) => ({ op, slot, from, to })),
    ),
  );
  const edges = new Set([0, ...loop.table.map((run) => run.cycle)]);
  for (const hold of holds) edges.add(hold.from).add(hold.to);
  edges.delete(loop.ii);
  const begins = [...edges].sort((a, b) => a - b);
  let run = 0;
  const rows: Cells[] = begins.map((from, i) => {
    while (run + 1 < loop.table.length && loop.table[run + 1].cycle <= from) run++;
    const drawn = loop.table[run]?.drawn ?? {};
    return { from, to: begins[i + 1] ?? loop.ii, held: new Map(), drawn };
  });
  const index = new Map(begins.map((from, i) => [from, i]));
  for (const { op, slot, from, to } of holds)
    for (let i = index.get(from) ?? 0; i < rows.length && rows[i].from < to; i++) {
      const there = rows[i].held.get(slot) ?? [];
      if (!there.includes(op.name)) rows[i].held.set(slot, [...there, op.name]);
    }
  return rows;
};

/** A hold in the cycles of the II: one piece, or two where it goes over the end. */
const folded = (start: number, duration: number, ii: number): [number, number][] => {
  if (duration === 0) return [];
  if (duration >= ii) return [[0, ii]];
  const from = start % ii;
  const to = from + duration;
  return to <= ii
    ? [[from, to]]
    : [
        [from, ii],
        [0, to - ii],
      ];
};

/** Round steps of an axis: 1, 2 or 5 times a power of ten, whole cycles. */
export const ticks = (from: number, to: number, about: number): number[] => {
  const rough = Math.max(1, (to - from) / Math.max(1, about));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? rough);
  const found: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
};

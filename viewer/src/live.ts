// What if? The page's side: it remembers the changes, and asks the server for everything else.
//
//   change ──► POST solve ──► the loop's entry anew         undo: the change before, asked again
//   drag   ──► POST check ──► what the verifier says
//   save   ──► POST save  ──► a text, which the browser saves

import { batch, computed, signal } from "@preact/signals";
import type { Bar } from "./geometry";
import type { Knob, Live, Loop, Violation } from "./report";
import { fit, ghost, loop, report, said, select, selected, trips, usualTrips, which } from "./state";

export interface Change {
  settings: Record<string, number | string>;
  tiles: Record<string, number>;
  latencies: Record<string, number>;
  pins: string[];
}

const NONE: Change = { settings: {}, tiles: {}, latencies: {}, pins: [] };

interface Desk {
  first: Loop;
  knobs: Knob[];
  past: Change[];
  now: Change;
  future: Change[];
}

/** One desk a loop; none: the page has no server. */
const desks = signal<Desk[]>([]);
export const desk = computed<Desk | undefined>(() => desks.value[which.value]);
export const alive = signal(true);
export const busy = signal(false);
export const problems = signal<string[]>([]);
/** How many changes could not be: what was typed for them is forgotten. */
export const refusals = signal(0);
/** Where an operation was moved to by hand, and what the verifier says of it. */
export const moved = signal<{ op: string; start: number; violations: Violation[] } | null>(null);

const ask = async <T>(what: string, body: unknown): Promise<T | undefined> => {
  try {
    const answer = await fetch(what, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    alive.value = true;
    const found = (await answer.json()) as T & { errors?: string[] };
    if (!found.errors) return found;
    problems.value = found.errors;
    said.value = found.errors.join("; ");
  } catch {
    alive.value = false;
  }
  return undefined;
};

const POLL = 3000;

export const begin = (given: Live | undefined): void => {
  if (!given) return;
  desks.value = report.value.loops.map((first, i) => ({
    first,
    knobs: given.knobs[i] ?? [],
    past: [],
    now: NONE,
    future: [],
  }));
  setInterval(() => {
    fetch("alive").then(
      (answer) => (alive.value = answer.ok),
      () => (alive.value = false),
    );
  }, POLL);
};

let asked = 0;

const solve = async (at: number, next: Desk): Promise<void> => {
  const mine = ++asked;
  batch(() => {
    busy.value = true;
    problems.value = [];
    putBack();
  });
  const name = report.value.loops[at].name;
  const found = await ask<{ entry: Loop }>("solve", { loop: name, change: next.now });
  if (mine !== asked) return;
  busy.value = false;
  if (!found) {
    refusals.value++;
    return;
  }
  batch(() => {
    const { entry } = found;
    desks.value = desks.value.map((each, i) => (i === at ? next : each));
    report.value = {
      ...report.value,
      loops: report.value.loops.map((each, i) => (i === at ? entry : each)),
    };
    if (entry.success) {
      trips.value = Math.max(trips.value, usualTrips(entry));
      fit();
    }
    said.value = entry.success
      ? `II ${entry.ii}, ${entry.stage_count} stages`
      : `no schedule: ${(entry.errors ?? []).join("; ")}`;
  });
};

export const apply = (edit: (now: Change) => Change): void => {
  const at = desk.value;
  if (!at) return;
  void solve(which.value, { ...at, past: [...at.past, at.now], now: edit(at.now), future: [] });
};

export const undo = (): void => {
  if (ghost.value) return putBack();
  const at = desk.value;
  const before = at?.past.at(-1);
  if (at && before)
    void solve(which.value, {
      ...at,
      past: at.past.slice(0, -1),
      now: before,
      future: [at.now, ...at.future],
    });
};

export const redo = (): void => {
  const at = desk.value;
  const after = at?.future[0];
  if (at && after)
    void solve(which.value, {
      ...at,
      past: [...at.past, at.now],
      now: after,
      future: at.future.slice(1),
    });
};

export const startOver = (): void => apply(() => NONE);

/** Every pin of an operation gives way to the new one. */
export const pin = (op: string, asked: string): void =>
  apply((now) => ({
    ...now,
    pins: [...now.pins.filter((each) => !each.startsWith(`${op}=`)), `${op}=${asked}`],
  }));

export const unpin = (which: string): void =>
  apply((now) => ({ ...now, pins: now.pins.filter((each) => each !== which) }));

export const putBack = (): void => {
  ghost.value = null;
  moved.value = null;
};

const check = async (op: string, start: number): Promise<void> => {
  const of = loop.value;
  const at = desk.value;
  if (!of?.success || !at) return;
  problems.value = [];
  const ops = of.ops.map((each) => ({
    name: each.name,
    start: each.name === op ? start : each.start,
    fused_with: each.fused_with,
  }));
  const question = { loop: of.name, change: at.now, ii: of.ii, ops };
  const found = await ask<{ violations: Violation[] }>("check", question);
  if (!found || ghost.value?.op !== op) return;
  moved.value = { op, start, violations: found.violations };
  const told = found.violations.map((each) => `${each.rule}: ${each.message}`);
  said.value = told.length ? `refused, ${told.join("; ")}` : `${op} may start at ${start}`;
};

/** Moves an operation by hand, by so many cycles from where the schedule has it. */
export const tryMove = (op: string, by: number): void => {
  const start = loop.value?.ops.find((each) => each.name === op)?.start;
  if (start === undefined) return;
  if (by === 0) return putBack();
  ghost.value = { op, by };
  moved.value = null;
  void check(op, start + by);
};

/** Moves the selected operation on by so many cycles, from where it was moved to already. */
export const nudge = (by: number): void => {
  const op = selected.value;
  if (op) tryMove(op, (ghost.value?.op === op ? ghost.value.by : 0) + by);
};

/** Alt and an arrow move what is selected, wherever in the page the keyboard is. */
export const nudged = (event: KeyboardEvent): void => {
  const arrow = /^Arrow(Left|Right)$/.test(event.key);
  if (!arrow || !event.altKey || !desk.value || !alive.value || !selected.value) return;
  event.preventDefault();
  nudge((event.key === "ArrowRight" ? 1 : -1) * (event.shiftKey ? 10 : 1));
};

export const dragging = {
  move: (bar: Bar, by: number): void => {
    ghost.value = { op: bar.op, by };
  },
  drop: (bar: Bar, by: number): void => {
    select(bar.op, bar.iteration);
    tryMove(bar.op, by);
  },
};

export const save = async (kind: string): Promise<void> => {
  const at = desk.value;
  const name = loop.value?.name;
  const found = await ask<{ file: string; text: string }>("save", { loop: name, change: at?.now, kind });
  if (!found) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([found.text], { type: "text/plain" }));
  link.download = found.file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  said.value = `saved ${found.file}`;
};

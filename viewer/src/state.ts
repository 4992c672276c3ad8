// What all views share: the document, the loop looked at, the operation selected, the time in view.

import { computed, signal } from "@preact/signals";
import type { Document, Loop, Op } from "./report";

export interface Span {
  from: number;
  to: number;
}

export const report = signal<Document>({
  schema: "",
  success: false,
  version: "",
  source: null,
  loops: [],
});
export const which = signal(0);
export const loop = computed<Loop | undefined>(() => report.value.loops[which.value]);

export const selected = signal("");
export const hovered = signal("");
/** An operation that was moved by hand, and by how many cycles. */
export const ghost = signal<{ op: string; by: number } | null>(null);
/** The iteration that the slider is at, and so the one whose bars are drawn in full. */
export const iteration = signal(0);
/** How many iterations the unrolled views show. */
export const trips = signal(1);
export const rowsBy = signal<"slot" | "agent">("slot");
/** The cycles that the unrolled views show, all of them together. */
export const span = signal<Span>({ from: 0, to: 1 });
export const theme = signal<"auto" | "light" | "dark">("auto");
/** What the screen reader is told. */
export const said = signal("");

export const byName = computed(() => new Map((loop.value?.ops ?? []).map((op) => [op.name, op])));
export const opOf = (name: string): Op | undefined => byName.value.get(name);

/** The cycle after the last one of so many iterations. */
export const endOf = (of: Loop, count: number): number =>
  Math.max(1, of.prediction.fixed + of.prediction.per_iteration * count);

export const MOST_TRIPS = 64;

/** As many iterations as show a steady state. */
export const usualTrips = (of: Loop): number => Math.min(MOST_TRIPS, Math.max(2, of.stage_count + 2));

export const select = (name: string, at?: number): void => {
  selected.value = name;
  if (at !== undefined) iteration.value = at;
  const op = opOf(name);
  said.value = op ? told(op, iteration.value) : "Nothing selected";
};

/** Bring iteration `at` into view without changing how much is in view. */
export const lookAt = (at: number): void => {
  iteration.value = at;
  const of = loop.value;
  if (!of?.success) return;
  const { from, to } = span.value;
  const begin = at * of.ii;
  const width = to - from;
  if (begin < from || begin + of.ii > to) {
    const end = endOf(of, trips.value);
    const start = Math.max(0, Math.min(begin, end - width));
    span.value = { from: start, to: start + width };
  }
};

export const fit = (): void => {
  if (loop.value?.success) span.value = { from: 0, to: endOf(loop.value, trips.value) };
};

export const show = (index: number): void => {
  which.value = index;
  selected.value = "";
  ghost.value = null;
  iteration.value = 0;
  if (loop.value?.success) trips.value = usualTrips(loop.value);
  fit();
};

/**
 * The iteration that an operation belongs to in the first interval of the steady state. Colours tell
 * iterations apart in every view, so that an operation has one colour in that interval everywhere.
 */
export const steadyIteration = (of: Loop, stage: number): number => of.stage_count - 1 - stage;
export const TINTS = 6;
export const tintOf = (of: Loop, stage: number | undefined): string =>
  `tint${Math.max(0, steadyIteration(of, stage ?? 0)) % TINTS}`;

export const number = (value: number): string => value.toLocaleString("en-US");
/** What the machine's figures are: cycles of its clock, or weights. */
export const unit = computed(() => loop.value?.unit ?? "cycles");
export const cycles = (value: number): string =>
  value === 1 ? `1 ${unit.value.replace(/s$/, "")}` : `${number(value)} ${unit.value}`;

const room = (value: number | null, bound: string[]): string => {
  const amount = value === null ? `any number of ${unit.value}` : cycles(value);
  return bound.length ? `${amount} (${bound.join(", ")})` : amount;
};

/** An operation in one sentence, for those who hear the page. */
export const told = (op: Op, at: number): string => {
  const ii = loop.value?.ii ?? 0;
  return (
    `${op.name}, ${op.kind}: start ${op.start + ii * at} in iteration ${at}, stage ${op.stage}, ` +
    `cycle ${op.cycle}; could start ${room(op.slack.earlier, op.bound_by.earlier)} earlier, ` +
    `${room(op.slack.later, op.bound_by.later)} later`
  );
};

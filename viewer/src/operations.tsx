// Every operation with its numbers: to search, to sort, to read.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Name } from "./name";
import type { Loop, Op } from "./report";
import { Rows } from "./rows";
import { number, selected, unit } from "./state";

const open = (value: number | null): string => (value === null ? "∞" : number(value));

const COLUMNS: [string, string, (op: Op) => number | string][] = [
  ["start", "first cycle, in iteration 0", (op) => op.start],
  ["stage", "iterations begun before it in steady state", (op) => op.stage],
  ["cycle", "cycle of the II", (op) => op.cycle],
  ["latency", "time until its result is ready", (op) => op.latency],
  ["earlier", "how much it could move earlier, by dependences", (op) => op.slack.earlier ?? Infinity],
  ["later", "how much it could move later, by dependences", (op) => op.slack.later ?? Infinity],
  ["agent", "who issues it", (op) => op.agent ?? ""],
  ["opcode", "what it is", (op) => op.kind],
];

export const Operations = ({ loop }: { loop: Loop }) => {
  const sought = useSignal("");
  const sorted = useSignal("");
  const ops = useMemo(() => {
    const text = sought.value.toLowerCase();
    const found = loop.ops.filter((op) => `${op.name} ${op.kind}`.toLowerCase().includes(text));
    const by = COLUMNS.find(([name]) => name === sorted.value)?.[2];
    if (!by) return found;
    const order = (a: Op, b: Op) => {
      const [x, y] = [by(a), by(b)];
      return x < y ? -1 : x > y ? 1 : 0;
    };
    return [...found].sort(order);
  }, [loop, sought.value, sorted.value]);
  const heads = (
    <tr aria-rowindex={1}>
      <th scope="col" aria-sort={sorted.value === "" ? "ascending" : "none"}>
        <button type="button" class="head" onClick={() => (sorted.value = "")}>
          operation
        </button>
      </th>
      {COLUMNS.map(([name, told]) => (
        <th key={name} scope="col" aria-sort={sorted.value === name ? "ascending" : "none"}>
          <button type="button" class="head" title={told} onClick={() => (sorted.value = name)}>
            {name}
          </button>
        </th>
      ))}
    </tr>
  );
  const row = (index: number) => {
    const op = ops[index];
    return (
      <>
        <th scope="row">
          <Name op={op.name} />
        </th>
        <td>{number(op.start)}</td>
        <td>{op.stage}</td>
        <td>{number(op.cycle)}</td>
        <td>{number(op.latency)}</td>
        <td>{open(op.slack.earlier)}</td>
        <td>{open(op.slack.later)}</td>
        <td>{op.agent}</td>
        <td>{op.kind}</td>
      </>
    );
  };
  return (
    <section class="operations" aria-labelledby="operations-title">
      <h2 id="operations-title">
        Operations <small>times and slack in {unit.value}</small>
      </h2>
      <div class="tools">
        <label>
          Find{" "}
          <input
            id="find"
            type="search"
            value={sought.value}
            onInput={(e) => (sought.value = e.currentTarget.value)}
          />
        </label>
        <span>
          {ops.length} of {loop.ops.length}
        </span>
      </div>
      <Rows
        label="Operations"
        heads={heads}
        columns={9}
        count={ops.length}
        shown={ops.findIndex((op) => op.name === selected.value)}
        row={row}
        rowClass={(index) => (ops[index].name === selected.value ? "chosen" : "")}
      />
    </section>
  );
};

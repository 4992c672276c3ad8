// An operation's name, wherever it stands: to click, to hover, to hear.

import { hovered, opOf, select, selected } from "./state";

export const Name = ({ op, note }: { op: string; note?: string }) =>
  opOf(op) ? (
    <button
      type="button"
      class={selected.value === op ? "name chosen" : "name"}
      aria-pressed={selected.value === op}
      data-op={op}
      title={op}
      onClick={() => select(selected.value === op ? "" : op)}
      onMouseEnter={() => (hovered.value = op)}
      onMouseLeave={() => (hovered.value = "")}
      onFocus={() => (hovered.value = op)}
      onBlur={() => (hovered.value = "")}
    >
      {op}
      {note ? <small> {note}</small> : null}
    </button>
  ) : (
    <span>
      {op}
      {note ? <small> {note}</small> : null}
    </span>
  );

export const Names = ({ ops }: { ops: string[] }) => (
  <span class="names">
    {ops.map((op) => (
      <Name key={op} op={op} />
    ))}
  </span>
);

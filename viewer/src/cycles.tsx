// II × slot: who holds what in each cycle of the steady state, equal cycles drawn together.

import { useMemo } from "preact/hooks";
import { cellsOf, percent, slotsOf } from "./geometry";
import { Name } from "./name";
import type { Loop } from "./report";
import { Rows } from "./rows";
import { number, opOf, selected, tintOf, unit } from "./state";

export const Cycles = ({ loop }: { loop: Loop }) => {
  const rows = useMemo(() => cellsOf(loop), [loop]);
  const slots = slotsOf(loop);
  const pools = loop.pools;
  const op = opOf(selected.value);
  const first = op?.uses.find((use) => use.duration > 0);
  const at = op && first ? (op.start + first.offset) % loop.ii : -1;
  const shown = at < 0 ? -1 : rows.findIndex((cells) => cells.to > at);
  const heads = (
    <tr aria-rowindex={1}>
      <th scope="col">{unit.value}</th>
      {slots.map((slot) => (
        <th key={slot.name} scope="col" class={slot.limiting ? "limiting" : ""}>
          {slot.name}{" "}
          <small>
            {slot.utilization === null ? "no limit" : percent(slot.utilization)}
            {slot.limiting ? ", limits" : ""}
          </small>
        </th>
      ))}
      {pools.map((pool) => (
        <th key={pool.name} scope="col" class={pool.limiting ? "limiting" : ""}>
          {pool.name} <small>of {number(pool.cap)}</small>
        </th>
      ))}
    </tr>
  );
  const row = (index: number) => {
    const { from, to, held, drawn } = rows[index];
    return (
      <>
        <th scope="row">{to - from > 1 ? `${from} – ${to - 1}` : from}</th>
        {slots.map((slot) => {
          const there = held.get(slot.name) ?? [];
          const tint = there.length ? tintOf(loop, opOf(there[0])?.stage) : "";
          return (
            <td key={slot.name} class={tint} data-slot={slot.name}>
              {there.map((name) => (
                <Name key={name} op={name} />
              ))}
            </td>
          );
        })}
        {pools.map((pool) => (
          <td key={pool.name}>{drawn[pool.name] ? number(drawn[pool.name]) : ""}</td>
        ))}
      </>
    );
  };
  return (
    <section class="cycles" aria-labelledby="cycles-title">
      <h2 id="cycles-title">
        Every cycle of II {number(loop.ii)} <small>colour: iteration, as on the timeline in the first interval of the steady state</small>
      </h2>
      <Rows
        label="Who holds each slot in each cycle of the steady state"
        heads={heads}
        columns={1 + slots.length + pools.length}
        count={rows.length}
        shown={shown}
        row={row}
      />
    </section>
  );
};

// One operation: where it stands, how far it could move, and what binds it.

import type { JSX } from "preact";
import { Name, Names } from "./name";
import type { Loop, Op } from "./report";
import { cycles, hovered, iteration, number, opOf, selected } from "./state";

const Room = ({ amount, by }: { amount: number | null; by: string[] }) => (
  <>
    {amount === null ? "no limit" : cycles(amount)}
    {by.length ? (
      <>
        {" "}
        <small>bound by</small> <Names ops={by} />
      </>
    ) : null}
  </>
);

const Facts = ({ op, loop, links }: { op: Op; loop: Loop; links: boolean }) => {
  const rows: [string, JSX.Element | string][] = [
    ["start", `${number(op.start)}; in iteration ${iteration.value}: ${number(op.start + loop.ii * iteration.value)}`],
    ["stage, cycle, order", `${op.stage}, ${number(op.cycle)}, ${op.order}`],
    ["slack before", <Room amount={op.slack.earlier} by={op.bound_by.earlier} />],
    ["slack after", <Room amount={op.slack.later} by={op.bound_by.later} />],
    ["holds", holdsOf(op)],
    ["result after", cycles(op.latency)],
    ["issued by", op.agent ?? "nobody"],
  ];
  if (op.fused_with.length) rows.push(["fused with", <Names ops={op.fused_with} />]);
  if (links && op.rung) rows.push(["seated by", [op.rung, op.arm].filter(Boolean).join(", ")]);
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
};

const holdsOf = (op: Op): string =>
  op.uses
    .filter((use) => use.duration > 0)
    .map((use) => {
      const share = use.occupancy === 1 ? "" : ` × ${use.occupancy}`;
      return `${use.slot} ${cycles(use.duration)}${share}${use.offset ? ` from +${use.offset}` : ""}`;
    })
    .join(", ") || "no slot";

/** What hangs on the pointer: the facts of the operation under it. */
export const Card = ({ loop }: { loop: Loop }) => {
  const op = opOf(hovered.value);
  if (!op) return null;
  return (
    <div class="card" role="tooltip">
      <b>{op.name}</b> <small>{op.kind}</small>
      <Facts op={op} loop={loop} links={false} />
    </div>
  );
};

/** Where to begin: the operations that set the II. */
const Begin = ({ loop }: { loop: Loop }) => {
  const parts = loop.bounds?.witness?.parts ?? [];
  const ops = [...parts].sort((a, b) => b.amount - a.amount).flatMap((part) => part.ops);
  const first = [...new Set(ops)].slice(0, 8);
  return (
    <>
      <p>Select an operation in any view: it is selected in all of them.</p>
      {first.length ? (
        <p>
          These set the II: <Names ops={first} />
        </p>
      ) : null}
    </>
  );
};

export const Details = ({ loop }: { loop: Loop }) => {
  const op = opOf(selected.value);
  const into = op ? loop.dependences.filter((d) => d.dst === op.name) : [];
  const out = op ? loop.dependences.filter((d) => d.src === op.name) : [];
  const list = (title: string, rows: typeof into, other: "src" | "dst") =>
    rows.length ? (
      <>
        <h3>{title}</h3>
        <ul class="links">
          {rows.map((d, i) => (
            <li key={i}>
              <Name op={d[other]} />{" "}
              <small>
                {d.kind}, latency {number(d.latency)}
                {d.distance ? `, ${d.distance} later` : ""}, slack {number(d.slack)}
                {d.critical ? ", critical" : ""}
              </small>
            </li>
          ))}
        </ul>
      </>
    ) : null;
  return (
    <section class="details" aria-labelledby="details-title">
      <h2 id="details-title">{op ? op.name : "Operation"}</h2>
      {op ? (
        <>
          <p>
            <code>{op.kind}</code>
          </p>
          <Facts op={op} loop={loop} links />
          {list("Waits for", into, "src")}
          {list("Is waited for by", out, "dst")}
        </>
      ) : (
        <Begin loop={loop} />
      )}
    </section>
  );
};

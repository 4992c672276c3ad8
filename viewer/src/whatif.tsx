// What if? Numbers to change, operations to pin, and what came of it beside what was.

import { useSignal } from "@preact/signals";
import {
  alive,
  apply,
  busy,
  desk,
  moved,
  pin,
  problems,
  putBack,
  redo,
  refusals,
  save,
  startOver,
  tryMove,
  undo,
  unpin,
  type Change,
} from "./live";
import { Name } from "./name";
import type { Knob, Loop } from "./report";
import { ghost, loop, number, opOf, selected, unit } from "./state";
import { Text } from "./text";

const KINDS: Record<string, string> = {
  capacity: "capacity of",
  budget: "budget of",
  pool: "units of",
  latency: "latency of",
  duration: "hold of",
  stated: "latency of",
  tile: "extent",
};

const SAVED = ["machine", "pins", "schedule", "loop"];

const partOf = (knob: Knob) =>
  knob.kind === "tile" ? "tiles" : knob.kind === "stated" ? "latencies" : "settings";

/** The change with one knob at another value; at its first value it is no change. */
const turned = (now: Change, knob: Knob, value: number | string | undefined): Change => {
  const part = partOf(knob);
  const { [knob.path]: _, ...rest } = now[part] as Record<string, number | string>;
  const turnedTo = value !== undefined && value !== knob.value ? { [knob.path]: value } : {};
  return { ...now, [part]: { ...rest, ...turnedTo } };
};

/** Operations may be called as objects call their own things: only what stands there counts. */
const valueOf = (now: Change, knob: Knob): number | string => {
  const part = now[partOf(knob)];
  return Object.hasOwn(part, knob.path) ? part[knob.path] : knob.value;
};

const GROUPS: [string, string[]][] = [
  ["Units of the machine", ["capacity", "pool"]],
  ["Memory", ["budget"]],
  ["Tiles of the kernel", ["tile"]],
  ["Latencies of the machine", ["latency"]],
  ["Latencies that operations state", ["stated"]],
  ["Holds of the machine", ["duration"]],
];

/** Knobs under a heading for what they change. */
const Grouped = ({ knobs, now }: { knobs: Knob[]; now: Change }) => (
  <>
    {GROUPS.map(([title, kinds]) => {
      const here = knobs.filter((knob) => kinds.includes(knob.kind));
      return here.length ? (
        <fieldset key={title} class="group">
          <legend>{title}</legend>
          <Knobs knobs={here} now={now} />
        </fieldset>
      ) : null;
    })}
    {knobs.length ? null : <p>No number of that name.</p>}
  </>
);

const Knobs = ({ knobs, now }: { knobs: Knob[]; now: Change }) => (
  <div class="knobs">
    {knobs.map((knob) => {
      const value = valueOf(now, knob);
      const id = `knob-${knob.path}`;
      return (
        <label key={`${knob.path} ${refusals.value}`} for={id} class={value === knob.value ? "" : "changed"}>
          <span>
            {KINDS[knob.kind]} {knob.label} <small>{knob.unit}</small>
          </span>
          <input
            id={id}
            data-path={knob.path}
            type="text"
            inputMode={typeof knob.value === "number" ? "numeric" : "text"}
            value={String(value)}
            disabled={!alive.value}
            onChange={(event) => {
              const text = event.currentTarget.value.trim();
              const asked = /^\d{1,15}$/.test(text) ? Number(text) : text || undefined;
              if (asked !== value) apply((at) => turned(at, knob, asked));
            }}
          />
        </label>
      );
    })}
  </div>
);

const Moving = () => {
  const op = opOf(selected.value);
  if (!op) return <p>Select an operation to move or to pin it; or drag one on the timeline.</p>;
  const start = op.start + (ghost.value?.op === op.name ? ghost.value.by : 0);
  const found = moved.value?.op === op.name ? moved.value : null;
  return (
    <div class="moving">
      <div class="tools">
        <label>
          start of {op.name}{" "}
          <input
            id="start"
            type="number"
            min={0}
            value={start}
            disabled={!alive.value}
            onChange={(event) =>
              tryMove(op.name, Math.round(Number(event.currentTarget.value)) - op.start)
            }
          />
        </label>
        <button type="button" disabled={!alive.value} onClick={() => pin(op.name, `start:${start}`)}>
          Pin at {number(start)}
        </button>
        <button type="button" disabled={!alive.value} onClick={() => pin(op.name, `stage:${op.stage}`)}>
          Pin to stage {op.stage}
        </button>
        {ghost.value ? (
          <button type="button" onClick={putBack}>
            Put back
          </button>
        ) : null}
      </div>
      {found ? (
        <div class="verdict" role="alert">
          {found.violations.length ? (
            <>
              <b class="bad">Refused at {number(found.start)}</b>
              <ul>
                {found.violations.map((each) => (
                  <li key={each.message}>
                    <b>{each.rule}</b>: <Text text={each.message} />
                  </li>
                ))}
              </ul>
            </>
          ) : (
            <b>Legal at {number(found.start)}: pin it, and the rest is solved anew.</b>
          )}
        </div>
      ) : null}
    </div>
  );
};

const COMPARED: Record<string, (of: Loop) => number> = {
  II: (of) => of.ii,
  bound: (of) => of.bounds?.mii ?? 0,
  stages: (of) => of.stage_count,
};

/** Whether a figure became better or worse: less is better, and no schedule is worst. */
const change = (name: string, first: Loop, now: Loop): string => {
  if (!first.success || !now.success) return first.success === now.success ? "" : now.success ? "better" : "worse";
  const of = COMPARED[name] ?? ((loop: Loop) => loop.prediction.per_iteration);
  return of(now) < of(first) ? "better" : of(now) > of(first) ? "worse" : "";
};

const compared = (first: Loop, now: Loop): [string, string, string][] => {
  const told = (of: Loop): string[] =>
    of.success
      ? [
          number(of.ii),
          of.bounds ? number(of.bounds.mii) : "none",
          String(of.stage_count),
          `${number(of.prediction.fixed)} + ${number(of.prediction.per_iteration)} × n`,
        ]
      : ["no schedule", "", "", ""];
  const [was, is] = [told(first), told(now)];
  return ["II", "bound", "stages", unit.value].map((name, i) => [name, was[i], is[i]]);
};

export const WhatIf = () => {
  const at = desk.value;
  const of = loop.value;
  const all = useSignal(false);
  const sought = useSignal("");
  if (!at || !of) return null;
  const changed = JSON.stringify(at.now) !== '{"settings":{},"tiles":{},"latencies":{},"pins":[]}';
  const words = sought.value.toLowerCase().split(/\s+/).filter(Boolean);
  const told = (knob: Knob) =>
    `${KINDS[knob.kind]} ${knob.label} ${knob.path} ${knob.ops.join(" ")}`.toLowerCase();
  const near = at.knobs.filter((knob) =>
    words.length ? words.every((word) => told(knob).includes(word)) :
      all.value ||
      valueOf(at.now, knob) !== knob.value ||
      (selected.value ? knob.ops.includes(selected.value) : ["capacity", "budget", "pool", "tile"].includes(knob.kind)),
  );
  return (
    <section class="whatif" aria-labelledby="whatif-title" aria-busy={busy.value}>
      <h2 id="whatif-title">
        What if? {busy.value ? <small>solving …</small> : null}
      </h2>
      {alive.value ? null : (
        <p class="gone bad" role="alert">
          The server does not answer: what you see stays, but nothing can be solved, checked or saved
          until <code>stretto view</code> runs again at this address.
        </p>
      )}
      <div class="tools">
        <button type="button" disabled={!ghost.value && (!alive.value || !at.past.length)} onClick={undo}>
          Undo
        </button>
        <button type="button" disabled={!alive.value || !at.future.length} onClick={redo}>
          Redo
        </button>
        <button type="button" disabled={!alive.value || !changed} onClick={startOver}>
          Start over
        </button>
        <span class="buttons">
          {SAVED.map((kind) => (
            <button key={kind} type="button" disabled={!alive.value} onClick={() => void save(kind)}>
              Save {kind}
            </button>
          ))}
        </span>
      </div>
      {changed ? (
        <table class="compared">
          <caption>What came of it</caption>
          <thead>
            <tr>
              <th scope="col">of the loop</th>
              <th scope="col">before</th>
              <th scope="col">now</th>
            </tr>
          </thead>
          <tbody>
            {compared(at.first, of).map(([name, was, is]) => (
              <tr key={name} data-row={name}>
                <th scope="row">{name}</th>
                <td>{was}</td>
                <td class={change(name, at.first, of)}>{is}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {problems.value.length ? (
        <div role="alert" class="bad problems">
          {problems.value.map((text) => (
            <p key={text}>
              <Text text={text} />
            </p>
          ))}
        </div>
      ) : null}
      <Moving />
      {at.now.pins.length ? (
        <>
          <h3>Pins</h3>
          <ul class="pins">
            {at.now.pins.map((each) => (
              <li key={each}>
                <code>{each}</code> <Name op={each.slice(0, each.lastIndexOf("="))} />{" "}
                <button type="button" disabled={!alive.value} aria-label={`Unpin ${each}`} onClick={() => unpin(each)}>
                  Unpin
                </button>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      <h3>
        Numbers {selected.value && !all.value ? <small>of {selected.value}</small> : null}
      </h3>
      <div class="tools">
        <label>
          Find{" "}
          <input
            id="find-number"
            type="search"
            value={sought.value}
            onInput={(e) => (sought.value = e.currentTarget.value)}
          />
        </label>
        <label class="all">
          <input type="checkbox" checked={all.value} onChange={(e) => (all.value = e.currentTarget.checked)} /> show
          all {at.knobs.length}
        </label>
      </div>
      <Grouped knobs={near} now={at.now} />
    </section>
  );
};

// The unrolled loop: prologue, steady state, epilogue; one row a slot or an agent.

import { useComputed } from "@preact/signals";
import { Chart, type Dragging, type Link } from "./chart";
import { measuredBars, unrolled } from "./geometry";
import type { Loop } from "./report";
import { cycles, endOf, fit, iteration, lookAt, MOST_TRIPS, number, rowsBy, span, trips, unit } from "./state";

const phasesOf = (loop: Loop, count: number) => {
  const steady = Math.min(loop.prediction.prologue, loop.ii * count);
  const drain = Math.max(steady, loop.ii * count);
  return { steady, drain, end: endOf(loop, count) };
};

/** The critical recurrence in every iteration that is shown. */
const linksOf = (loop: Loop, count: number): Link[] => {
  const start = new Map(loop.ops.map((op) => [op.name, op.start]));
  return loop.dependences
    .filter((d) => d.critical)
    .flatMap((d) =>
      Array.from({ length: Math.max(0, count - d.distance) }, (_, i) => ({
        from: d.src,
        to: d.dst,
        iteration: i,
        later: d.distance,
        ready: (start.get(d.src) ?? 0) + d.latency + loop.ii * i,
        needed: (start.get(d.dst) ?? 0) + loop.ii * (i + d.distance),
        limits: loop.bounds?.limiter === "recurrence",
      })),
    );
};

export const Gantt = ({ loop, dragging }: { loop: Loop; dragging?: Dragging }) => {
  const picture = useComputed(() => unrolled(loop, rowsBy.value, trips.value));
  const links = useComputed(() => linksOf(loop, trips.value));
  const { steady, drain, end } = phasesOf(loop, trips.value);
  const marks = [
    { at: 0, label: "prologue" },
    { at: steady, label: "steady state" },
    { at: drain, label: "epilogue" },
  ];
  const measured = loop.measured;
  const most = measured ? Math.max(end, ...measured.events.map((e) => e.end)) : end;
  const zoomed = (by: number) => {
    const { from, to } = span.value;
    const width = Math.min(most, Math.max(4, (to - from) * by));
    const start = Math.max(0, Math.min((from + to - width) / 2, most - width));
    span.value = { from: start, to: start + width };
  };
  return (
    <section class="gantt" aria-labelledby="gantt-title">
      <h2 id="gantt-title">
        Timeline{" "}
        <small>
          colour: iteration
          {loop.slots.some((slot) => slot.limiting) ? "; red row: what limits the loop" : ""}
          {links.value.length ? `; ${links.value[0].limits ? "red " : ""}line: the critical recurrence` : ""}
        </small>
      </h2>
      <div class="tools">
        <label>
          Rows{" "}
          <select
            value={rowsBy.value}
            onChange={(e) => (rowsBy.value = e.currentTarget.value === "agent" ? "agent" : "slot")}
          >
            <option value="slot">slots</option>
            <option value="agent">agents</option>
          </select>
        </label>
        <label class="slide">
          Iteration{" "}
          <input
            id="iteration"
            type="range"
            min={0}
            max={trips.value - 1}
            value={iteration.value}
            onInput={(e) => lookAt(Number(e.currentTarget.value))}
          />
          <output for="iteration">{iteration.value}</output>
        </label>
        <label>
          of{" "}
          <input
            id="trips"
            type="number"
            min={1}
            max={MOST_TRIPS}
            value={trips.value}
            onChange={(e) => {
              const asked = Math.round(Number(e.currentTarget.value)) || 1;
              trips.value = Math.max(1, Math.min(MOST_TRIPS, asked));
              e.currentTarget.value = String(trips.value);
              iteration.value = Math.min(iteration.value, trips.value - 1);
              fit();
            }}
          />
        </label>
        <span class="buttons">
          <button type="button" aria-label="Zoom in" onClick={() => zoomed(1 / 1.5)}>
            +
          </button>
          <button type="button" aria-label="Zoom out" onClick={() => zoomed(1.5)}>
            −
          </button>
          <button type="button" onClick={fit}>
            all
          </button>
        </span>
      </div>
      <p class="phases">
        <span>
          prologue <b>{cycles(steady)}</b>
        </span>
        <span>
          steady state{" "}
          <b>
            {number(Math.max(0, drain - steady))} = {Math.max(0, (drain - steady) / loop.ii)} × II{" "}
            {number(loop.ii)}
          </b>
        </span>
        <span>
          epilogue <b>{cycles(end - drain)}</b>
        </span>
        <span>
          {trips.value} {trips.value === 1 ? "iteration" : "iterations"} <b>{cycles(end)}</b>
        </span>
      </p>
      <Chart
        label={`Timeline of ${trips.value} iterations of ${loop.name}, in ${unit.value}`}
        picture={picture.value}
        marks={marks}
        end={most}
        gutter={150}
        links={links.value}
        dragging={dragging}
      />
      {measured ? (
        <>
          <h3>Measured, beside the prediction</h3>
          <Chart
            label={`What was measured of ${loop.name}, in ${measured.unit}`}
            picture={measuredBars(loop, measured, rowsBy.value)}
            marks={marks}
            end={most}
            gutter={150}
          />
        </>
      ) : null}
    </section>
  );
};

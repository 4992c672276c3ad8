// What the whole kernel is predicted to take, where a prediction stands beside its schedules.

import type { Loop, Predicted } from "./report";
import { number, report } from "./state";

const time = (seconds: number): string =>
  seconds >= 1e-3
    ? `${number(Math.round(seconds * 1e6) / 1e3)} ms`
    : `${number(Math.round(seconds * 1e7) / 10)} µs`;

const spills = (one: Predicted): string =>
  one.spills
    ? `${number(one.spilled)} ${one.assembled ? "bytes of each thread" : "registers of each thread, by our count"}`
    : "no spills";

const whole = (value: number): string => number(Math.round(value));

const Parts = ({ one, loop }: { one: Predicted; loop: Loop }) => {
  const of = one.loops.find((each) => each.name === loop.name);
  if (!of || !Object.keys(of.kinds).length) return null;
  const rows = [
    ...Object.entries(of.units).map(([name, spent]) => [name, spent, "busy"] as const),
    ...Object.entries(of.kinds).map(([name, spent]) => [name, spent, `of ${of.agent}`] as const),
  ].filter(([name, spent]) => Math.round(spent) || name === of.bound);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Where an iteration goes">
      <table>
        <caption>
          {whole(of.cycles)} cycles an iteration{of.by_machine_code ? " by its machine code" : ""}, bound by{" "}
          {of.bound}
        </caption>
        <thead>
          <tr>
            <th scope="col">what</th>
            <th scope="col">cycles</th>
            <th scope="col">part</th>
            <th scope="col">whose</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, spent, whose]) => (
            <tr key={`${name} ${whose}`} class={name === of.bound ? "limiting" : ""}>
              <th scope="row">{name}</th>
              <td>{whole(spent)}</td>
              <td>{of.cycles ? `${Math.round((100 * spent) / of.cycles)} %` : ""}</td>
              <td>{whose}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};

const Ranking = ({ all }: { all: Predicted[] }) => (
  <details>
    <summary>All {number(all.length)} configurations, the fastest first</summary>
    <div class="scroll" tabIndex={0} role="region" aria-label="Ranking">
      <table>
        <thead>
          <tr>
            {["kernel", "consumers", "rings", "II", "stages", "time", "bound by", "spills"].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {all.map((one, i) => (
            <tr key={i}>
              <th scope="row">{one.of}</th>
              <td>{one.consumers}</td>
              <td>{[...new Set(Object.values(one.rings))].join("/")}</td>
              <td>{one.loops.map((of) => number(of.ii)).join("/")}</td>
              <td>{one.loops.map((of) => of.stages).join("/")}</td>
              <td>{time(one.seconds)}</td>
              <td>{one.bound}</td>
              <td>{spills(one)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </details>
);

export const Prediction = ({ loop }: { loop: Loop }) => {
  const all = report.value.prediction?.predictions ?? [];
  const one = all[0];
  if (!one) return null;
  const facts: [string, string][] = [
    ["time", time(one.seconds)],
    ["bound by", one.bound],
    ["grid", `${one.grid.join(" × ")} blocks, ${one.resident_blocks} at a time on an SM`],
    ["a block", `${whole(one.block_cycles)} cycles`],
    ["all blocks", `${whole(one.cycles)} cycles at ${whole(one.clock_mhz)} MHz`],
    ["registers", spills(one)],
  ];
  if (one.tflops !== null) facts.splice(1, 0, ["TFLOPS", whole(one.tflops)]);
  return (
    <section class="predicted" aria-labelledby="predicted-title">
      <h2 id="predicted-title">
        Predicted <small>{one.kernel}, the whole kernel</small>
      </h2>
      <dl class="headline">
        {facts.map(([name, text], i) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class={i ? "" : "big"}>{text}</dd>
          </div>
        ))}
      </dl>
      <Parts one={one} loop={loop} />
      {all.length > 1 ? <Ranking all={all} /> : null}
    </section>
  );
};

// Storages: how long each copy lives, and how full every space is against its budget.

import { useComputed } from "@preact/signals";
import { Chart } from "./chart";
import { lifetimes, percent } from "./geometry";
import { Names } from "./name";
import type { Loop, Occupancy } from "./report";
import { endOf, number, selected, trips, unit } from "./state";

const WIDE = 600;
const TALL = 90;

/** Live bytes or registers through the II, as steps under the line of the budget. */
const Steps = ({ of, ii }: { of: Occupancy; ii: number }) => {
  const most = Math.max(1, of.budget ?? 0, ...of.steps.map((step) => step.live)) * 1.05;
  const x = (cycle: number) => (cycle / ii) * WIDE;
  const y = (amount: number) => TALL - (amount / most) * TALL;
  let path = `M0,${TALL}`;
  of.steps.forEach((step, i) => {
    const end = of.steps[i + 1]?.cycle ?? ii;
    path += `L${x(step.cycle)},${y(step.live)}L${x(end)},${y(step.live)}`;
  });
  path += `L${WIDE},${TALL}z`;
  const peak = Math.max(0, ...of.steps.map((step) => step.live));
  const against = of.budget === null ? "" : ` of ${number(of.budget)} (${percent(peak / of.budget)})`;
  const told = `${of.space}: at most ${number(peak)}${against} ${of.unit} live`;
  return (
    <figure>
      <figcaption>{told}</figcaption>
      <svg class="steps" viewBox={`0 0 ${WIDE} ${TALL}`} preserveAspectRatio="none" role="img" aria-label={`${told}, through the ${ii} ${unit.value} of the II`}>
        <path class={of.budget !== null && peak > of.budget ? "over" : ""} d={path} />
        {of.budget === null ? null : (
          <line class="budget" x1="0" x2={WIDE} y1={y(of.budget)} y2={y(of.budget)} />
        )}
      </svg>
    </figure>
  );
};

export const Memory = ({ loop }: { loop: Loop }) => {
  const picture = useComputed(() => lifetimes(loop, trips.value));
  const lived = loop.occupancy.filter((of) => of.steps.some((step) => step.live > 0));
  return (
    <section class="memory" aria-labelledby="memory-title">
      <h2 id="memory-title">Memory</h2>
      <dl class="budgets">
        {Object.entries(loop.memory).map(([space, { used, budget }]) => (
          <div key={space}>
            <dt>{space}, reserved</dt>
            <dd>
              {number(used)}
              {budget === null ? " bytes, no limit" : ` of ${number(budget)} bytes`}{" "}
              {budget === null ? null : (
                <meter min={0} max={budget} value={used} aria-label={`${space} reserved`} />
              )}
            </dd>
          </div>
        ))}
        {loop.pressure ? (
          <div>
            <dt>registers a thread, peak</dt>
            <dd>
              {number(loop.pressure.peak)}
              {loop.pressure.budget === null ? "" : ` of ${number(loop.pressure.budget)}`} at cycle{" "}
              {number(loop.pressure.cycle)}
              {loop.spills ? <b class="bad"> spills</b> : null}
            </dd>
          </div>
        ) : null}
      </dl>
      {loop.storages.length ? (
        <>
          <h3>Lifetimes, a lane for each copy of a ring</h3>
          <Chart
            label={`Lifetimes of ${loop.storages.length} storages, in ${unit.value}`}
            picture={picture.value}
            marks={[]}
            end={endOf(loop, trips.value)}
            gutter={220}
          />
          <div class="scroll" tabIndex={0} role="region" aria-label="Storages">
            <table>
              <thead>
                <tr>
                  <th scope="col">storage</th>
                  <th scope="col">space</th>
                  <th scope="col">bytes × ring</th>
                  <th scope="col">lifetime, {unit.value}</th>
                  <th scope="col">written by</th>
                  <th scope="col">read by</th>
                </tr>
              </thead>
              <tbody>
                {loop.storages.map((storage) => {
                  const near = [...storage.writers, ...storage.readers.map((r) => r.op)];
                  return (
                    <tr key={storage.name} data-storage={storage.name} class={near.includes(selected.value) ? "chosen" : ""}>
                      <th scope="row">{storage.name}</th>
                      <td>{storage.space}</td>
                      <td>
                        {number(storage.bytes)} × {storage.ring_depth}
                        {storage.fixed ? ", fixed" : ""}
                      </td>
                      <td>{number(storage.lifetime)}</td>
                      <td>
                        <Names ops={storage.writers} />
                      </td>
                      <td>
                        <Names ops={[...new Set(storage.readers.map((r) => r.op))]} />
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        </>
      ) : null}
      {lived.length ? <h3>Live through the II, under the budget</h3> : null}
      <div class="figures">
        {lived.map((of) => (
          <Steps key={of.space} of={of} ii={loop.ii} />
        ))}
      </div>
    </section>
  );
};

// The program: what each agent runs in which order, and the pipes and mutexes between them.

import { Name, Names } from "./name";
import type { Loop } from "./report";
import { number, opOf } from "./state";

/** Rows of a list from which on only those in view are laid out. */
const LONG = 100;

const later = (distance: number): string => (distance ? `${distance} later` : "");

export const Program = ({ loop }: { loop: Loop }) => {
  const program = loop.program;
  if (!program) return null;
  const steady = (names: string[]) =>
    names
      .map((name) => opOf(name))
      .filter((op) => op !== undefined)
      .sort((a, b) => a.cycle - b.cycle || a.stage - b.stage || a.order - b.order);
  return (
    <section class="program" aria-labelledby="program-title">
      <h2 id="program-title">
        Program <small>{program.mode}</small>
      </h2>
      <div class="agents">
        {program.agents.map((agent) => (
          <div key={agent.name} class={agent.ops.length > LONG ? "agent long" : "agent"}>
            <h3>
              {agent.name}{" "}
              <small>
                {agent.role}
                {agent.warps ? `, ${agent.warps} warps` : ""}
              </small>
            </h3>
            <ol aria-label={`Steady state of ${agent.name}, by cycle`}>
              {steady(agent.ops).map((op) => (
                <li key={op.name}>
                  <span class="at">{number(op.cycle)}</span>{" "}
                  <Name op={op.name} note={op.stage ? `i − ${op.stage}` : "i"} />
                </li>
              ))}
            </ol>
          </div>
        ))}
      </div>
      {program.pipes.length ? (
        <div class="scroll" tabIndex={0} role="region" aria-label="Pipes">
          <table>
            <caption>Pipes</caption>
            <thead>
              <tr>
                <th scope="col">pipe</th>
                <th scope="col">filled by</th>
                <th scope="col">slots</th>
                <th scope="col">drained by</th>
              </tr>
            </thead>
            <tbody>
              {program.pipes.map((pipe) => (
                <tr key={pipe.name}>
                  <th scope="row">{pipe.name}</th>
                  <td>
                    <Names ops={pipe.producers} />
                  </td>
                  <td>
                    {pipe.depth} × {number(pipe.bytes)} B {pipe.space}
                    {pipe.trivial ? ", consumer only" : ""}
                  </td>
                  <td>
                    {pipe.consumers.map((to) => (
                      <Name key={`${to.op}${to.distance}`} op={to.op} note={later(to.distance)} />
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {program.mutexes.length ? (
        <div class="scroll" tabIndex={0} role="region" aria-label="Mutexes">
          <table>
            <caption>Mutexes</caption>
            <thead>
              <tr>
                <th scope="col">mutex</th>
                <th scope="col">holder</th>
                <th scope="col">who waits</th>
              </tr>
            </thead>
            <tbody>
              {program.mutexes.map((mutex) => (
                <tr key={mutex.name}>
                  <th scope="row">{mutex.name}</th>
                  <td>
                    <Name op={mutex.holder} />
                  </td>
                  <td>
                    {mutex.waiters.map((to) => (
                      <Name key={`${to.op}${to.distance}`} op={to.op} note={later(to.distance)} />
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </section>
  );
};

// The answer first: II, what limits it, stages, proof, prediction; then why, and what would help.

import { Names } from "./name";
import type { Loop, Witness } from "./report";
import { cycles, number, report, unit } from "./state";
import { Text } from "./text";

const KINDS = ["resource", "recurrence", "fine", "dependence", "group"] as const;

const limiterOf = (loop: Loop): string => {
  const witness = loop.bounds?.witness;
  if (!witness) return "";
  if (witness.kind === "group") return `the group of ${witness.limit}`;
  if (witness.kind === "cycle")
    return `recurrence ${witness.parts.flatMap((part) => part.ops).join(" → ")}`;
  return `${witness.kind} ${witness.limit}`.trim();
};

const proofOf = (loop: Loop): string => {
  const proof = loop.proof;
  if (!proof) return "not proved optimal";
  if (proof.optimal) return "optimal";
  return `not proved optimal; no II below ${number(proof.lower_bound)} is possible`;
};

const REMEDIES = 3;

export const Headline = ({ loop }: { loop: Loop }) => {
  const { fixed, per_iteration } = loop.prediction;
  return (
    <section class="verdict-first" aria-label="The answer">
      <div class="limiter">
        <p class="label">limited by</p>
        <p class="big limiting">{limiterOf(loop) || "nothing known"}</p>
        <Share loop={loop} />
      </div>
      <Helps loop={loop} most={REMEDIES} title="What would help" />
      <Numbers loop={loop} fixed={fixed} per={per_iteration} />
    </section>
  );
};

/** What the limit is made of, the largest first. */
const Share = ({ loop }: { loop: Loop }) => {
  const witness = loop.bounds?.witness;
  if (!witness?.parts.length) return null;
  const parts = [...witness.parts].sort((a, b) => b.amount - a.amount);
  const shown = witness.kind === "cycle" ? witness.parts : parts.slice(0, 4);
  const left = witness.parts.length - shown.length;
  return (
    <p class="share">
      {shown.map((part) => (
        <span key={part.ops.join()}>
          <Names ops={part.ops} /> <small>{number(part.amount)}</small>
        </span>
      ))}
      {left > 0 ? <small>and {left} more, below</small> : null}
    </p>
  );
};

const Helps = ({ loop, most, title }: { loop: Loop; most: number; title: string }) =>
  loop.remedies.length ? (
    <div class="helps">
      <p class="label">{title}, easiest first</p>
      <ol class="remedies">
        {loop.remedies.slice(0, most).map((remedy) => (
          <li key={remedy.change}>
            <Text text={remedy.change} />{" "}
            <small>
              then II ≥ {cycles(remedy.mii)}
              {remedy.next ? ", limited by " : ""}
              <Text text={remedy.next} />
            </small>
          </li>
        ))}
      </ol>
    </div>
  ) : null;

const Numbers = ({ loop, fixed, per }: { loop: Loop; fixed: number; per: number }) => {
  const per_iteration = per;
  return (
    <dl class="headline">
      <div>
        <dt>II, {unit.value}</dt>
        <dd class="big">{number(loop.ii)}</dd>
      </div>
      <div>
        <dt>proof</dt>
        <dd>{proofOf(loop)}</dd>
      </div>
      <div>
        <dt>stages</dt>
        <dd>{loop.stage_count}</dd>
      </div>
      <div>
        <dt>{unit.value} of n iterations</dt>
        <dd>
          {number(fixed)} + {number(per_iteration)} × n
        </dd>
      </div>
      <div>
        <dt>registers</dt>
        <dd>{loop.spills ? <b class="bad">spill</b> : "no spills"}</dd>
      </div>
    </dl>
  );
};

const Parts = ({ witness }: { witness: Witness }) => (
  <details>
    <summary>
      {witness.limit || witness.kind}: {number(witness.total)} / {number(witness.capacity)}
    </summary>
    <ul>
      {witness.parts.map((part) => (
        <li key={part.ops.join()}>
          {number(part.amount)}
          {part.distance ? `, ${part.distance} later` : ""} <Names ops={part.ops} />
        </li>
      ))}
    </ul>
  </details>
);

export const Why = ({ loop }: { loop: Loop }) => {
  const bounds = loop.bounds;
  return (
    <section class="why" aria-labelledby="why-title">
      <h2 id="why-title">Why this II</h2>
      {bounds ? (
        <div class="scroll" tabIndex={0} role="region" aria-label="Lower bounds">
          <table>
            <caption>Lower bounds on the II, in {unit.value}</caption>
            <thead>
              <tr>
                <th scope="col">bound</th>
                <th scope="col">II at least</th>
                <th scope="col">because of</th>
              </tr>
            </thead>
            <tbody>
              {KINDS.filter((kind) => bounds.witnesses[kind]).map((kind) => (
                <tr key={kind} class={bounds.limiter === kind ? "limiting" : ""}>
                  <th scope="row">{kind}</th>
                  <td>{number(bounds[kind])}</td>
                  <td>
                    {bounds.witnesses[kind]?.parts.length ? (
                      <Parts witness={bounds.witnesses[kind]} />
                    ) : (
                      "nothing"
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      <Refused loop={loop} />
      {loop.remedies.length > REMEDIES ? (
        <Helps loop={loop} most={loop.remedies.length} title="All that would help" />
      ) : null}
      {loop.ties.length ? <p>No single change lowers it: {loop.ties.join(", ")} ask for it alike.</p> : null}
      <Warnings loop={loop} />
    </section>
  );
};

export const Refused = ({ loop }: { loop: Loop }) =>
  loop.refused?.length ? (
    <details>
      <summary>What stopped smaller IIs ({loop.refused.length})</summary>
      <ul>
        {loop.refused.map((refusal) => (
          <li key={refusal.ii}>
            II {number(refusal.ii)}
            {refusal.through && refusal.through !== refusal.ii ? ` to ${number(refusal.through)}` : ""}:{" "}
            <Text text={refusal.reason} />
          </li>
        ))}
      </ul>
    </details>
  ) : null;

export const Warnings = ({ loop }: { loop: Loop }) =>
  loop.warnings?.length ? (
    <details open>
      <summary>Notes ({loop.warnings.length})</summary>
      <ul>
        {loop.warnings.map((text) => (
          <li key={text}>
            <Text text={text} />
          </li>
        ))}
      </ul>
    </details>
  ) : null;

export const Made = ({ loop }: { loop: Loop }) => {
  const asked = Object.entries(loop.options)
    .filter(([, value]) => value !== null && value !== false && JSON.stringify(value) !== "[]")
    .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return (
    <footer>
      <p>
        Stretto {report.value.version}; {loop.name} on {loop.machine}
        {loop.machine_why ? `, ${loop.machine_why}` : null}
        {loop.machine_digest ? <> ({loop.machine_digest.slice(0, 19)}…)</> : null}; {loop.generator}{" "}
        ({loop.rule}); options {asked.join(", ") || "none"}
      </p>
    </footer>
  );
};

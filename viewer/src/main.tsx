// The page: reads the document that stands in it, and shows every view of one loop.

import { effect } from "@preact/signals";
import { render } from "preact";
import { Cycles } from "./cycles";
import { Card, Details } from "./details";
import { Gantt } from "./gantt";
import { Graph } from "./graph";
import { Memory } from "./memory";
import { Operations } from "./operations";
import { Prediction } from "./prediction";
import { Program } from "./program";
import type { Document } from "./report";
import { Source } from "./source";
import { hovered, loop, report, said, show, theme, which } from "./state";
import { begin, desk, dragging, nudged } from "./live";
import { Text } from "./text";
import { WhatIf } from "./whatif";
import { Headline, Made, Refused, Warnings, Why } from "./verdict";

const Top = () => (
  <header>
    <h1>{loop.value ? `${loop.value.name} on ${loop.value.machine || "no machine"}` : "Stretto"}</h1>
    <div class="tools">
      {report.value.loops.length > 1 ? (
        <label>
          Loop{" "}
          <select value={which.value} onChange={(e) => show(Number(e.currentTarget.value))}>
            {report.value.loops.map((each, i) => (
              <option key={each.name} value={i}>
                {each.name}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <label>
        Colours{" "}
        <select
          value={theme.value}
          onChange={(e) => (theme.value = e.currentTarget.value as typeof theme.value)}
        >
          <option value="auto">as the system</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
      </label>
    </div>
  </header>
);

const App = () => {
  const of = loop.value;
  const source = report.value.source;
  if (!of)
    return (
      <main>
        <h1>Stretto</h1>
        <p>There is no loop in this report.</p>
      </main>
    );
  if (!of.success)
    return (
      <>
        <Top />
        <main>
          <section aria-labelledby="failed">
            <h2 id="failed">No schedule</h2>
            {(of.errors ?? []).map((text) => (
              <p key={text}>
                <Text text={text} />
              </p>
            ))}
            <Refused loop={of} />
            <Warnings loop={of} />
          </section>
          <WhatIf />
        </main>
      </>
    );
  return (
    <>
      <Top />
      <main>
        <Prediction loop={of} />
        <Headline loop={of} />
        <Gantt loop={of} dragging={desk.value ? dragging : undefined} />
        <div class="views">
          <div>
            <WhatIf />
            <Details loop={of} />
            <Graph loop={of} />
            <Program loop={of} />
          </div>
          <div>
            <Why loop={of} />
            <Memory loop={of} />
          </div>
          <div>
            {source?.text ? <Source loop={of} file={source.file} text={source.text} /> : null}
          </div>
        </div>
        <Cycles loop={of} />
        <Operations loop={of} />
        <Card loop={of} />
      </main>
      <Made loop={of} />
    </>
  );
};

const start = () => {
  const text = document.getElementById("report")?.textContent ?? "{}";
  report.value = JSON.parse(text) as Document;
  begin(report.value.live);
  show(Math.max(0, report.value.loops.findIndex((each) => each.success)));
  effect(() => {
    document.title = loop.value ? `${loop.value.name} – Stretto` : "Stretto";
  });
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
  // The card follows the pointer, and stays where the keyboard is.
  document.addEventListener("pointermove", (event) => {
    const { style } = document.documentElement;
    style.setProperty("--x", `${event.clientX}px`);
    style.setProperty("--y", `${event.clientY}px`);
  });
  document.addEventListener("focusin", (event) => {
    const at = (event.target as HTMLElement).getBoundingClientRect();
    if (!(event.target as HTMLElement).matches(":focus-visible")) return;
    document.documentElement.style.setProperty("--x", `${at.left}px`);
    document.documentElement.style.setProperty("--y", `${at.bottom}px`);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hovered.value = "";
  });
  document.addEventListener("keydown", nudged);
  const root = document.getElementById("app");
  if (root)
    render(
      <>
        <App />
        <Said />
      </>,
      root,
    );
};

const Said = () => (
  <p class="said" role="status">
    {said.value}
  </p>
);

start();

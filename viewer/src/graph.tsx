// Who waits for whom. Layers by distance-0 dependences; carried ones are dashed, the critical
// recurrence is thick. A large loop shows what is around the selected operation.

import { graphlib, layout } from "@dagrejs/dagre";
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Dependence, Loop } from "./report";
import { cycles, hovered, iteration, opOf, select, selected, tintOf } from "./state";

const WHOLE = 120;
const HOPS = 2;
const HEIGHT = 34;

interface Node {
  x: number;
  y: number;
  width: number;
}

interface Laid {
  nodes: Map<string, Node>;
  edges: { of: Dependence; path: string; x: number; y: number }[];
  width: number;
  height: number;
}

/** What is drawn: all of it, or the surroundings of an operation or of the critical recurrence. */
const drawn = (loop: Loop, around: string): Set<string> => {
  if (loop.ops.length <= WHOLE) return new Set(loop.ops.map((op) => op.name));
  const critical = loop.dependences.filter((d) => d.critical).flatMap((d) => [d.src, d.dst]);
  let edge = around ? [around] : critical.length ? critical : [loop.ops[0].name];
  const found = new Set(edge);
  for (let hop = 0; hop < HOPS && found.size < WHOLE; hop++) {
    const at = new Set(edge);
    const next = loop.dependences.flatMap((d) =>
      at.has(d.src) ? [d.dst] : at.has(d.dst) ? [d.src] : [],
    );
    edge = [];
    for (const name of next)
      if (!found.has(name) && found.size < WHOLE) {
        found.add(name);
        edge.push(name);
      }
  }
  return found;
};

/** One line for each pair of operations and distance, by the dependence with least slack. */
const tightest = (loop: Loop, names: Set<string>): Dependence[] => {
  const found = new Map<string, Dependence>();
  for (const d of loop.dependences) {
    if (!names.has(d.src) || !names.has(d.dst)) continue;
    const key = JSON.stringify([d.src, d.dst, d.distance]);
    const other = found.get(key);
    const critical = d.critical || (other?.critical ?? false);
    const tight = !other || d.slack < other.slack ? d : other;
    found.set(key, { ...tight, critical });
  }
  return [...found.values()];
};

const lay = (loop: Loop, names: Set<string>): Laid => {
  // The layout keeps its nodes in plain objects, where `__proto__` is no key.
  const keys = new Map(loop.ops.map((op, i) => [op.name, `n${i}`]));
  const key = (name: string) => keys.get(name) as string;
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, marginx: 24, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const op of loop.ops)
    if (names.has(op.name)) {
      const width = Math.max(70, Math.min(26, op.name.length) * 7.2 + 20);
      graph.setNode(key(op.name), { width, height: HEIGHT });
    }
  const kept = tightest(loop, names);
  for (const d of kept) if (d.distance === 0) graph.setEdge(key(d.src), key(d.dst), {}, "0");
  layout(graph);
  const nodes = new Map<string, Node>();
  for (const name of names) {
    const node = graph.node(key(name)) as Node | undefined;
    if (node) nodes.set(name, node);
  }
  const edges = kept.map((of) => {
    const from = nodes.get(of.src) as Node;
    const to = nodes.get(of.dst) as Node;
    if (of.distance === 0) {
      const { points } = graph.edge({ v: key(of.src), w: key(of.dst), name: "0" }) as {
        points: { x: number; y: number }[];
      };
      const middle = points[points.length >> 1];
      return { of, path: `M${points.map((p) => `${p.x},${p.y}`).join("L")}`, ...middle };
    }
    if (of.src === of.dst) {
      const right = from.x + from.width / 2;
      const path = `M${right},${from.y - 8}c22,-12 22,28 0,16`;
      return { of, path, x: right + 16, y: from.y };
    }
    const side = Math.max(from.x + from.width / 2, to.x + to.width / 2) + 26;
    const [x1, x2] = [from.x + from.width / 2, to.x + to.width / 2];
    const path = `M${x1},${from.y}C${side},${from.y} ${side},${to.y} ${x2},${to.y}`;
    return { of, path, x: side - 8, y: (from.y + to.y) / 2 };
  });
  const size = graph.graph() as { width?: number; height?: number };
  return { nodes, edges, width: (size.width ?? 0) + 40, height: size.height ?? 0 };
};

export const Graph = ({ loop }: { loop: Loop }) => {
  const large = loop.ops.length > WHOLE;
  const around = useComputed(() => (large ? selected.value : ""));
  const laid = useComputed(() => lay(loop, drawn(loop, around.value)));
  const zoom = useSignal(1);
  const box = useRef<HTMLDivElement>(null);
  const seen = laid.value.nodes.get(selected.value);
  useEffect(() => {
    const frame = box.current;
    if (!frame || !seen) return;
    frame.scrollTop = seen.y * zoom.value - frame.clientHeight / 2;
    frame.scrollLeft = seen.x * zoom.value - frame.clientWidth / 2;
  }, [seen, zoom.value]);
  const { nodes, edges, width, height } = laid.value;
  const limits = loop.bounds?.limiter === "recurrence";

  const typed = (event: KeyboardEvent) => {
    const here = selected.value;
    const forth = event.key === "ArrowDown" || event.key === "ArrowRight";
    if (!forth && event.key !== "ArrowUp" && event.key !== "ArrowLeft") return;
    event.preventDefault();
    if (!nodes.has(here)) {
      select([...nodes.keys()][0]);
      return;
    }
    const level = event.key === "ArrowLeft" || event.key === "ArrowRight";
    const node = nodes.get(here) as Node;
    const row = [...nodes].filter(([, n]) => Math.abs(n.y - node.y) < 2).sort((a, b) => a[1].x - b[1].x);
    const beside = row[row.findIndex(([name]) => name === here) + (forth ? 1 : -1)]?.[0];
    const linked = edges
      .filter((e) => e.of.distance === 0 && (forth ? e.of.src : e.of.dst) === here)
      .sort((a, b) => a.of.slack - b.of.slack)
      .map((e) => (forth ? e.of.dst : e.of.src))[0];
    const next = level ? beside : linked;
    if (next) select(next, iteration.value);
  };

  return (
    <section class="graph" aria-labelledby="graph-title">
      <h2 id="graph-title">
        Dependences <small>dashed: to a later iteration; thick: the critical recurrence; colour: iteration, as in the first steady interval</small>
      </h2>
      <div class="tools">
        {large ? (
          <span>
            {nodes.size} of {loop.ops.length} operations: what is around{" "}
            {around.value || "the critical recurrence"}
          </span>
        ) : null}
        <span class="buttons">
          <button type="button" aria-label="Zoom in" onClick={() => (zoom.value *= 1.25)}>
            +
          </button>
          <button type="button" aria-label="Zoom out" onClick={() => (zoom.value /= 1.25)}>
            −
          </button>
          <button type="button" onClick={() => (zoom.value = 1)}>
            1:1
          </button>
        </span>
      </div>
      <div
        class="drawing"
        ref={box}
        role="application"
        aria-roledescription="dependence graph"
        aria-label={`Dependences of ${nodes.size} operations. Down and up follow the tightest dependence, left and right go along a layer.`}
        tabIndex={0}
        onKeyDown={typed}
      >
        <svg
          width={width * zoom.value}
          height={height * zoom.value}
          viewBox={`0 0 ${width} ${height}`}
          aria-hidden="true"
        >
          <defs>
            <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M0,0L8,4L0,8z" />
            </marker>
          </defs>
          {edges.map(({ of, path, x, y }) => {
            const near = of.src === selected.value || of.dst === selected.value;
            const kinds = [of.critical && "critical", of.critical && limits && "limits", of.distance > 0 && "carried", near && "near"];
            const told = `${of.src} → ${of.dst}: ${of.kind}${of.via ? ` via ${of.via}` : ""}, latency ${cycles(of.latency)}, distance ${of.distance}, slack ${cycles(of.slack)}`;
            return (
              <g key={`${path}${of.distance}`} class={kinds.filter(Boolean).join(" ")} data-src={of.src} data-dst={of.dst} data-distance={of.distance}>
                <path class="edge" d={path} marker-end="url(#tip)">
                  <title>{told}</title>
                </path>
                {near || of.critical ? (
                  <text x={x + 4} y={y}>
                    {of.latency}
                    {of.distance ? ` −${of.distance} II` : ""}
                  </text>
                ) : null}
              </g>
            );
          })}
          {[...nodes].map(([name, node]) => {
            const op = opOf(name);
            const short = name.length > 26 ? `${name.slice(0, 25)}…` : name;
            return (
              <g
                key={name}
                class={selected.value === name ? "node chosen" : "node"}
                data-op={name}
                transform={`translate(${node.x - node.width / 2},${node.y - HEIGHT / 2})`}
                onClick={() => select(selected.value === name ? "" : name)}
                onMouseEnter={() => (hovered.value = name)}
                onMouseLeave={() => (hovered.value = "")}
              >
                <rect class={tintOf(loop, op?.stage)} width={node.width} height={HEIGHT} rx="5" />
                <text x={node.width / 2} y="13">
                  {short}
                </text>
                <text class="small" x={node.width / 2} y="27">
                  {op?.start}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
    </section>
  );
};

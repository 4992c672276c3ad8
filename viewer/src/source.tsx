// The user's own text; a line that became operations selects them, and is marked by them.

import { useMemo } from "preact/hooks";
import type { Loop } from "./report";
import { Rows } from "./rows";
import { hovered, select, selected } from "./state";

export const Source = ({ loop, file, text }: { loop: Loop; file: string; text: string }) => {
  const lines = useMemo(() => text.split(/\r\n|\n|\r/), [text]);
  const here = useMemo(() => {
    const found = new Map<number, string[]>();
    for (const op of loop.ops)
      if (op.location?.file === file) found.set(op.location.line, [...(found.get(op.location.line) ?? []), op.name]);
    return found;
  }, [loop, file]);
  const lineOf = (name: string): number =>
    [...here].find(([, ops]) => ops.includes(name))?.[0] ?? 0;
  const row = (index: number) => {
    const ops = here.get(index + 1) ?? [];
    const next = ops[(ops.indexOf(selected.value) + 1) % Math.max(1, ops.length)];
    return (
      <>
        <th scope="row">{index + 1}</th>
        <td>
          {ops.length ? (
            <button
              type="button"
              class="line"
              aria-pressed={ops.includes(selected.value)}
              onClick={() => select(next)}
              onMouseEnter={() => (hovered.value = ops[0])}
              onMouseLeave={() => (hovered.value = "")}
            >
              {lines[index]}
            </button>
          ) : (
            <code>{lines[index]}</code>
          )}
        </td>
      </>
    );
  };
  const heads = (
    <tr aria-rowindex={1}>
      <th scope="col">line</th>
      <th scope="col">{file}</th>
    </tr>
  );
  return (
    <section class="source" aria-labelledby="source-title">
      <h2 id="source-title">Source</h2>
      <Rows
        label={`Source, ${file}`}
        heads={heads}
        columns={2}
        count={lines.length}
        shown={lineOf(selected.value) - 1}
        row={row}
        rowClass={(index) => (here.get(index + 1)?.includes(selected.value) ? "chosen" : "")}
      />
    </section>
  );
};

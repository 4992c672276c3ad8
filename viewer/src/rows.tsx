// A long table of which only the rows in view stand in the page.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const HEIGHT = 26;
const BEYOND = 8;

interface Props {
  label: string;
  heads: ComponentChildren;
  columns: number;
  count: number;
  /** The row that has to be seen, if any. */
  shown: number;
  row: (index: number) => ComponentChildren;
  rowClass?: (index: number) => string;
}

export const Rows = ({ label, heads, columns, count, shown, row, rowClass }: Props) => {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [tall, setTall] = useState(400);
  useEffect(() => {
    const node = box.current;
    if (!node) return undefined;
    const measure = () => setTall(node.clientHeight);
    const watch = new ResizeObserver(measure);
    watch.observe(node);
    measure();
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    const node = box.current;
    if (!node || shown < 0) return;
    const at = shown * HEIGHT;
    if (at < node.scrollTop || at + 2 * HEIGHT > node.scrollTop + node.clientHeight)
      node.scrollTop = Math.max(0, at - node.clientHeight / 2);
  }, [shown]);
  const first = Math.max(0, Math.floor(top / HEIGHT) - BEYOND);
  const last = Math.min(count, Math.ceil((top + tall) / HEIGHT) + BEYOND);
  const rows = [];
  for (let i = first; i < last; i++)
    rows.push(
      <tr key={i} aria-rowindex={i + 2} class={rowClass?.(i)} style={{ height: `${HEIGHT}px` }}>
        {row(i)}
      </tr>,
    );
  return (
    <div
      class="rows"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={label}
      onScroll={(e) => setTop(e.currentTarget.scrollTop)}
    >
      <table aria-rowcount={count + 1} aria-label={label}>
        <thead>{heads}</thead>
        <tbody>
          {first > 0 ? <tr aria-hidden="true" style={{ height: `${first * HEIGHT}px` }} /> : null}
          {rows}
          {last < count ? (
            <tr aria-hidden="true" style={{ height: `${(count - last) * HEIGHT}px` }}>
              <td colSpan={columns} />
            </tr>
          ) : null}
        </tbody>
      </table>
    </div>
  );
};

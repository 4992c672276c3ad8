// A timeline on a canvas: rows of bars over the cycles in view, however many there are.
//
//   TMA   ▇▇ load_k   ▇▇ load_v        wheel + Ctrl or + − 0   zoom
//   TC         ▇▇▇▇ qk                 drag, Page Up / Down    pan
//         └────┴────┴────┴             arrows                  go from bar to bar

import { effect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Bar, Picture } from "./geometry";
import { ticks } from "./geometry";
import { ghost, hovered, iteration, number, select, selected, span, theme, TINTS, type Span } from "./state";

const LANE = 20;
const GAP = 6;
const AXIS = 34;

export interface Mark {
  at: number;
  label: string;
}

/** A dependence of the critical recurrence, from where a result is ready to where it is needed. */
export interface Link {
  from: string;
  to: string;
  iteration: number;
  later: number;
  ready: number;
  needed: number;
  /** Whether this recurrence is what limits the loop. */
  limits: boolean;
}

export interface Dragging {
  move: (bar: Bar, by: number) => void;
  drop: (bar: Bar, by: number) => void;
}

interface Props {
  label: string;
  picture: Picture;
  marks: Mark[];
  end: number;
  gutter: number;
  links?: Link[];
  dragging?: Dragging;
}

interface Drag {
  bar: Bar | undefined;
  x: number;
  span: Span;
  moved: boolean;
}

/** A label as far as there is room for enough of it to be known again; else nothing. */
const fitting = (label: string, room: number): string => {
  const letters = Math.floor(room / 6.6);
  if (label.length <= letters) return label;
  const first = label.split(" + ", 1)[0];
  if (first.length < label.length && first.length + 2 <= letters) return `${first} +`;
  return letters > 4 && 2 * (letters - 1) >= first.length ? `${first.slice(0, letters - 1)}…` : "";
};

const NONE: Link[] = [];

export const Chart = ({ label, picture, marks, end, gutter, links = NONE, dragging }: Props) => {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const drag = useRef<Drag | undefined>(undefined);
  const tops = useMemo(() => {
    let top = AXIS;
    return picture.rows.map((row) => (top += row.lanes * LANE + GAP) - row.lanes * LANE - GAP);
  }, [picture]);
  const placed = useMemo(
    () => new Map(links.length ? picture.bars.map((bar) => [`${bar.iteration} ${bar.op}`, bar]) : []),
    [picture, links],
  );
  const last = picture.rows.length - 1;
  const height = last < 0 ? AXIS : tops[last] + picture.rows[last].lanes * LANE + GAP;

  const scale = () => {
    const wide = box.current?.clientWidth ?? 0;
    const margin = Math.round(Math.min(gutter, Math.max(64, wide * 0.25)));
    const { from, to } = span.value;
    const per = Math.max(1, wide - margin) / Math.max(1e-9, to - from);
    return { x: (at: number) => margin + (at - from) * per, per, from, to, margin };
  };

  const paint = () => {
    const node = canvas.current;
    const frame = box.current;
    if (!node || !frame) return;
    const wide = frame.clientWidth;
    const tall = Math.min(frame.clientHeight, height);
    const dots = window.devicePixelRatio || 1;
    node.width = Math.round(wide * dots);
    node.height = Math.round(tall * dots);
    node.style.width = `${wide}px`;
    node.style.height = `${tall}px`;
    const g = node.getContext("2d");
    if (!g) return;
    g.scale(dots, dots);
    const style = getComputedStyle(node);
    const colour = (name: string) => style.getPropertyValue(name);
    const tints = Array.from({ length: TINTS }, (_, i) => colour(`--tint${i}`));
    const ink = colour("--ink");
    const soft = colour("--soft");
    const accent = colour("--accent");
    const choice = colour("--choice");
    const onTint = colour("--on-tint");
    const { x, from, to, margin } = scale();
    Object.assign(frame.dataset, { from, to, margin });
    const scrolled = frame.scrollTop;
    g.font = `12px ${style.fontFamily}`;
    g.textBaseline = "middle";

    g.strokeStyle = colour("--line");
    g.lineWidth = 1;
    for (const at of ticks(from, to, (wide - margin) / 90)) {
      g.beginPath();
      g.moveTo(x(at) + 0.5, AXIS - 4);
      g.lineTo(x(at) + 0.5, tall);
      g.stroke();
    }
    picture.rows.forEach((row, i) => {
      if (!row.marked) return;
      g.globalAlpha = 0.14;
      g.fillStyle = accent;
      g.fillRect(0, tops[i] - scrolled - 2, wide, row.lanes * LANE + 3);
      g.globalAlpha = 1;
    });
    g.save();
    g.beginPath();
    g.rect(margin, AXIS, wide - margin, tall - AXIS);
    g.clip();
    const focus = selected.value;
    const under = hovered.value;
    for (const bar of picture.bars) {
      const y = tops[bar.row] + bar.lane * LANE - scrolled;
      if (bar.done < from || bar.from > to || y + LANE < AXIS || y > tall) continue;
      const left = Math.max(x(bar.from), margin - 2);
      const width = Math.max(2, Math.min(x(bar.to), wide + 2) - left);
      const named = (name: string) => name !== "" && (bar.op === name || bar.others.includes(name));
      g.globalAlpha = focus && !named(focus) ? 0.45 : 1;
      g.fillStyle = tints[bar.iteration % TINTS];
      if (bar.done > bar.to) g.fillRect(left, y + LANE - 5, x(bar.done) - left, 2);
      g.fillRect(left, y + 1, width, LANE - 3);
      if (named(focus)) {
        g.strokeStyle = bar.iteration === iteration.value ? choice : ink;
        g.lineWidth = bar.iteration === iteration.value ? 3 : 1.5;
        g.strokeRect(left + 0.5, y + 1.5, Math.max(1, width - 1), LANE - 4);
      } else if (named(under)) {
        g.strokeStyle = ink;
        g.lineWidth = 1;
        g.strokeRect(left + 0.5, y + 1.5, Math.max(1, width - 1), LANE - 4);
      }
      if (width > 22) {
        g.fillStyle = onTint;
        g.fillText(fitting(bar.label, width - 6), left + 4, y + LANE / 2);
      }
    }
    g.globalAlpha = 1;
    const middle = (bar: Bar) => tops[bar.row] + bar.lane * LANE - scrolled + LANE / 2 - 1;
    for (const link of links) {
      const source = placed.get(`${link.iteration} ${link.from}`);
      const target = placed.get(`${link.iteration + link.later} ${link.to}`);
      if (!source || !target || x(link.needed) < margin || x(link.ready) > wide) continue;
      const [x1, y1, x2, y2] = [x(source.to), middle(source), x(link.needed), middle(target)];
      g.globalAlpha = link.iteration === iteration.value ? 1 : 0.35;
      g.strokeStyle = link.limits ? accent : ink;
      g.fillStyle = g.strokeStyle;
      g.lineWidth = link.iteration === iteration.value ? 2.5 : 1.25;
      g.beginPath();
      g.moveTo(x1, y1);
      g.lineTo(Math.max(x1, x(link.ready)), y1);
      g.lineTo(x2, y2);
      g.stroke();
      g.beginPath();
      g.arc(x2, y2, link.iteration === iteration.value ? 3.5 : 2, 0, 2 * Math.PI);
      g.fill();
    }
    g.globalAlpha = 1;
    const hand = dragging ? ghost.value : null;
    for (const bar of hand ? picture.bars.filter((each) => each.op === hand.op) : []) {
      const y = tops[bar.row] + bar.lane * LANE - scrolled;
      const left = x(bar.from + (hand?.by ?? 0));
      g.setLineDash([4, 3]);
      g.strokeStyle = choice;
      g.lineWidth = 2;
      g.strokeRect(left, y + 1, Math.max(3, x(bar.to) - x(bar.from)), LANE - 3);
      g.setLineDash([]);
    }
    for (const mark of marks) {
      if (mark.at === 0) continue;
      g.strokeStyle = soft;
      g.lineWidth = 1.5;
      g.setLineDash([5, 4]);
      g.beginPath();
      g.moveTo(x(mark.at), AXIS);
      g.lineTo(x(mark.at), tall);
      g.stroke();
    }
    g.setLineDash([]);
    g.restore();

    g.fillStyle = colour("--panel");
    g.fillRect(0, 0, wide, AXIS);
    g.fillStyle = soft;
    for (const at of ticks(from, to, (wide - margin) / 90)) {
      const text = number(at);
      if (x(at) + 3 + g.measureText(text).width <= wide) g.fillText(text, x(at) + 3, 8);
    }
    g.fillStyle = ink;
    marks.forEach((mark, i) => {
      const [left, right] = [Math.max(x(mark.at), margin), x(marks[i + 1]?.at ?? to)];
      if (right - left > g.measureText(mark.label).width + 8) g.fillText(mark.label, left + 4, 23);
    });
    picture.rows.forEach((row, i) => {
      const y = tops[i] - scrolled;
      if (y + LANE < AXIS || y > tall) return;
      g.save();
      g.beginPath();
      g.rect(0, AXIS, margin - 6, tall - AXIS);
      g.clip();
      g.fillStyle = row.marked ? accent : ink;
      g.fillText(row.marked ? `▸ ${row.label}` : row.label, 2, y + LANE / 2);
      if (row.note) {
        const end = g.measureText(row.marked ? `▸ ${row.label}` : row.label).width + 10;
        g.fillStyle = soft;
        if (end + g.measureText(row.note).width < margin) g.fillText(row.note, end, y + LANE / 2);
        else if (row.lanes > 1) g.fillText(row.note, 2, y + LANE * 1.5);
      }
      g.restore();
    });
  };

  useEffect(() => {
    let asked = 0;
    const soon = () => {
      if (asked) return;
      asked = requestAnimationFrame(() => {
        asked = 0;
        paint();
      });
    };
    const stop = effect(() => {
      void [span.value, selected.value, hovered.value, iteration.value, theme.value, ghost.value];
      soon();
    });
    const watch = new ResizeObserver(soon);
    if (box.current) watch.observe(box.current);
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", soon);
    box.current?.addEventListener("scroll", soon);
    return () => {
      stop();
      watch.disconnect();
      dark.removeEventListener("change", soon);
      box.current?.removeEventListener("scroll", soon);
      cancelAnimationFrame(asked);
    };
  });

  const barAt = (event: MouseEvent): Bar | undefined => {
    const frame = canvas.current?.getBoundingClientRect();
    if (!frame) return undefined;
    const px = event.clientX - frame.left;
    const py = event.clientY - frame.top;
    const { x, margin } = scale();
    if (px < margin || py < AXIS) return undefined;
    const scrolled = box.current?.scrollTop ?? 0;
    let found: Bar | undefined;
    for (const bar of picture.bars) {
      const y = tops[bar.row] + bar.lane * LANE - scrolled;
      const left = x(bar.from);
      const right = Math.max(left + 4, x(bar.to));
      if (py >= y && py < y + LANE && px >= left - 1 && px <= right + 1) found = bar;
    }
    return found;
  };

  const bounded = (from: number, width: number): Span => {
    const most = Math.max(end, 1);
    const least = Math.min(most, Math.max(4, width));
    const start = Math.max(0, Math.min(from, most - least));
    return { from: start, to: start + least };
  };
  const zoom = (by: number, around?: number) => {
    const { from, to } = span.value;
    const middle = around ?? (from + to) / 2;
    const width = (to - from) * by;
    span.value = bounded(middle - (middle - from) * by, width);
  };

  // The wheel zooms with Ctrl and pans sideways; a plain one scrolls the page as ever.
  useEffect(() => {
    const node = box.current;
    const wheel = (event: WheelEvent) => {
      const { per, from, margin } = scale();
      if (event.ctrlKey) {
        event.preventDefault();
        const left = node?.getBoundingClientRect().left ?? 0;
        zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, from + (event.clientX - left - margin) / per);
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        const by = (event.deltaX || event.deltaY) / per;
        span.value = bounded(span.value.from + by, span.value.to - span.value.from);
      }
    };
    node?.addEventListener("wheel", wheel, { passive: false });
    return () => node?.removeEventListener("wheel", wheel);
  });

  const pressed = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const bar = barAt(event);
    drag.current = { bar, x: event.clientX, span: span.value, moved: false };
    if (bar) select(bar.op, bar.iteration);
  };
  const moved = (event: PointerEvent) => {
    const held = drag.current;
    if (!held) {
      hovered.value = barAt(event)?.op ?? "";
      return;
    }
    const by = event.clientX - held.x;
    if (!held.moved && Math.abs(by) < 4) return;
    if (!held.moved) canvas.current?.setPointerCapture(event.pointerId);
    held.moved = true;
    const { per } = scale();
    if (held.bar && dragging) dragging.move(held.bar, Math.round(by / per));
    else span.value = bounded(held.span.from - by / per, held.span.to - held.span.from);
  };
  const released = (event: PointerEvent) => {
    const held = drag.current;
    drag.current = undefined;
    if (!held) return;
    if (held.moved && held.bar && dragging)
      dragging.drop(held.bar, Math.round((event.clientX - held.x) / scale().per));
    else if (!held.moved && !held.bar) select("");
  };

  const step = (key: string): boolean => {
    const bars = picture.bars;
    if (bars.length === 0) return false;
    const here = bars.find((b) => b.op === selected.value && b.iteration === iteration.value);
    const order = (row: number) =>
      bars.filter((b) => b.row === row).sort((a, b) => a.from - b.from || a.lane - b.lane);
    let next: Bar | undefined;
    if (!here) next = order(Math.min(...bars.map((b) => b.row)))[0];
    else if (key === "ArrowLeft" || key === "ArrowRight") {
      const row = order(here.row);
      next = row[row.indexOf(here) + (key === "ArrowRight" ? 1 : -1)];
    } else {
      const rows = [...new Set(bars.map((b) => b.row))].sort((a, b) => a - b);
      const row = rows[rows.indexOf(here.row) + (key === "ArrowDown" ? 1 : -1)];
      if (row !== undefined)
        next = order(row).reduce((a, b) =>
          Math.abs(b.from - here.from) < Math.abs(a.from - here.from) ? b : a,
        );
    }
    if (next) {
      select(next.op, next.iteration);
      const { from, to } = span.value;
      if (next.from < from || next.from > to)
        span.value = bounded(next.from - (to - from) / 4, to - from);
    }
    return true;
  };

  const typed = (event: KeyboardEvent) => {
    const { from, to } = span.value;
    let taken = true;
    if (event.ctrlKey || event.metaKey || event.altKey) taken = false;
    else if (event.key.startsWith("Arrow")) taken = step(event.key);
    else if (event.key === "+" || event.key === "=") zoom(1 / 1.5);
    else if (event.key === "-") zoom(1.5);
    else if (event.key === "0") span.value = bounded(0, end);
    else if (event.key === "PageDown") span.value = bounded(from + (to - from) / 2, to - from);
    else if (event.key === "PageUp") span.value = bounded(from - (to - from) / 2, to - from);
    else if (event.key === "Escape") select("");
    else taken = false;
    if (taken) event.preventDefault();
  };

  return (
    <div
      class={dragging ? "chart live" : "chart"}
      ref={box}
      role="application"
      aria-roledescription="timeline"
      aria-label={`${label}. Arrow keys go from bar to bar, plus and minus zoom, 0 shows all.`}
      tabIndex={0}
      onKeyDown={typed}
    >
      <div style={{ height: `${height}px` }}>
        <canvas
          ref={canvas}
          aria-hidden="true"
          onPointerDown={pressed}
          onPointerMove={moved}
          onPointerUp={released}
          onPointerCancel={() => (drag.current = undefined)}
          onPointerLeave={() => {
            if (!drag.current) hovered.value = "";
          }}
        />
      </div>
    </div>
  );
};

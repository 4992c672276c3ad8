// The page as it is without a server: every view says what the document says.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, documentOf, launch, opened, writePages } from "./browser.mjs";

let browser;
let folder;

before(async () => {
  folder = writePages();
  browser = await launch();
});
after(() => browser.close());

const open = (name, options) => opened(browser, `file://${join(folder, name)}.html`, options);
const numbers = (text) => Number(text.replaceAll(",", ""));
const said = (page) => page.locator(".said").textContent();

/** Where an operation's bar is on the timeline: x by the cycles in view, y by looking for it. */
const barOf = async (page, loop, name, iteration) => {
  const chart = page.locator(".gantt .chart").first();
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  const [from, to, margin] = await chart.evaluate((node) =>
    [node.dataset.from, node.dataset.to, node.dataset.margin].map(Number),
  );
  const op = loop.ops.find((each) => each.name === name);
  const middle = op.start + loop.ii * iteration + op.uses[0].duration / 2;
  const x = box.x + margin + ((middle - from) / (to - from)) * (box.width - margin);
  for (let y = box.y + 40; y < box.y + box.height; y += 8) {
    await page.mouse.move(x, y);
    const card = page.locator(".card b");
    if ((await card.count()) && (await card.textContent()) === name) return { x, y };
  }
  return assert.fail(`no bar of ${name} at x ${x}`);
};

test("it opens without a complaint and fetches nothing", async () => {
  for (const name of ["attention_forward", "attention_backward", "sixty", "measured", "failed"]) {
    const { page, context, complaints, fetched } = await open(name);
    await page.waitForTimeout(100);
    assert.deepEqual(complaints, [], name);
    assert.deepEqual(fetched.filter((url) => !url.startsWith("data:")).length, 1, name);
    await context.close();
  }
});

test("a kernel of sixty operations takes less than 2 MB", () => {
  assert.ok(statSync(join(folder, "sixty.html")).size < 2_000_000);
});

test("every view says what the document says", async () => {
  const { page, context } = await open("attention_forward", { viewport: { width: 1400, height: 4000 } });
  const { loops } = await documentOf(page);
  const [loop] = loops;
  // operations: scrolled through, for only the rows in view stand in the page
  const seen = new Map();
  const list = page.locator(".operations .rows");
  for (let top = 0; top <= 26 * loop.ops.length; top += 200) {
    await list.evaluate((node, y) => (node.scrollTop = y), top);
    await page.waitForTimeout(30);
    for (const cells of await list.locator("tbody tr:not([aria-hidden])").evaluateAll((rows) =>
      rows.map((row) => [...row.children].map((cell) => cell.innerText.trim())),
    ))
      seen.set(cells[0], cells.slice(1));
  }
  const open_ended = (value) => (value === null ? "∞" : value.toLocaleString("en-US"));
  for (const op of loop.ops)
    assert.deepEqual(seen.get(op.name), [
      op.start.toLocaleString("en-US"),
      String(op.stage),
      op.cycle.toLocaleString("en-US"),
      op.latency.toLocaleString("en-US"),
      open_ended(op.slack.earlier),
      open_ended(op.slack.later),
      op.agent,
      op.kind,
    ]);
  assert.equal(seen.size, loop.ops.length);

  // the II × slot table: cycle by cycle, against what the operations hold
  const table = page.locator(".cycles .rows");
  const held = new Map();
  for (let top = 0; top <= 5200; top += 200) {
    await table.evaluate((node, y) => (node.scrollTop = y), top);
    await page.waitForTimeout(30);
    for (const [run, cells] of await table.locator("tbody tr:not([aria-hidden])").evaluateAll((rows) =>
      rows.map((row) => [
        row.children[0].innerText,
        [...row.querySelectorAll("td[data-slot]")].map((cell) => [
          cell.dataset.slot,
          [...cell.querySelectorAll("[data-op]")].map((name) => name.dataset.op),
        ]),
      ]),
    )) {
      const [from, to] = run.split(" – ").map(numbers);
      for (let cycle = from; cycle <= (to ?? from); cycle++)
        for (const [slot, ops] of cells) held.set(`${slot} ${cycle}`, ops.sort());
    }
  }
  for (const slot of loop.slots)
    for (let cycle = 0; cycle < loop.ii; cycle++) {
      const there = loop.ops.filter((op) =>
        op.uses.some(
          (use) =>
            use.slot === slot.name &&
            (((cycle - op.start - use.offset) % loop.ii) + loop.ii) % loop.ii < use.duration,
        ),
      );
      const names = there.map((op) => op.name).sort();
      assert.deepEqual(held.get(`${slot.name} ${cycle}`), names, `${slot.name} in cycle ${cycle}`);
    }

  // the graph: every operation, every pair that depends, the critical recurrence marked
  const nodes = await page.locator(".graph .node").evaluateAll((all) => all.map((n) => n.dataset.op));
  assert.deepEqual(nodes.sort(), loop.ops.map((op) => op.name).sort());
  const edges = await page.locator(".graph g[data-src]").evaluateAll((all) =>
    all.map((n) => `${n.dataset.src} ${n.dataset.dst} ${n.dataset.distance} ${n.classList.contains("critical")}`),
  );
  const pairs = new Map();
  for (const d of loop.dependences) {
    const key = `${d.src} ${d.dst} ${d.distance}`;
    pairs.set(key, (pairs.get(key) ?? false) || d.critical);
  }
  assert.deepEqual(edges.sort(), [...pairs].map(([key, critical]) => `${key} ${critical}`).sort());

  // storages, the headline, the source
  const rows = await page.locator(".memory tr[data-storage]").evaluateAll((all) =>
    all.map((row) => [...row.children].slice(0, 4).map((cell) => cell.innerText.trim())),
  );
  assert.deepEqual(
    rows,
    loop.storages.map((s) => [
      s.name,
      s.space,
      `${s.bytes.toLocaleString("en-US")} × ${s.ring_depth}${s.fixed ? ", fixed" : ""}`,
      s.lifetime.toLocaleString("en-US"),
    ]),
  );
  const headline = await page.locator(".headline").innerText();
  for (const part of [loop.ii, loop.prediction.fixed])
    assert.ok(headline.includes(part.toLocaleString("en-US")));
  await context.close();
});

test("a click on a bar selects the operation in all views", async () => {
  const { page, context, complaints } = await open("attention_forward");
  const [loop] = (await documentOf(page)).loops;
  const { x, y } = await barOf(page, loop, "qk", 1);
  await page.mouse.click(x, y);
  const qk = loop.ops.find((op) => op.name === "qk");
  assert.equal(await page.locator("#details-title").textContent(), "qk");
  assert.equal(await page.locator(".graph .node.chosen").getAttribute("data-op"), "qk");
  assert.equal(await page.locator(".operations tr.chosen [data-op]").getAttribute("data-op"), "qk");
  assert.ok(await page.locator('.cycles [data-op="qk"][aria-pressed="true"]').count());
  assert.ok(await page.locator('.program [data-op="qk"][aria-pressed="true"]').count());
  assert.deepEqual(
    await page.locator(".memory tr.chosen").evaluateAll((rows) => rows.map((r) => r.dataset.storage)),
    loop.storages
      .filter((s) => s.writers.includes("qk") || s.readers.some((r) => r.op === "qk"))
      .map((s) => s.name),
  );
  const line = page.locator(".source tr.chosen th");
  assert.equal(numbers(await line.textContent()), qk.location.line);
  assert.equal(await page.locator('output[for="iteration"]').textContent(), "1");
  // and from the other views back
  await page.locator(".graph .node", { hasText: "row_max" }).click();
  assert.equal(await page.locator("#details-title").textContent(), "row_max");
  const other = page.locator('.cycles [data-op]:not([data-op="row_max"])').first();
  const name = await other.getAttribute("data-op");
  await other.click();
  assert.equal(await page.locator("#details-title").textContent(), name);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("hovering tells start, stage, slack and what binds it", async () => {
  const { page, context } = await open("attention_forward");
  const [loop] = (await documentOf(page)).loops;
  const op = loop.ops.find((each) => each.name === "row_max");
  await barOf(page, loop, op.name, 0);
  const card = await page.locator(".card").innerText();
  for (const part of [
    op.start.toLocaleString("en-US"),
    `${op.stage}, ${op.cycle.toLocaleString("en-US")}, ${op.order}`,
    `${op.slack.earlier} cycles`,
    ...op.bound_by.earlier,
    `${op.slack.later} cycles`,
    ...op.bound_by.later,
  ])
    assert.ok(card.includes(part), `${part} in ${card}`);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".card").count(), 0);
  await context.close();
});

test("the keyboard walks every bar of a row and the screen reader hears it", async () => {
  const { page, context } = await open("attention_forward");
  const [loop] = (await documentOf(page)).loops;
  await page.locator("#trips").fill("2");
  await page.locator("#trips").press("Enter");
  const chart = page.locator(".gantt .chart").first();
  await chart.focus();
  const heard = [];
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("ArrowRight");
    const text = await said(page);
    if (text === heard.at(-1)) break;
    heard.push(text);
  }
  const expected = loop.ops
    .flatMap((op) =>
      [0, 1].flatMap((i) => (op.uses[0]?.slot === "TMA" ? [[op, i, op.start + loop.ii * i]] : [])),
    )
    .sort((a, b) => a[2] - b[2])
    .map(([op, i, at]) => `${op.name}, ${op.kind}: start ${at} in iteration ${i}, stage ${op.stage}`);
  assert.deepEqual(
    heard.map((text) => text.split(", cycle")[0]),
    expected,
  );
  await page.keyboard.press("ArrowDown");
  const below = (await said(page)).split(",")[0];
  assert.equal(loop.ops.find((op) => op.name === below).uses[0].slot, "TC");
  await page.keyboard.press("Escape");
  assert.equal(await said(page), "Nothing selected");
  await context.close();
});

test("the slider goes through the iterations and the view follows", async () => {
  const { page, context } = await open("attention_forward");
  const [loop] = (await documentOf(page)).loops;
  const chart = page.locator(".gantt .chart").first();
  await chart.focus();
  for (let i = 0; i < 6; i++) await page.keyboard.press("+");
  const slider = page.locator("#iteration");
  await slider.focus();
  await page.keyboard.press("End");
  const last = Number(await slider.getAttribute("max"));
  assert.equal(last, loop.stage_count + 1);
  assert.equal(await page.locator('output[for="iteration"]').textContent(), String(last));
  await page.waitForTimeout(50);
  const [from, to] = await chart.evaluate((n) => [n.dataset.from, n.dataset.to].map(Number));
  assert.ok(from <= last * loop.ii && last * loop.ii <= to);
  await page.getByRole("button", { name: "all" }).click();
  await page.waitForTimeout(50);
  const whole = await chart.evaluate((n) => [n.dataset.from, n.dataset.to].map(Number));
  assert.deepEqual(whole, [0, loop.prediction.fixed + loop.ii * (last + 1)]);
  await page.getByLabel("Rows").selectOption("agent");
  await page.locator('.operations [data-op="qk"]').first().click();
  await chart.focus();
  await page.keyboard.press("ArrowUp");
  const above = (await said(page)).split(",")[0];
  assert.equal(loop.ops.find((op) => op.name === above).agent, "tma");
  await context.close();
});

test("nothing is wider than the screen, from 360 to 2,560 pixels", async () => {
  for (const width of [360, 768, 1200, 2560])
    for (const name of ["attention_backward", "hostile"]) {
      const { page, context } = await open(name, { viewport: { width, height: 900 } });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${name}: ${wide} at ${width}`);
      await context.close();
    }
});

test("it is accessible, light and dark, narrow and wide, with and without a selection", async () => {
  for (const [colorScheme, width] of [["light", 1400], ["dark", 360]]) {
    const { page, context } = await open("attention_forward", {
      colorScheme,
      viewport: { width, height: 900 },
    });
    await accessible(page);
    await page.locator('.operations [data-op="qk"]').first().click();
    await accessible(page);
    await context.close();
  }
  const { page, context } = await open("failed");
  await accessible(page);
  await context.close();
});

test("light and dark are drawn in different colours, as the system or the user says", async () => {
  const { page, context } = await open("attention_forward", { colorScheme: "light" });
  const paper = () => page.evaluate(() => getComputedStyle(document.body.parentElement).backgroundColor);
  const light = await paper();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await paper();
  assert.notEqual(light, dark);
  await page.getByLabel("Colours").selectOption("light");
  assert.equal(await paper(), light);
  await context.close();
});

test("names that look like HTML stay names", async () => {
  const { page, context, complaints, fetched } = await open("hostile");
  const [loop] = (await documentOf(page)).loops;
  assert.ok(loop.ops[0].name.includes("</script>"));
  assert.equal(await page.locator(".operations [data-op]").first().getAttribute("data-op"), loop.ops[0].name);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.title(), "made – Stretto");
  assert.deepEqual(complaints, []);
  assert.equal(fetched.filter((url) => !url.startsWith("data:")).length, 1);
  await context.close();
});

test("names that every object has are names of operations like others", async () => {
  const { page, context, complaints } = await open("objects");
  const { loops } = await documentOf(page);
  const shown = await page.locator("main").innerText();
  for (const { name } of loops[0].ops) assert.ok(shown.includes(name), name);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("a thousand operations are smooth", async (t) => {
  const begun = performance.now();
  const { page, context, complaints } = await open("thousand");
  const opening = performance.now() - begun;
  const frames = await page.evaluate(async () => {
    const chart = document.querySelector(".gantt .chart");
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const key = (name) => chart.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
    const times = [];
    for (let i = 0; i < 4; i++) key("+");
    await frame();
    for (let i = 0; i < 40; i++) {
      const start = performance.now();
      key(i % 2 ? "PageDown" : "ArrowRight");
      await frame();
      await frame();
      times.push((performance.now() - start) / 2);
    }
    return times.sort((a, b) => a - b);
  });
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  const median = frames[frames.length >> 1];
  t.diagnostic(`opened in ${opening.toFixed(0)} ms, a frame takes ${median.toFixed(1)} ms, ${nodes} elements`);
  assert.ok(median < 50, `${median} ms a frame`);
  assert.ok(nodes < 8000, `${nodes} elements`);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("the limiter comes first, and what would help stands above the fold", async () => {
  for (const width of [390, 1440, 2560]) {
    const { page, context } = await open("attention_forward", { viewport: { width, height: 900 } });
    const [loop] = (await documentOf(page)).loops;
    const limiter = page.locator(".limiter .limiting");
    for (const op of loop.bounds.witness.parts.flatMap((part) => part.ops))
      assert.ok((await limiter.innerText()).includes(op));
    const helps = page.locator(".helps");
    const box = await helps.boundingBox();
    assert.ok(box.y + box.height < 900, `${box.y + box.height} at ${width}`);
    const told = loop.remedies[0].change;
    assert.equal((await helps.locator("li").first().innerText()).startsWith(told.replaceAll("`", "")), true);
    assert.equal(await helps.locator("code").count() > 0, told.includes("`"));
    await context.close();
  }
});

test("an operation has one colour in all views", async () => {
  const { page, context } = await open("attention_forward");
  const [loop] = (await documentOf(page)).loops;
  for (const name of ["qk", "pv"]) {
    const op = loop.ops.find((each) => each.name === name);
    const tint = `tint${(loop.stage_count - 1 - op.stage) % 6}`;
    await page.locator(`.graph .node[data-op="${name}"]`).click();
    assert.equal(await page.locator(`.graph .node.chosen rect`).getAttribute("class"), tint);
    const cell = page.locator(`.cycles td:has([data-op="${name}"][aria-pressed="true"])`).first();
    assert.equal(await cell.getAttribute("class"), tint);
  }
  await context.close();
});

test("pages of bench and sweep fit a phone, are dark where the system is, and are accessible", async () => {
  for (const name of ["bench", "sweep"])
    for (const [colorScheme, width] of [["light", 1440], ["dark", 390]]) {
      const { page, context, complaints, fetched } = await open(name, {
        colorScheme,
        viewport: { width, height: 900 },
      });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${name}: ${wide} at ${width}`);
      const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(paper === "rgb(255, 255, 255)", colorScheme === "light");
      const labels = await page.locator("svg").first().locator("text").evaluateAll((all) =>
        all.map((n) => n.getBoundingClientRect()).map((r) => [r.left, r.right, r.top, r.bottom]),
      );
      for (const [i, a] of labels.entries())
        for (const b of labels.slice(i + 1))
          assert.ok(a[1] <= b[0] || b[1] <= a[0] || a[3] <= b[2] + 1 || b[3] <= a[2] + 1, `${a} on ${b}`);
      assert.deepEqual(complaints, []);
      assert.equal(fetched.length, 1);
      await accessible(page);
      await context.close();
    }
});

test("what was measured stands beside the prediction", async () => {
  const { page, context } = await open("measured");
  assert.equal(await page.locator(".gantt .chart").count(), 2);
  const [loop] = (await documentOf(page)).loops;
  const second = page.locator(".gantt .chart").nth(1);
  await second.focus();
  await page.keyboard.press("ArrowRight");
  const heard = (await said(page)).split(",")[0];
  assert.ok(loop.ops.some((op) => op.name === heard));
  await context.close();
});

test("a loop without a schedule says why", async () => {
  const { page, context } = await open("failed");
  const { loops } = await documentOf(page);
  const text = await page.locator("main").innerText();
  for (const reason of loops[0].errors) assert.ok(text.includes(reason));
  await context.close();
});

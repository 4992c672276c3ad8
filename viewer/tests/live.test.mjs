// What if, live: the page with `stretto view` behind it.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { accessible, documentOf, launch, opened, root } from "./browser.mjs";

const stretto = join(root, ".venv/bin/stretto");
const kernel = join(root, "examples/attention_forward.mlir");
let browser;
let server;

/** A running `stretto view` that hears Ctrl-C, which a job in the background ignores; and its address. */
const serve = async () => {
  const words = ["--default-signal=INT", stretto, "view", kernel, "--no-browser"];
  const process = spawn("env", words, { stdio: ["ignore", "pipe", "inherit"] });
  const [address] = await new Promise((found) => {
    const lines = [];
    createInterface(process.stdout).on("line", (line) => found([...lines, line]));
  });
  return { process, address };
};
const ended = ({ process }) => new Promise((done) => process.on("exit", (code) => done(code)));

before(async () => {
  browser = await launch();
  server = await serve();
});
after(async () => {
  await browser.close();
  server.process.kill();
});

const open = (address = server.address) => opened(browser, address);
const row = (page, name) =>
  page.locator(`.compared tr[data-row="${name}"] td`).evaluateAll((cells) => cells.map((c) => c.innerText));
const ii = async (page) => Number((await page.locator(".headline .big").innerText()).replaceAll(",", ""));
/** Sets a number, and waits until the answer is there. */
const turn = async (page, path, value) => {
  const all = page.getByLabel(/show all/);
  if (!(await all.isChecked())) await all.check();
  const knob = page.locator(`[data-path="${path}"]`);
  await knob.fill(String(value));
  await knob.press("Enter");
  await knob.blur();
  await settled(page);
};
const settled = async (page) => {
  await page.waitForTimeout(60);
  await page.locator('.whatif[aria-busy="false"]').waitFor();
};
/** What the command line says of the same. */
const scheduled = (...options) =>
  JSON.parse(execFileSync(stretto, ["schedule", kernel, "--json", ...options], { encoding: "utf8" })).loops[0];

test("numbers move bound, schedule and prediction, and undo brings them back", async () => {
  const { page, context, complaints } = await open();
  const first = await ii(page);
  for (const [path, value] of [
    ["slots.CUDA.capacity", 2],
    ["encodings.mma.latency", 2000],
    ["load_k[0]", 128],
    ["budgets.smem.bytes", 65536],
  ]) {
    await turn(page, path, value);
    const [was, is] = await row(page, "cycles");
    assert.notEqual(was, is, path);
    await page.getByRole("button", { name: "Undo" }).click();
    await settled(page);
    assert.equal(await ii(page), first);
    assert.equal(await page.locator(".compared").count(), 0);
  }
  await page.getByRole("button", { name: "Redo" }).click();
  await settled(page);
  assert.equal(await page.locator('[data-path="budgets.smem.bytes"]').inputValue(), "65536");
  assert.deepEqual(complaints, []);
  await context.close();
});

test("a saved machine gives the command line what the page shows", async () => {
  const { page, context } = await open();
  await turn(page, "encodings.mma.latency", 2000);
  const shown = await ii(page);
  const waiting = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save machine" }).click();
  const download = await waiting;
  const file = join(mkdtempSync(join(tmpdir(), "stretto-saved-")), download.suggestedFilename());
  await download.saveAs(file);
  assert.match(readFileSync(file, "utf8"), /^extends = "b200-pipes"/);
  assert.equal(scheduled("--machine", file).ii, shown);
  await context.close();
});

test("an operation dragged too far shows the rule that refuses", async () => {
  const { page, context, complaints } = await open();
  const [loop] = (await documentOf(page)).loops;
  const op = loop.ops.find((each) => each.name === "qk");
  const chart = page.locator(".gantt .chart").first();
  const box = await chart.boundingBox();
  const [from, to, margin] = await chart.evaluate((n) =>
    [n.dataset.from, n.dataset.to, n.dataset.margin].map(Number),
  );
  const per = (box.width - margin) / (to - from);
  const x = box.x + margin + (op.start + op.uses[0].duration / 2 - from) * per;
  let y = box.y + 40;
  for (; y < box.y + box.height; y += 8) {
    await page.mouse.move(x, y);
    const card = page.locator(".card b");
    if ((await card.count()) && (await card.textContent()) === "qk") break;
  }
  await page.mouse.down();
  await page.mouse.move(x + 30, y, { steps: 4 });
  await page.mouse.move(x + 700 * per, y, { steps: 4 });
  await page.mouse.up();
  const verdict = page.locator(".verdict");
  await verdict.waitFor();
  const told = await verdict.innerText();
  assert.match(told, /Refused at/);
  assert.match(told, /dependence: .*load_s.*qk/);
  await page.getByRole("button", { name: "Undo" }).click();
  assert.equal(await verdict.count(), 0);
  assert.equal(await page.getByRole("button", { name: "Undo" }).isDisabled(), true);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("the keyboard moves an operation too, and a pin has the rest solved anew", async () => {
  const { page, context, complaints } = await open();
  const [loop] = (await documentOf(page)).loops;
  const op = loop.ops.find((each) => each.name === "load_v");
  await page.locator('.operations [data-op="load_v"]').first().click();
  for (let i = 0; i < 10; i++) await page.keyboard.press("Alt+ArrowRight"); // the table has the focus
  await page.locator(".verdict").waitFor();
  assert.match(await page.locator(".verdict").innerText(), /Legal at/);
  await page.getByRole("button", { name: /^Pin at/ }).click();
  await settled(page);
  const asked = `load_v=start:${op.start + 10}`;
  assert.equal(await page.locator(".pins code").innerText(), asked);
  const found = scheduled("--pin", asked);
  assert.equal(await ii(page), found.ii);
  const start = await page.locator(".operations tr.chosen td").first().innerText();
  assert.equal(start.replaceAll(",", ""), String(op.start + 10));
  await page.getByRole("button", { name: /^Unpin/ }).click();
  await settled(page);
  assert.equal(await page.locator(".pins").count(), 0);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("numbers stand in groups and are found by name; what became better is not red", async () => {
  const { page, context } = await open();
  assert.ok((await page.locator(".whatif legend").allInnerTexts()).includes("Units of the machine"));
  await page.locator("#find-number").fill("mma lat");
  const found = await page.locator(".knobs input").evaluateAll((all) => all.map((n) => n.dataset.path));
  assert.deepEqual(found, ["encodings.mma.latency"]);
  await page.locator("#find-number").fill("");
  await turn(page, "encodings.mma.latency", 300);
  const cell = page.locator('.compared tr[data-row="II"] td').nth(1);
  assert.equal(await cell.getAttribute("class"), "better");
  await turn(page, "encodings.mma.latency", 2000);
  assert.equal(await cell.getAttribute("class"), "worse");
  await context.close();
});

test("a number that cannot be says so, and what stood there stays", async () => {
  const { page, context } = await open();
  await turn(page, "slots.CUDA.capacity", 0);
  assert.match(await page.locator("main").innerText(), /slots\.CUDA\.capacity: error: is 0/);
  assert.equal(await page.locator('[data-path="slots.CUDA.capacity"]').inputValue(), "1");
  assert.equal(await ii(page), 1325);
  await turn(page, "budgets.smem.bytes", 100);
  assert.match(await page.locator(".problems").innerText(), /smem holds 100 bytes/);
  assert.equal(await ii(page), 1325);
  await context.close();
});

test("two tabs do not meet, and a closed one leaves nothing behind", async () => {
  const one = await open();
  const other = await open();
  await turn(one.page, "slots.CUDA.capacity", 2);
  assert.equal(await other.page.locator(".compared").count(), 0);
  await turn(other.page, "encodings.mma.latency", 2000);
  const [, mine] = await row(one.page, "cycles");
  await one.page.getByLabel(/show all/).focus();
  assert.deepEqual((await row(one.page, "cycles"))[1], mine);
  await one.context.close();
  await turn(other.page, "encodings.mma.latency", 2100);
  assert.match((await row(other.page, "cycles"))[1], /× n/);
  await other.context.close();
});

test("the live page is accessible", async () => {
  const { page, context } = await open();
  await page.locator('.operations [data-op="qk"]').first().click();
  await turn(page, "slots.CUDA.capacity", 2);
  await accessible(page);
  await context.close();
});

test("the page outlives its server and says so; Ctrl-C ends the server with 0", async () => {
  const mine = await serve();
  const { page, context } = await open(mine.address);
  const over = ended(mine);
  mine.process.kill("SIGINT");
  assert.equal(await over, 0);
  await page.locator(".gone").waitFor({ timeout: 10_000 });
  assert.equal(await page.getByRole("button", { name: "Undo" }).isDisabled(), true);
  await page.locator('.operations [data-op="qk"]').first().click();
  assert.equal(await page.locator("#details-title").textContent(), "qk");
  await context.close();
});

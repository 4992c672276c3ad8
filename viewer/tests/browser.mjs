// Chromium without a window, and pages that must not complain.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const root = new URL("../../", import.meta.url).pathname;
export const python = join(root, ".venv/bin/python");

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? PLACES.find(exists),
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });

const exists = (path) => {
  try {
    readFileSync(path, { length: 1 });
    return true;
  } catch {
    return false;
  }
};

/** The pages of pages.py, in a folder of their own. */
export const writePages = () => {
  const folder = mkdtempSync(join(tmpdir(), "stretto-pages-"));
  execFileSync(python, [join(root, "viewer/tests/pages.py"), folder], { stdio: "inherit" });
  return folder;
};

/** Opens an address; what it complains of and what it fetches is kept beside it. */
export const opened = async (browser, address, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  const fetched = [];
  page.on("console", (m) => {
    if (["error", "warning"].includes(m.type())) complaints.push(m.text());
  });
  page.on("pageerror", (e) => complaints.push(e.stack ?? e.message));
  page.on("dialog", (d) => {
    complaints.push(`dialog ${d.message()}`);
    void d.dismiss();
  });
  page.on("request", (r) => fetched.push(r.url()));
  await page.goto(address);
  await page.locator("main").waitFor();
  return { page, context, complaints, fetched };
};

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Every rule of WCAG 2.2 AA and of good practice that axe knows. */
export const accessible = async (page) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  const told = violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join("\n  ")}`);
  assert.deepEqual(told, []);
};

export const documentOf = (page) =>
  page.evaluate(() => JSON.parse(document.getElementById("report").textContent));

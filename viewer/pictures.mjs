// docs/pictures/: what the viewer looks like, from the pages that the tests open.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launch, opened, root, writePages } from "./tests/browser.mjs";

const folder = writePages();
const pictures = join(root, "docs/pictures");
mkdirSync(pictures, { recursive: true });
const browser = await launch();
const shots = [
  ["viewer.png", "attention_forward_d128", "light", 1280, 820, ""],
  ["viewer-dark.png", "attention_backward", "dark", 420, 760, ""],
];
for (const [file, name, colorScheme, width, height, op] of shots) {
  const address = `file://${join(folder, name)}.html`;
  const { page } = await opened(browser, address, { colorScheme, viewport: { width, height } });
  if (op) await page.locator(`.operations [data-op="${op}"]`).first().click();
  await page.evaluate(() => {
    window.scrollTo(0, 0);
    document.activeElement?.blur();
  });
  await page.mouse.move(1, 1);
  await page.waitForTimeout(200);
  await page.screenshot({ path: join(pictures, file) });
}
await browser.close();

// src/main.tsx + style.css + page.html ──► ../src/stretto/report/viewer.html: one file, nothing fetched.
//
//   node build.mjs           writes it
//   node build.mjs --check   fails where it is not what the sources give

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const here = (path) => new URL(path, import.meta.url);
const target = here("../src/stretto/report/viewer.html");

const bundle = async (entry) => {
  const built = await build({
    entryPoints: [here(entry).pathname],
    absWorkingDir: here(".").pathname,
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  return built.outputFiles[0].text.trim();
};

// What is bundled keeps its licence.
const licences = () => {
  const packages = JSON.parse(readFileSync(here("package.json"), "utf8")).dependencies;
  const bundled = [...Object.keys(packages), "@dagrejs/graphlib", "@preact/signals-core"].sort();
  return bundled.map((name) => {
    const version = JSON.parse(readFileSync(here(`node_modules/${name}/package.json`), "utf8")).version;
    const text = readFileSync(here(`node_modules/${name}/LICENSE`), "utf8").trim();
    return `${name} ${version}\n\n${text}`.replaceAll("--", "- -");
  });
};

const script = (await bundle("src/main.tsx")).replaceAll("</script", "<\\/script");
const style = await bundle("src/style.css");
const hash = createHash("sha256").update(script).digest("base64");
const parts = {
  "@licences@": licences().join("\n\n\n"),
  "@script-hash@": `sha256-${hash}`,
  "@style@": style,
  "@script@": script,
};
let page = readFileSync(here("src/page.html"), "utf8");
for (const [name, text] of Object.entries(parts)) page = page.replace(name, () => text);

if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== page) {
    console.error("src/stretto/report/viewer.html is not what viewer/ builds: run make viewer");
    process.exit(1);
  }
} else {
  writeFileSync(target, page);
  console.log(`${page.length} characters`);
}

// Browser benchmarks: prints a table of targets and measured values. No assertions, because machines differ.
//
//   node tests/e2e/bench/main.mjs [gallery|what-if|gantt|size|shard]
//
// PLANSCOPE_PROGRAM and PLANSCOPE_WEB are the paths of the builds, by default those of the tests.
// PLANSCOPE_SHARD is the path of the Parquet file for `shard`, for example of 2 GB.
import { cpus } from "node:os";
import { join } from "node:path";
import { startBrowser } from "../browser.mjs";
import { root, startServer } from "../server.mjs";
import { measureGallery } from "./gallery.mjs";
import { measureGantt } from "./gantt.mjs";
import { measureShard } from "./shard.mjs";
import { measureSize } from "./size.mjs";
import { measureWhatIf } from "./what_if.mjs";

const rows = [];
/** Prints a figure. `name` identifies it in `cargo xtask bench` (xtask/src/bench/targets.rs). */
const report = (name, what, measured, target, unit, more = "") => {
  const ratio = unit === "frames/s" ? measured / target : target / measured;
  rows.push({ what, measured, target, unit, ratio, more });
  console.log(`measured ${name}: ${measured.toFixed(1)} ${unit}`);
  console.log(`${what}: ${measured.toFixed(1)} ${unit} (target ${target} ${unit}, ${ratio.toFixed(2)} of it) ${more}`);
};

const only = process.argv[2];
const server = await startServer();
const browser = await startBrowser();
try {
  if (!only || only === "gallery") {
    const gallery = await measureGallery(server, browser);
    report("gallery", "gallery, cold load to first useful paint", gallery.painted, 1500, "ms", `layout shift ${gallery.shift.toFixed(3)}`);
    report("gallery wire", "gallery, first visit, bytes on the wire", gallery.wire, 600, "kB");
  }
  if (!only || only === "what-if") {
    for (const [movement, name, what] of [
      ["alternating", "what-if p95", "what-if, slider to painted charts, p95"],
      ["increasing", "what-if anew p95", "what-if, every value planned for the first time, p95"],
      ["images", "what-if sketch p95", "what-if, images of VLM-S, PipeWeaver sketched, p95"],
    ]) {
      const { median, p95, worst } = await measureWhatIf(server, browser, movement);
      report(name, what, p95, 100, "ms", `median ${median.toFixed(0)}, worst ${worst.toFixed(0)}`);
    }
  }
  if (!only || only === "gantt") {
    for (const [samples, fps] of [[400, 60], [4096, 30]]) {
      const chart = await measureGantt(server, browser, samples);
      const name = `Gantt of ${chart.spans} spans`;
      const short = fps === 30 ? "gantt 1M" : "gantt 100k";
      if (fps === 30) report(`${short} first paint`, `${name}, first paint of a page load`, chart.first, 1000, "ms", `all spans after ${chart.whole} ms`);
      const describeFrames = ({ median, p95 }) => `between frames ${median.toFixed(1)} ms median, ${p95.toFixed(1)} p95`;
      report(`${short} panning`, `${name}, panning`, chart.panned.frames, fps, "frames/s", describeFrames(chart.panned));
      report(`${short} zooming`, `${name}, zooming`, chart.zoomed.frames, fps, "frames/s", describeFrames(chart.zoomed));
      report(`${short} zooming far out`, `${name}, zooming far out`, chart.far.frames, fps, "frames/s", describeFrames(chart.far));
    }
  }
  if (process.env.PLANSCOPE_SHARD && (!only || only === "shard")) {
    const { seconds, mib, figures } = await measureShard(server, browser, process.env.PLANSCOPE_SHARD);
    report("shard", "lengths of a local Parquet file, choice to preview", seconds, 5, "s", figures);
    report("shard memory", "memory of browser and server meanwhile", mib, 300, "MiB");
  }
  if (!only || only === "size") {
    const assets = join(process.env.PLANSCOPE_WEB ?? join(root, "target/web"), "assets");
    const { first, pages, largest, all, parts } = await measureSize(assets);
    report("wasm raw", "wasm of the first page, raw", first[0], 900, "kB", `all ${parts} parts ${all[0].toFixed(0)} kB, the largest ${largest[0].toFixed(0)} kB`);
    report("wasm brotli", "wasm of the first page, brotli", first[1], 350, "kB", `all parts ${all[1].toFixed(0)} kB, the largest ${largest[1].toFixed(0)} kB`);
    for (const { page: name, files, size } of pages) {
      console.log(`first load of ${name}: ${size[0].toFixed(0)} kB raw, ${size[1].toFixed(0)} kB brotli, ${files} files`);
    }
  }
} finally {
  await browser.close();
  await server.stop();
}
console.log(`\n| what | target | measured | of the target | |\n|---|---:|---:|---:|---|`);
for (const { what, measured, target, unit, ratio, more } of rows) {
  console.log(`| ${what} | ${target} ${unit} | ${measured.toFixed(1)} | ${ratio.toFixed(2)} | ${more} |`);
}
console.log(`\n${cpus().length} cores, ${cpus()[0]?.model ?? "unknown"}; Chromium without a GPU`);

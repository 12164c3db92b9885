// Layout stability while pages load, and the size of the first visit.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openReady } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";
import { readShifts, recordShifts } from "./layout_shifts.mjs";

const fixture = useFixture();
const MAX_SHIFT = 0.1;
/** Limit also for development builds, which are larger than releases. */
const MAX_FIRST_VISIT_KB = 600;

/** Uploads a file and returns the JSON of the response. */
async function upload(path, text) {
  const response = await fetch(`${fixture.server.url}/api/v1${path}`, { method: "POST", body: text });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

/** Imports a run with step times and losses, and returns its path. */
async function importRun() {
  const lines = Array.from({ length: 40 }, (_, index) => JSON.stringify({ step: index + 1, loss: 3 - index / 40, step_time_ms: 1500 + index }));
  const { summary } = await upload("/runs/import?name=layout.jsonl", lines.join("\n"));
  return `/runs/${summary.id}`;
}

/** Imports a trace with one lane, and returns its path. */
async function importTrace() {
  const slice = (index) => ({ ph: "X", cat: "kernel", name: `gemm_${index % 3}`, pid: 0, tid: 7, ts: index * 20, dur: 15, args: { device: 0, stream: 7 } });
  const { trace } = await upload("/traces?name=layout.json", JSON.stringify({ traceEvents: Array.from({ length: 40 }, (_, index) => slice(index)) }));
  return `/traces/${trace.id}`;
}

test("the layout of every page is stable while it loads", async (t) => {
  const prepared = await fixture.open();
  await openReady(prepared, "llama-2-7b-long-documents");
  const link = new URL(prepared.url()).pathname;
  await prepared.context().close();
  const paths = ["/", link, "/new?ready=gpt-3-175b-uniform", "/schedules", "/scenarios", "/plans", "/sweeps", "/datasets", "/runs", "/traces", "/profiles", "/papers", "/papers/dhp", "/accuracy", "/check", "/traces/compare", "/access", await importRun(), await importTrace()];
  const shifts = {};
  for (const [width, height] of [[1440, 1000], [390, 844]]) {
    for (const path of paths) {
      const page = await fixture.open({ width, height });
      await recordShifts(page);
      await page.goto(path);
      const found = await readShifts(page);
      t.diagnostic(`${width} ${path}: ${found.sum.toFixed(4)}`);
      if (found.sum >= MAX_SHIFT) shifts[`${width} ${path}`] = found;
      await page.context().close();
    }
  }
  assert.deepEqual(shifts, {});
});

test("the first visit transfers at most 600 kB", async (t) => {
  const page = await fixture.open();
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  let bytes = 0;
  session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  await page.goto("/");
  await page.locator(".ready.tile").first().waitFor();
  await page.waitForLoadState("networkidle");
  t.diagnostic(`${(bytes / 1000).toFixed(0)} kB transferred`);
  assert.ok(bytes <= MAX_FIRST_VISIT_KB * 1000, `${bytes} bytes transferred`);
  await page.context().close();
});

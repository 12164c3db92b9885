// Traces: upload, zoom levels, search, deletion and undo, comparison with a plan and with other traces.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { screenshots, useFixture } from "./fixture.mjs";
import { chooseScenario } from "./runs.mjs";

const MARKUP = "<img src=x onerror=alert(1)>";

let page;
const fixture = useFixture(async ({ open }) => {
  page = await open();
  page.on("dialog", () => page.faults.push("a dialog opened"));
});

/** Creates a trace of 6,000 slices in 100 ms: a host thread with nested operators, and a stream with kernels. */
function createTrace() {
  const events = [
    { ph: "M", name: "process_name", pid: 1, args: { name: "python" } },
    { ph: "M", name: "process_name", pid: 0, args: { name: "GPU" } },
  ];
  for (let at = 0; at < 2000; at += 1) {
    const ts = at * 50;
    events.push({ ph: "X", cat: "cpu_op", name: at === 0 ? MARKUP : "aten::linear", pid: 1, tid: 1, ts, dur: 45 });
    events.push({ ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts: ts + 5, dur: 20 });
    events.push({ ph: "X", cat: "kernel", name: at % 10 ? "gemm" : "ncclAllReduce", pid: 0, tid: 7, ts: ts + 12, dur: 30 });
  }
  return { distributedInfo: { rank: 3 }, traceEvents: events };
}

const canvas = () => page.getByTestId("trace-canvas");
const readWindow = () =>
  canvas().evaluate((element) => ({
    start: Number(element.dataset.startNs),
    end: Number(element.dataset.endNs),
    slices: Number(element.dataset.paintedSlices),
    level: element.dataset.level,
  }));

/** Waits until `matches` accepts the state of the canvas, and returns this state. */
async function waitForWindow(matches, what) {
  const end = Date.now() + 10_000;
  let now;
  while (Date.now() < end) {
    now = await readWindow();
    if (matches(now)) return now;
    await page.waitForTimeout(30);
  }
  return assert.fail(`${what}: ${JSON.stringify(now)}`);
}

test("a trace is uploaded and listed, its name shown as it is", async () => {
  await page.goto("/traces");
  const buffer = Buffer.from(JSON.stringify(createTrace()));
  await page.getByTestId("trace-upload").setInputFiles({ name: `${MARKUP}.json`, mimeType: "application/json", buffer });
  await page.getByTestId("trace-report").getByText("6,002 of 6,002 events used").waitFor();
  const row = page.getByTestId("traces").locator("tbody tr").first();
  assert.match(await row.innerText(), /<img src=x onerror=alert\(1\)>\.json[\s\S]*rank 3[\s\S]*6,000/);
  await page.getByTestId("traces-total").getByText(/Size of all traces: /).waitFor();
  assert.deepEqual(await findSeriousViolations(page), []);
  expectNoFaults(page);
});

test("all slices are painted, and fewer after zooming in", async () => {
  await page.getByTestId("traces").getByRole("link").first().click();
  await canvas().waitFor();
  const fullWindow = await waitForWindow(({ slices }) => slices === 6000, "all slices are painted");
  await page.screenshot({ path: join(screenshots, "trace-1440-light.png") });
  await canvas().focus();
  for (let press = 0; press < 8; press += 1) await page.keyboard.press("w");
  const near = await waitForWindow(({ slices, end, start }) => end - start < (fullWindow.end - fullWindow.start) / 20 && slices > 0 && slices < 600, "W zooms in");
  await page.keyboard.press("d");
  await waitForWindow(({ start }) => start > near.start, "D moves the window to the right");
  await page.keyboard.press("f");
  const fitted = await waitForWindow(({ slices }) => slices === 6000, "F shows all slices");
  assert.deepEqual([fitted.start, fitted.end], [fullWindow.start, fullWindow.end]);
});

test("a search finds and selects the next slice by name", async () => {
  const panel = page.getByTestId("trace-selection");
  const waitForSlice = async (name, ...facts) => {
    await panel.getByRole("heading", { name, exact: true }).waitFor();
    for (const fact of facts) await panel.locator("dd").getByText(fact, { exact: true }).waitFor();
  };
  await page.getByTestId("trace-search").fill("onerror");
  await page.keyboard.press("Enter");
  await page.getByTestId("trace-found").getByText("1 slice of 1 name").waitFor();
  await waitForSlice(MARKUP, "45,000 ns");
  await page.getByTestId("trace-search").fill("nccl");
  await page.keyboard.press("Enter");
  await page.getByTestId("trace-found").getByText("200 slices of 1 name").waitFor();
  await waitForSlice("ncclAllReduce", "12.0 µs", "30,000 ns");
  await page.keyboard.press("Enter");
  // Every tenth round of 50 µs has this kernel, so the second starts 500 µs after the first.
  await waitForSlice("ncclAllReduce", "512 µs", "30,000 ns");
  // An arrow key selects the next slice that is drawn.
  await canvas().focus();
  for (let press = 0; press < 8; press += 1) await page.keyboard.press("w");
  await page.getByText("Every slice in view is drawn.").waitFor();
  await page.keyboard.press("ArrowRight");
  await waitForSlice("gemm", "562 µs", "30,000 ns");
  await page.getByTestId("trace-active-time").getByText("Sum of the kernels").waitFor();
  assert.deepEqual(await findSeriousViolations(page), []);
  expectNoFaults(page);
});

test("a click selects a slice, and a click on a heading folds its process", async () => {
  await page.getByTestId("trace-search").fill("");
  await page.keyboard.press("Escape");
  await page.getByTestId("trace-fit").click();
  await waitForWindow(({ slices }) => slices === 6000, "all slices are painted");
  await canvas().focus();
  for (let press = 0; press < 10; press += 1) await page.keyboard.press("w");
  await waitForWindow(({ slices }) => slices > 0 && slices < 300, "W zooms in");
  await page.getByText("Every slice in view is drawn.").waitFor();
  const box = await canvas().boundingBox();
  let found = false;
  for (let y = 24; y < 120 && !found; y += 8) {
    for (let x = 200; x < 700 && !found; x += 60) {
      await page.mouse.move(box.x + x, box.y + y);
      found = await page.getByTestId("trace-tooltip").isVisible();
      if (found) await page.mouse.click(box.x + x, box.y + y);
    }
  }
  assert.ok(found, "a slice is under the pointer");
  await page.getByTestId("trace-selection").getByText(/Duration/).waitFor();
  await page.keyboard.press("f");
  await waitForWindow(({ slices }) => slices === 6000, "all slices are painted");
  await page.mouse.click(box.x + 60, box.y + 8);
  await waitForWindow(({ slices }) => slices > 0 && slices < 6000, "one process is folded");
});

test("deletion of a trace can be undone", async () => {
  await page.goto("/traces");
  await page.getByRole("button", { name: /^Delete / }).first().click();
  await page.getByTestId("traces").getByRole("link").first().waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByTestId("traces").getByRole("link").first().waitFor();
  expectNoFaults(page);
});

test("a link restores time window and selection, and an arrow leads to the next slice", async () => {
  const slice = (name, pid, tid, ts, dur) => ({ ph: "X", name, pid, tid, ts, dur });
  const end = (ph, pid, tid, ts) => ({ ph, id: 1, cat: "ac2g", name: "ac2g", pid, tid, ts, bp: "e" });
  const events = [slice("launch", 1, 1, 10, 5), slice("kernel", 0, 7, 400, 50), slice("last", 1, 1, 990, 10), end("s", 1, 1, 11), end("f", 0, 7, 400)];
  const body = JSON.stringify({ traceEvents: events });
  const answer = await fetch(`${fixture.server.url}/api/v1/traces?name=arrow.json`, { method: "POST", body });
  const { trace: uploaded } = await answer.json();
  await page.goto(`/traces/${uploaded.id}`);
  await page.getByTestId("trace-search").fill("launch");
  await page.keyboard.press("Enter");
  const panel = page.getByTestId("trace-selection");
  await panel.getByText("launch").first().waitFor();
  const waitForArrows = (count) => page.waitForFunction((count) => document.querySelector('[data-testid="trace-canvas"]')?.dataset.paintedArrows === count, count);
  await waitForArrows("1");
  await canvas().focus();
  await page.keyboard.press("w");
  // The address is updated with a delay.
  await page.waitForURL(/#t=[^&]+&s=\d+\.0\.0$/);
  const link = page.url();
  const before = await readWindow();
  await page.goto("/traces");
  await page.goto(link);
  await panel.getByText("launch").first().waitFor();
  await waitForWindow(({ start, end }) => Math.abs(start - before.start) < 2 && Math.abs(end - before.end) < 2, "the same time window");
  await page.screenshot({ path: join(screenshots, "trace-arrow-1440-light.png") });
  await panel.getByTestId("trace-arrows").getByRole("button").click();
  await panel.getByText("kernel").first().waitFor();
  await waitForArrows("1");
  await page.getByTestId("trace-title").fill("An arrow");
  await page.getByTestId("trace-rank").fill("5");
  await page.getByTestId("trace-note").fill("two slices");
  await page.keyboard.press("Tab");
  await page.getByText("rank 5").first().waitFor();
  await page.reload();
  await page.waitForFunction(() => document.querySelector('[data-testid="trace-title"]')?.value === "An arrow");
  assert.equal(await page.getByTestId("trace-note").inputValue(), "two slices");
  assert.deepEqual(await findSeriousViolations(page), []);
  expectNoFaults(page);
});

test("an observed pipeline is compared with its plan", async () => {
  const request = async (method, path, body) => {
    const response = await fetch(`${fixture.server.url}/api/v1${path}`, { method, body, headers: { accept: "application/json" } });
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${await response.clone().text()}`);
    return response.json();
  };
  const scenario = {
    schema: "scenario/1",
    title: "Small",
    model: { preset: "llama-2-7b" },
    cluster: { preset: "a100-80gb", nodes: 1 },
    workload: {
      samples: { kind: "drawn", text_tokens: { kind: "values", values: [512, 1024, 2048] }, images: { kind: "constant", value: 0 } },
      global_batch: 8,
      context_length: 4096,
      packing: "single",
    },
    layout: { tensor: 2, pipeline: 4 },
    planners: ["1f1b"],
    iterations: 1,
  };
  const { id } = await request("PUT", "/scenarios", JSON.stringify(scenario));
  let job = await request("POST", `/scenarios/${id}/plan`);
  while (!["done", "failed"].includes(job.state.state)) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    job = await request("GET", `/jobs/${job.id}`);
  }
  const planned = await request("GET", `/scenarios/${id}/timelines/1f1b/0`);
  const letters = ["F", "B", "I", "W"];
  const events = [];
  for (let rank = 0; rank < planned.ranks; rank += 1) {
    for (let span = planned.lane_offsets[2 * rank]; span < planned.lane_offsets[2 * rank + 1]; span += 1) {
      const letter = letters[planned.kind[span]];
      if (!letter) continue;
      const name = `PP:${planned.stage[span]}${letter}${planned.microbatch[span]}`;
      events.push({ ph: "X", name, pid: rank, tid: 0, ts: (planned.start_ns[span] * 1.25) / 1000, dur: (planned.duration_ns[span] * 1.25) / 1000 });
    }
  }
  const uploaded = await request("POST", `/traces?name=pipeline.json&scenario=${id}`, JSON.stringify(events));
  await page.goto(`/traces/${uploaded.trace.id}`);
  const line = page.getByTestId("alignment-line");
  await line.waitFor();
  assert.match(await line.innerText(), new RegExp(`${events.length} actions of both`));
  for (const chart of ["gantt-observed", "gantt-planned"]) {
    await page.waitForFunction((name) => Number(document.querySelector(`[data-testid="${name}"]`)?.dataset.paintedSpans) > 0, chart);
  }
  assert.match(await page.getByTestId("alignment-kinds").innerText(), /forward[\s\S]*1\.25×[\s\S]*backward[\s\S]*1\.25×/);
  await page.getByTestId("trace-active-time").getByText("annotated actions").waitFor();
  // An invalid speed is replaced by the valid one.
  await page.getByTestId("trace-speed").fill("-1");
  await page.getByTestId("trace-speed").blur();
  await page.waitForFunction(() => document.querySelector('[data-testid="trace-speed"]').value === "1");
  await page.screenshot({ path: join(screenshots, "trace-pipeline-1440-light.png"), fullPage: true });
  assert.deepEqual(await findSeriousViolations(page), []);
  expectNoFaults(page);
});

/** Creates a trace with two steps of a rank: a kernel of `compute` µs, then an all-reduce until 90 µs after the start of the step. */
function createRankTrace(rank, compute) {
  const events = [];
  for (let step = 0; step < 2; step += 1) {
    const ts = step * 100;
    const args = { "Collective name": "allreduce", "In msg nelems": 4, "Process Group Name": "0", Seq: step };
    events.push(
      { ph: "X", cat: "user_annotation", name: `ProfilerStep#${step}`, pid: 9, tid: 1, ts, dur: 95 },
      { ph: "X", cat: "kernel", name: "gemm", pid: 0, tid: 7, ts: ts + 5, dur: compute },
      { ph: "X", cat: "kernel", name: "ncclDevKernel_AllReduce", pid: 0, tid: 8, ts: ts + 5 + compute, dur: 85 - compute, args },
    );
  }
  return { distributedInfo: { rank }, traceEvents: events };
}

/** URL of the comparison of two traces. */
let compared;

test("the comparison of traces identifies the straggler", async () => {
  await page.goto("/traces");
  await page.getByRole("link", { name: /Compare two traces/ }).click();
  const files = [40, 45, 70].map((compute, rank) => ({
    name: `rank${rank}.json`,
    mimeType: "application/json",
    buffer: Buffer.from(JSON.stringify(createRankTrace(rank, compute))),
  }));
  await page.getByTestId("trace-upload").setInputFiles(files);
  await page.getByTestId("straggler").getByText("Straggler: rank 2").waitFor();
  for (const [field, rank] of [["Before", 0], ["After", 1]]) {
    await page.getByLabel(field, { exact: true }).selectOption({ label: `rank${rank}.json, rank ${rank}` });
  }
  const kernels = page.getByTestId("difference-kernels");
  await kernels.getByText("gemm").waitFor();
  assert.match(await kernels.innerText(), /gemm[\s\S]*\+10\.0 µs/);
  assert.match(await page.getByTestId("difference-phases").innerText(), /Exposed communication/);
  const straggler = page.getByTestId("straggler");
  await straggler.getByText("Straggler: rank 2").waitFor();
  assert.match(await straggler.innerText(), /100\s% of the waiting/);
  const ranks = page.getByTestId("ranks-table");
  assert.equal(await ranks.locator("tbody tr").count(), 3);
  await ranks.getByRole("button", { name: /Wait caused/ }).click();
  assert.match(await ranks.locator("tbody tr").first().innerText(), /^2\s/);
  await ranks.getByRole("button", { name: /Wait caused/ }).click();
  assert.match(await ranks.locator("tbody tr").first().innerText(), /^[01]\s/);
  assert.equal(await page.getByTestId("trace-axis").locator("li").count(), 3);
  await page.getByLabel("Show").selectOption("1");
  await page.getByTestId("trace-axis").getByText("rank 2").waitFor();
  await page.waitForURL(/before=.*&after=.*&traces=/);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByTestId("trace-ranks").getByRole("link", { name: "Download CSV" }).first().click(),
  ]);
  assert.equal(download.suggestedFilename(), "traces-ranks-ranks.csv");
  await page.screenshot({ path: join(screenshots, "trace-comparison-1440-light.png"), fullPage: true });
  await page.reload();
  await straggler.getByText("Straggler: rank 2").waitFor();
  compared = page.url();
  assert.deepEqual(await findSeriousViolations(page), []);
  expectNoFaults(page);
});

/** A job on two GPUs. `createProfile` builds its trace from the plan. */
const JOB =
  "--num-layers 8 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 " +
  "--global-batch-size 8 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 1 --bf16 --vocab-size 32000";

/** Creates a trace with two steps of a rank from the compute time of a plan in s. Attention is slow, and the host launches kernels late. */
function createProfile(computeS) {
  const parts = [["nvjet_hsh_128x256_64x4", 0.6], ["flash_fwd_kernel", 0.3], ["triton_poi_fused_add_0", 0.12], ["my_kernel", 0.02]];
  const events = [];
  const stepUs = computeS * 1.4e6;
  for (let step = 0; step < 2; step += 1) {
    let ts = step * stepUs;
    events.push({ ph: "X", cat: "user_annotation", name: `ProfilerStep#${step}`, pid: 9, tid: 1, ts, dur: stepUs });
    for (let round = 0; round < 10; round += 1) {
      for (const [name, share] of parts) {
        const dur = computeS * share * 1e5;
        const arrow = { id: events.length, cat: "ac2g", name: "ac2g" };
        events.push({ ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 9, tid: 1, ts: ts + 1, dur: 2 });
        events.push({ ...arrow, ph: "s", pid: 9, tid: 1, ts: ts + 1 });
        events.push({ ...arrow, ph: "f", bp: "e", pid: 0, tid: 7, ts: ts + 8 });
        events.push({ ph: "X", cat: "kernel", name, pid: 0, tid: 7, ts: ts + 8, dur });
        ts += dur + 8;
      }
      const args = { "Collective name": "allreduce", "In msg nelems": 4, "Process Group Name": "0", Seq: step * 10 + round };
      events.push({ ph: "X", cat: "kernel", name: "ncclDevKernel_AllReduce_Sum", pid: 0, tid: 8, ts: ts + 4, dur: computeS * 1e4, args });
      ts += computeS * 1e4 + 4;
    }
  }
  return JSON.stringify({ distributedInfo: { rank: 1 }, traceEvents: events });
}

/** Checks the job on the page and returns the compute time of its plan in s. */
async function checkJob(page) {
  await page.goto("/check");
  await page.getByTestId("check-text").fill(JOB);
  await page.getByTestId("check-devices").fill("2");
  const [reply] = await Promise.all([
    page.waitForResponse((response) => response.url().endsWith("/api/v1/checks")),
    page.getByTestId("check-text").press("Control+Enter"),
  ]);
  const { plan } = await reply.json();
  await page.getByTestId("verdict").waitFor();
  const { compute_s: compute, recompute_s: recompute, optimizer_s: optimizer } = plan.ranks[0].time;
  return compute + recompute + optimizer;
}

const COMPARISON_TIMEOUT = { timeout: 60_000 };

test("a trace that is added to a checked configuration is compared with the prediction", async () => {
  const computeS = await checkJob(page);
  const file = { name: "rank1.json", mimeType: "application/json", buffer: Buffer.from(createProfile(computeS)) };
  await page.getByTestId("check-log").setInputFiles(file);
  await page.getByTestId("stored-trace").getByRole("link").click(COMPARISON_TIMEOUT);
  await page.waitForURL(/\/traces\/[a-z2-7]+\?scenario=[a-z2-7]{52}/);
  const card = page.getByTestId("trace-prediction");
  await card.getByTestId("prediction-kernels").waitFor(COMPARISON_TIMEOUT);
  assert.match(await card.getByTestId("prediction-summary").innerText(), /Rank 1, pipeline rank 0, mean of 2 steps: a step takes .* predicted/);
  const parts = await card.getByTestId("prediction-parts").locator("tbody tr").allInnerTexts();
  assert.deepEqual(parts.map((row) => row.split("\t")[0].trim()), ["Computation", "Exposed communication", "Copies", "Idle", "Step"]);
  const kernels = await card.getByTestId("prediction-kernels").locator("tbody tr").allInnerTexts();
  const attention = kernels.find((row) => row.startsWith("Attention"));
  assert.match(attention, /Attention\s+10\s+[\d.]+.(ms|µs)\s+[\d.]+.%\s+[\d.]+.(ms|µs)\s+\+[\d.]+.(ms|µs) \(\+[\d.,]+.%\)/);
  assert.match(kernels.at(-1), /Kernels of unknown type[\s\S]*–\s+–$/, "types without a prediction are last");
  await card.getByText("Longest of unknown type: 1 kernel").click();
  await card.getByText("my_kernel").waitFor();
  assert.match(await card.getByTestId("prediction-idle").innerText(), /Late launches of kernels \(host-bound\)/);
  assert.equal(await card.getByTestId("trace-of-other-job").count(), 0);
  assert.deepEqual(await findSeriousViolations(page), []);
  expectNoFaults(page);
});

test("the selected plan is stored with the trace, and a plan of another job is reported", async () => {
  const url = new URL(page.url());
  const scenario = url.searchParams.get("scenario");
  const card = page.getByTestId("trace-prediction");
  // The trace has no stored scenario yet.
  await page.goto(url.pathname);
  await card.getByTestId("prediction-empty").waitFor();
  await chooseScenario(page, scenario);
  await card.getByTestId("prediction-kernels").waitFor(COMPARISON_TIMEOUT);
  await page.reload();
  await card.getByTestId("prediction-kernels").waitFor(COMPARISON_TIMEOUT);
  await card.getByTestId("prediction-rank").fill("64");
  await page.keyboard.press("Tab");
  await card.getByTestId("trace-of-other-job").waitFor(COMPARISON_TIMEOUT);
  assert.match(await card.innerText(), /The trace is not of this job[\s\S]*The plan has 2 devices and no rank 64/);
  assert.equal(await card.getByTestId("prediction-kernels").isVisible(), false, "the times are collapsed");
  await card.getByTestId("prediction-rank").fill("x");
  await page.keyboard.press("Tab");
  assert.equal(await card.getByTestId("prediction-rank").inputValue(), "64", "an invalid rank is replaced by the valid one");
  await card.getByTestId("prediction-rank").fill("");
  await page.keyboard.press("Tab");
  await card.getByTestId("prediction-kernels").waitFor(COMPARISON_TIMEOUT);
  // The card offers the configuration of the page Check.
  await checkJob(page);
  await page.getByRole("link", { name: "Traces", exact: true }).first().click();
  await page.getByTestId("traces").getByRole("link", { name: "rank1.json" }).first().click();
  await card.getByTestId("use-checked").focus();
  await page.keyboard.press("Enter");
  await card.getByTestId("prediction-kernels").waitFor(COMPARISON_TIMEOUT);
  assert.deepEqual(await findSeriousViolations(page), []);
  expectNoFaults(page);
});

test("the comparison with a prediction does not overflow and does not shift the layout", async () => {
  const path = new URL(page.url()).pathname;
  for (const [scheme, width, height] of [["light", 1440, 1000], ["dark", 1440, 1000], ["light", 390, 844], ["dark", 390, 844]]) {
    const other = await fixture.open({ scheme, width, height });
    await other.addInitScript(() => {
      window.shift = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    await other.goto(path);
    const card = other.getByTestId("trace-prediction");
    await card.scrollIntoViewIfNeeded();
    await card.getByTestId("prediction-kernels").waitFor(COMPARISON_TIMEOUT);
    await other.waitForLoadState("networkidle");
    assert.ok((await other.evaluate(() => window.shift)) < 0.1, `${scheme} ${width}: ${await other.evaluate(() => window.shift)}`);
    assert.deepEqual(await findOverflow(other), []);
    await card.screenshot({ path: join(screenshots, `trace-prediction-${width}-${scheme}.png`) });
    assert.deepEqual(await findSeriousViolations(other), []);
    expectNoFaults(other);
    await other.context().close();
  }
});

test("pages of traces do not overflow at 320 px", async () => {
  await page.setViewportSize({ width: 320, height: 640 });
  await page.goto("/traces");
  const trace = await page.getByTestId("traces").getByRole("link").first().getAttribute("href");
  for (const path of ["/traces", trace, compared]) {
    await page.goto(path);
    await page.waitForLoadState("networkidle");
    assert.deepEqual(await findOverflow(page), [], path);
  }
  expectNoFaults(page);
});

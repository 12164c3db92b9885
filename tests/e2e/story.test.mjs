// Main workflow: upload measured lengths, compare three schedules, open the link in a new browser.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { choosePlanners, fetchScenario, field, gantt, openReady, readRanking, readWindow, reveal, setNumber, waitForPlanning } from "./explore.mjs";
import { root } from "./server.mjs";
import { useFixture } from "./fixture.mjs";

const PLANNERS = ["1f1b", "interleaved", "wait_free_cyclic"];
const READY = ["vlm-s-image-heavy", "llama-2-7b-long-documents", "gpt-3-175b-uniform"];

const fixture = useFixture();

/** Returns the path of measured lengths if PLANSCOPE_DATA is set, otherwise of the fixture. */
function findLengthFile() {
  const data = process.env.PLANSCOPE_DATA;
  if (!data) return join(root, "tests/e2e/fixtures/long_documents.csv");
  const measured = join(data, "data/lengths/arxiv_summarization.csv");
  assert.ok(existsSync(measured), `PLANSCOPE_DATA does not contain ${measured}`);
  return measured;
}

/** Removes the separators between groups of three digits. */
const removeGrouping = (text) => text.replace(/(?<=\d)[\s,.'\u2009\u202f\u00a0](?=\d{3})/g, "");

for (const slug of READY) {
  test(`the ready scenario ${slug} shows a chart of each plan`, async () => {
    const page = await fixture.open();
    await openReady(page, slug);
    const rows = await readRanking(page);
    const { outcome } = await fetchScenario(page, fixture.server);
    assert.equal(Object.keys(rows).length, outcome.results.length);
    const planned = outcome.results.filter(({ answer }) => answer.status === "planned");
    assert.ok(planned.length >= 3, `only ${planned.map(({ planner }) => planner)} have a plan`);
    assert.equal(await page.locator('canvas[data-testid^="gantt-"]').count(), planned.length);
    for (const { planner } of planned) assert.ok((await readWindow(gantt(page, planner))).spans > 0);
    for (const { planner, answer } of outcome.results.filter((result) => !planned.includes(result))) {
      // The page writes memory with three digits.
      const plain = (text) => text.replace(/[\d.,]+\sGiB/g, "GiB");
      assert.ok(plain(rows[planner].binding).includes(plain(answer.binding)), `the table states why ${planner} has no plan`);
    }
    expectNoFaults(page);
    await page.context().close();
  });
}

test("a link to a comparison of three schedules shows the same numbers in a new browser", async (t) => {
  const file = findLengthFile();
  t.diagnostic(`lengths from ${process.env.PLANSCOPE_DATA ? "the measured arXiv file" : "the fixture"}`);
  const page = await fixture.open();
  await page.goto("/");
  await page.getByTestId("new-scenario").click();
  await waitForPlanning(page, ["done", "infeasible", "error"]);

  await page.getByTestId("upload").setInputFiles(file);
  await page.getByTestId("preview-figures").waitFor();
  await page.getByTestId("store-dataset").click();
  await page.getByTestId("import-card").waitFor({ state: "detached" });
  const report = page.getByTestId("import-report");
  await report.waitFor();
  const rows = readFileSync(file, "utf8").trim().split("\n").length - 1;
  assert.match(removeGrouping(await report.innerText()), new RegExp(`\\b${rows}\\b`), "the report states the number of lengths");

  await page.getByTestId("model-preset").selectOption("llama-2-7b");
  await page.getByTestId("cluster-preset").selectOption("a100-80gb");
  await setNumber(page, "/cluster/nodes", 4);
  await setNumber(page, "/workload/context_length", 32768);
  // The field of a free setting is disabled.
  await page.locator('[data-free="packing"]').setChecked(false);
  await field(page, "/workload/packing").selectOption("single");
  await choosePlanners(page, PLANNERS);
  await field(page, "/planners/best").setChecked(false);
  await waitForPlanning(page);

  const { scenario, outcome } = await fetchScenario(page, fixture.server);
  assert.equal(scenario.model.name, "Llama-2 7B");
  assert.equal(scenario.cluster.nodes * scenario.cluster.devices_per_node, 32);
  assert.equal(scenario.workload.samples.kind, "dataset");
  assert.equal(scenario.workload.packing, "single");
  assert.deepEqual([...scenario.planners].sort(), [...PLANNERS].sort());

  const here = await readRanking(page);
  assert.deepEqual(Object.keys(here).sort(), [...PLANNERS].sort());
  for (const { planner, answer } of outcome.results) {
    assert.equal(answer.status, "planned", `${planner}: ${answer.binding}`);
    assert.equal(Number(here[planner].iteration_s), answer.metrics.iteration_s, "the table shows the computed time");
    assert.ok(answer.metrics.iteration_s >= answer.metrics.lower_bound_s, `${planner} is not below its lower bound`);
    assert.ok(answer.metrics.peak_memory_gib <= answer.metrics.memory_limit_gib, `${planner} is within the memory limit`);
  }
  const times = Object.values(here).map((cells) => Number(cells.iteration_s));
  assert.deepEqual(times, [...times].sort((a, b) => a - b), "fastest first");

  const windows = [];
  for (const planner of PLANNERS) windows.push(await readWindow(gantt(page, planner)));
  for (const { start, end } of windows) {
    assert.deepEqual([start, end], [windows[0].start, windows[0].end], "all charts have one time axis");
  }

  await page.getByTestId("copy-link").click();
  const link = await page.waitForFunction(() => document.querySelector('[data-testid="copy-link"]')?.dataset.url);
  const url = await link.jsonValue();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), url);

  const elsewhere = await fixture.open({ scheme: "dark" });
  const planned = [];
  elsewhere.on("response", (response) => {
    if (response.request().method() === "POST") planned.push(`${response.status()} ${new URL(response.url()).pathname}`);
  });
  await elsewhere.goto(url);
  await waitForPlanning(elsewhere);
  assert.deepEqual(await readRanking(elsewhere), here, "identical numbers in a second browser");
  for (const planner of PLANNERS) assert.ok((await readWindow(gantt(elsewhere, planner))).spans > 0);
  assert.ok(!planned.some((line) => line.startsWith("202")), `the second browser plans again: ${planned.join(", ")}`);
  expectNoFaults(elsewhere);
  expectNoFaults(page);
  await elsewhere.context().close();
  await page.context().close();
});

test("a dynamic planner has a timeline for each iteration", async () => {
  const page = await fixture.open();
  await openReady(page, "llama-2-7b-long-documents");
  const { outcome } = await fetchScenario(page, fixture.server);
  const count = outcome.batches.length;
  assert.equal(await page.locator('[data-testid^="iteration-"]').count(), count);
  const timeline = page.waitForResponse((response) => response.url().endsWith(`/timelines/wait_free_cyclic/${count - 1}`));
  await page.getByTestId(`iteration-${count - 1}`).click();
  assert.equal((await timeline).status(), 200);
  assert.ok((await readWindow(gantt(page, "wait_free_cyclic"))).spans > 0);
  expectNoFaults(page);
  await page.context().close();
});

test("dragging the label of a number field changes its value", async () => {
  const page = await fixture.open();
  await openReady(page, "llama-2-7b-long-documents");
  const times = async () => Object.values(await readRanking(page)).map((cells) => Number(cells.iteration_s));
  const before = await times();
  const pointer = "/cluster/device/peak_tflops";
  await reveal(page, pointer);
  const number = field(page, pointer);
  const initial = Number(await number.inputValue());
  const label = page.locator(`label[for="${await number.getAttribute("id")}"]`);

  await label.click();
  assert.equal(Number(await number.inputValue()), initial, "a click only focuses the field");
  assert.ok(await number.evaluate((input) => input === document.activeElement));

  const { x, y } = await label.boundingBox();
  await page.mouse.move(x + 8, y + 8);
  await page.mouse.down();
  await page.mouse.move(x + 8 + 64, y + 8, { steps: 8 });
  const dragged = Number(await number.inputValue());
  assert.ok(dragged > 1.9 * initial && dragged < 2.1 * initial, `a drag of 64 px doubles the value: ${dragged} from ${initial}`);
  await page.mouse.up();
  await waitForPlanning(page);
  const after = await times();
  assert.ok(after.every((time, index) => time < before[index]), `the plans are faster at twice the peak: ${after} after ${before}`);

  await page.mouse.move(x + 8 - 64, y + 8);
  assert.equal(Number(await number.inputValue()), dragged, "the value does not change after the drag");
  await page.getByTitle("Undo the last edit (Ctrl+Z)").click();
  await waitForPlanning(page);
  assert.equal(Number(await number.inputValue()), initial, "undo reverts the drag as one edit");
  expectNoFaults(page);
  await page.context().close();
});

test("a saved scenario is listed, opens again and can be deleted", async () => {
  const page = await fixture.open();
  await openReady(page, "gpt-3-175b-uniform");
  const before = await readRanking(page);
  await page.getByTestId("title").fill("Kept by the browser test");
  await page.getByTestId("save").click();
  await page.waitForFunction(() => document.querySelector('[data-testid="save"]')?.textContent.trim() === "Saved");
  await page.goto("/scenarios");
  await page.getByRole("link", { name: "Kept by the browser test" }).click();
  await waitForPlanning(page);
  assert.deepEqual(await readRanking(page), before);
  assert.equal(await page.getByTestId("title").inputValue(), "Kept by the browser test");
  await page.goto("/scenarios");
  await page.getByRole("button", { name: "Delete Kept by the browser test" }).click();
  await page.getByRole("link", { name: "Kept by the browser test" }).waitFor({ state: "detached" });
  expectNoFaults(page);
  await page.context().close();
});

test("PipeWeaver plans without a search while the number of images changes, and with a search afterwards", async () => {
  const page = await fixture.open();
  await page.goto("/new?ready=vlm-s-image-heavy");
  await waitForPlanning(page);
  const pointer = "/workload/samples/images/max";
  await reveal(page, pointer);
  const sketched = page.getByTestId("ranking").getByText("sketch; the search follows");
  assert.equal(await sketched.count(), 0);
  const before = await readWindow(gantt(page, "pipeweaver"));
  // Changes the slider every 150 ms: down to ten images, then up again.
  await page.locator(`[data-slider-for="${pointer}"]`).evaluate((slider) => {
    let step = -1;
    window.hand = setInterval(() => {
      if (Number(slider.value) <= 10) step = 1;
      slider.value = String(Number(slider.value) + step);
      slider.dispatchEvent(new Event("input", { bubbles: true }));
    }, 150);
  });
  const seen = await page.waitForFunction(() => {
    const rows = [...document.querySelectorAll('[data-testid="ranking"] tr[data-planner]')];
    const sketches = rows.filter((row) => row.nextElementSibling?.querySelector('[data-metric="layout"]')?.dataset.value.endsWith("sketch; the search follows"));
    if (!sketches.length) return null;
    clearInterval(window.hand);
    const chart = document.querySelector('[data-testid="gantt-pipeweaver"]').dataset;
    const iteration = sketches[0].querySelector('[data-metric="iteration_s"]').dataset.value;
    return { planners: sketches.map((row) => row.dataset.planner), iteration, spans: Number(chart.paintedSpans), end: Number(chart.endNs) };
  });
  const sketch = await seen.jsonValue();
  assert.deepEqual(sketch.planners, ["pipeweaver"], "only the planner with a search is sketched");
  assert.notDeepEqual([sketch.spans, sketch.end], [before.spans, before.end], "the chart shows the sketch");
  await waitForPlanning(page);
  await sketched.waitFor({ state: "detached" });
  const complete = (await readRanking(page)).pipeweaver.iteration_s;
  assert.notEqual(complete, sketch.iteration);
  const { outcome } = await fetchScenario(page, fixture.server);
  const planned = outcome.results.find(({ planner }) => planner === "pipeweaver").answer;
  assert.equal(Number(complete), planned.metrics.iteration_s);
  expectNoFaults(page);
  await page.context().close();
});

// The main workflow: measured lengths, three schedules compared, a link that shows the same numbers elsewhere.
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

/** The measured lengths where they are at hand, else the fixture. */
function findLengthFile() {
  const data = process.env.PLANSCOPE_DATA;
  if (!data) return join(root, "tests/e2e/fixtures/long_documents.csv");
  const measured = join(data, "data/lengths/arxiv_summarization.csv");
  assert.ok(existsSync(measured), `PLANSCOPE_DATA holds no ${measured}`);
  return measured;
}

/** Digits of a text without what groups them. */
const removeGrouping = (text) => text.replace(/(?<=\d)[\s,.'\u2009\u202f\u00a0](?=\d{3})/g, "");

for (const slug of READY) {
  test(`the gallery's ${slug} shows its charts`, async () => {
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
      assert.ok(rows[planner].binding.includes(answer.binding), `the table says why ${planner} has no plan`);
    }
    expectNoFaults(page);
    await page.context().close();
  });
}

test("a link with measured lengths and three schedules shows the same numbers", async (t) => {
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
  assert.match(removeGrouping(await report.innerText()), new RegExp(`\\b${rows}\\b`), "the report says how many were read");

  await page.getByTestId("model-preset").selectOption("llama-2-7b");
  await page.getByTestId("cluster-preset").selectOption("a100-80gb");
  await setNumber(page, "/cluster/nodes", 4);
  await setNumber(page, "/workload/context_length", 32768);
  // The value of a free setting cannot be selected.
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
    assert.equal(Number(here[planner].iteration_s), answer.metrics.iteration_s, "the table shows what was computed");
    assert.ok(answer.metrics.iteration_s >= answer.metrics.lower_bound_s, `${planner} beats its lower bound`);
    assert.ok(answer.metrics.peak_memory_gib <= answer.metrics.memory_limit_gib, `${planner} is over its memory`);
  }
  const times = Object.values(here).map((cells) => Number(cells.iteration_s));
  assert.deepEqual(times, [...times].sort((a, b) => a - b), "fastest first");

  const windows = [];
  for (const planner of PLANNERS) windows.push(await readWindow(gantt(page, planner)));
  for (const { start, end } of windows) {
    assert.deepEqual([start, end], [windows[0].start, windows[0].end], "one time axis");
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
  assert.ok(!planned.some((line) => line.startsWith("202")), `computed anew: ${planned.join(", ")}`);
  expectNoFaults(elsewhere);
  expectNoFaults(page);
  await elsewhere.context().close();
  await page.context().close();
});

test("a dynamic planner has a chart for every iteration", async () => {
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

test("the label of a number field is a slider", async () => {
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
  assert.equal(Number(await number.inputValue()), initial, "a click only goes to the field");
  assert.ok(await number.evaluate((input) => input === document.activeElement));

  const { x, y } = await label.boundingBox();
  await page.mouse.move(x + 8, y + 8);
  await page.mouse.down();
  await page.mouse.move(x + 8 + 64, y + 8, { steps: 8 });
  const dragged = Number(await number.inputValue());
  assert.ok(dragged > 1.9 * initial && dragged < 2.1 * initial, `16 positions are an octave: ${dragged} from ${initial}`);
  await page.mouse.up();
  await waitForPlanning(page);
  const after = await times();
  assert.ok(after.every((time, index) => time < before[index]), `twice the rate is faster: ${after} after ${before}`);

  await page.mouse.move(x + 8 - 64, y + 8);
  assert.equal(Number(await number.inputValue()), dragged, "nobody holds it any more");
  await page.getByTitle("Undo the last edit (Ctrl+Z)").click();
  await waitForPlanning(page);
  assert.equal(Number(await number.inputValue()), initial, "one drag is one edit");
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

test("PipeWeaver is sketched during a drag of the number of images and searched afterwards", async () => {
  const page = await fixture.open();
  await page.goto("/new?ready=vlm-s-image-heavy");
  await waitForPlanning(page);
  const pointer = "/workload/samples/images/max";
  await reveal(page, pointer);
  const sketched = page.getByTestId("ranking").getByText("sketch, its search follows");
  assert.equal(await sketched.count(), 0);
  const before = await readWindow(gantt(page, "pipeweaver"));
  // A hand that does not rest: one image fewer every 150 ms, and up again from ten on.
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
    const sketches = rows.filter((row) => row.querySelector('[data-metric="layout"]')?.dataset.value.endsWith("sketch, its search follows"));
    if (!sketches.length) return null;
    clearInterval(window.hand);
    const chart = document.querySelector('[data-testid="gantt-pipeweaver"]').dataset;
    const iteration = sketches[0].querySelector('[data-metric="iteration_s"]').dataset.value;
    return { planners: sketches.map((row) => row.dataset.planner), iteration, spans: Number(chart.paintedSpans), end: Number(chart.endNs) };
  });
  const sketch = await seen.jsonValue();
  assert.deepEqual(sketch.planners, ["pipeweaver"], "the planners without a search are answered whole");
  assert.notDeepEqual([sketch.spans, sketch.end], [before.spans, before.end], "its chart moves too");
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

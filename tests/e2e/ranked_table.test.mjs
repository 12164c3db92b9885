// Table of plans: columns, order of the charts, keyboard access, communication inside actions.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { fetchScenario, field, gantt, openReady, readChangedWindow, readRanking, readWindow, reveal, waitForPlanning } from "./explore.mjs";
import { screenshots, useFixture } from "./fixture.mjs";

const fixture = useFixture();
const READY = "llama-2-7b-long-documents";

test("the table shows layout, layers per stage and tokens/s/GPU of each plan", async () => {
  const page = await fixture.open();
  await openReady(page, READY);
  const rows = await readRanking(page);
  const { outcome, scenario } = await fetchScenario(page, fixture.server);
  const devices = scenario.cluster.nodes * scenario.cluster.devices_per_node;
  for (const { planner, answer } of outcome.results.filter((result) => result.answer.status === "planned")) {
    const { layout, metrics } = answer;
    assert.match(rows[planner].layout, new RegExp(`^TP ${layout.tensor} · PP ${layout.pipeline} · DP ${layout.data}`));
    assert.match(rows[planner].layers, /\d/);
    const shownRate = Number(rows[planner].tokens_per_s_per_device);
    assert.ok(Math.abs(shownRate - metrics.tokens_per_s / devices) < 1e-6 * shownRate);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  // Charts get their new width in the next frames, so wait for the page width.
  await page.waitForFunction(() => document.documentElement.scrollWidth <= 390);
  expectNoFaults(page);
  await page.context().close();
});

test("results are reachable with at most ten presses of Tab", async () => {
  const page = await fixture.open();
  await openReady(page, READY);
  const isReached = () => page.evaluate(() => document.activeElement?.id === "results");
  for (let presses = 0; presses < 10 && !(await isReached()); presses += 1) {
    await page.keyboard.press("Tab");
    const id = await page.evaluate(() => document.activeElement?.dataset?.testid);
    if (id === "skip-to-results") await page.keyboard.press("Enter");
  }
  assert.ok(await isReached(), "the results have the focus");
  expectNoFaults(page);
  await page.context().close();
});

test("charts have the order of the table while a field changes", async () => {
  const page = await fixture.open();
  await openReady(page, READY);
  await page.evaluate(() => {
    const order = (selector, read) => [...document.querySelectorAll(selector)].map(read);
    globalThis.wrong = [];
    globalThis.compared = 0;
    const look = () => {
      const table = order('[data-testid="ranking"] tr[data-planner]', (row) => row.dataset.planner);
      const charts = order('canvas[data-testid^="gantt-"]', (canvas) => canvas.dataset.testid.slice(6));
      const expected = table.filter((planner) => charts.includes(planner));
      if (expected.join() !== charts.filter((planner) => table.includes(planner)).join()) globalThis.wrong.push([table, charts]);
      if (expected.length === 3) globalThis.compared += 1;
      requestAnimationFrame(look);
    };
    look();
  });
  await reveal(page, "/workload/context_length");
  for (const value of [16384, 4096, 8192, 24576, 4096, 32768]) {
    const [before, compared] = [await readWindow(gantt(page, "1f1b")), await page.evaluate(() => globalThis.compared)];
    await field(page, "/workload/context_length").fill(String(value));
    await readChangedWindow(gantt(page, "1f1b"), before);
    await page.waitForFunction((compared) => globalThis.compared > compared, compared);
  }
  await waitForPlanning(page);
  assert.deepEqual(await page.evaluate(() => globalThis.wrong), []);
  expectNoFaults(page);
  await page.context().close();
});

test("communication inside actions is drawn", async () => {
  const page = await fixture.open();
  await openReady(page, READY);
  const { outcome } = await fetchScenario(page, fixture.server);
  const [{ planner, answer }] = outcome.results;
  assert.ok(answer.metrics.exposed_communication > 0.001);
  const canvas = gantt(page, planner);
  let window = await readWindow(canvas);
  // Zoom in until actions are wider than pixels, which mix the colours of narrow actions.
  await canvas.focus();
  for (let press = 0; press < 6; press += 1) {
    await page.keyboard.press("w");
    window = await readChangedWindow(canvas, window);
  }
  const columns = await canvas.evaluate((element) => {
    const { data, width } = element.getContext("2d").getImageData(0, 0, element.width, element.height);
    // Upper edge of the first bar, and middle of the communication strip at its lower edge.
    const [bar, strip] = [3, 13.5].map((y) => Math.round(y * devicePixelRatio) * width);
    const read = (pixel) => data.slice(4 * pixel, 4 * pixel + 3).join();
    return Array.from({ length: width }, (_, x) => [read(bar + x), read(strip + x)]);
  });
  const [communication, forward, backward] = ["136,34,85", "0,114,178", "238,102,119"];
  for (const action of [forward, backward]) {
    const inside = columns.filter(([bar, strip]) => bar === action && strip === communication);
    assert.ok(inside.length > 0, `a strip of communication is inside a bar of colour ${action}`);
  }
  await canvas.screenshot({ path: join(screenshots, "communication-inside.png") });
  expectNoFaults(page);
  await page.context().close();
});

test("the actions of a dynamic plan are compared with those of a static plan", async () => {
  const page = await fixture.open();
  await openReady(page, "vlm-s-image-heavy");
  await page.getByTestId("gantt-differences-switch").click();
  const card = page.getByTestId("card-pipeweaver");
  const words = card.getByText(/of [\d,]+ actions have a counterpart/);
  await words.waitFor();
  const [matched, all] = (await words.innerText()).replace(/,/g, "").match(/\d+/g).map(Number);
  assert.ok(matched > all / 2, `${matched} of ${all} actions are compared`);
  expectNoFaults(page);
  await page.context().close();
});

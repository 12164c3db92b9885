// Gantt charts: keys, mouse wheel, hover, selection.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { fetchScenario, findSpan, gantt, openReady, readChangedWindow, readWindow } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";

let page, chart, outcome;
useFixture(async ({ open, server }) => {
  page = await open();
  await openReady(page, "llama-2-7b-long-documents");
  ({ outcome } = await fetchScenario(page, server));
  chart = gantt(page, "wait_free_cyclic");
});

const duration = ({ start, end }) => end - start;

test("keys zoom, pan and fit all charts together", async () => {
  const fullWindow = await readWindow(chart);
  await chart.focus();
  await page.keyboard.press("w");
  const zoomed = await readChangedWindow(chart, fullWindow);
  assert.ok(duration(zoomed) < duration(fullWindow), "W zooms in");
  const other = await readWindow(gantt(page, "1f1b"));
  assert.deepEqual([other.start, other.end], [zoomed.start, zoomed.end], "the other chart has the same window");
  await page.keyboard.press("d");
  const panned = await readChangedWindow(chart, zoomed);
  assert.ok(panned.start > zoomed.start, "D moves the window to the right");
  assert.ok(Math.abs(duration(panned) - duration(zoomed)) <= 2, "panning does not zoom");
  await page.keyboard.press("f");
  const fitted = await readChangedWindow(chart, panned);
  assert.deepEqual([fitted.start, fitted.end], [fullWindow.start, fullWindow.end]);
});

test("the wheel zooms at the pointer, and the smallest window shows a span", async () => {
  const before = await readWindow(chart);
  await chart.focus();
  const at = await findSpan(chart);
  await page.mouse.wheel(0, -120);
  let now = await readChangedWindow(chart, before);
  assert.ok(duration(now) < duration(before));
  for (let turn = 0; turn < 8; turn += 1) {
    await page.mouse.move(at.x, at.y);
    await page.mouse.wheel(0, -120);
    now = await readChangedWindow(chart, now);
    assert.ok(now.spans > 0, "a span is under the pointer");
  }
  await page.keyboard.press("f");
  await readChangedWindow(chart, now);
});

test("without focus the wheel scrolls the page", async () => {
  await page.getByTestId("title").focus();
  const before = await readWindow(chart);
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 10);
  await page.mouse.wheel(0, 40);
  await page.waitForFunction(([canvas, y]) => canvas.getBoundingClientRect().y < y, [await chart.elementHandle(), box.y]);
  const now = await readWindow(chart);
  assert.deepEqual([now.start, now.end], [before.start, before.end]);
});

test("hover shows a tooltip, a click selects a span, and Escape clears the selection", async () => {
  const at = await findSpan(chart);
  const tip = await page.locator(".gantt-tooltip").first().innerText();
  assert.match(tip, /rank \d+/i);
  assert.match(tip, /\d\s*(ns|µs|ms|s)\b/);
  await page.mouse.click(at.x, at.y);
  const panel = page.getByTestId("selection");
  await panel.getByText(/rank \d+/i).first().waitFor();
  const text = await panel.innerText();
  assert.match(text, /rank \d+/i);
  assert.match(text, /microbatch \d+/i);
  await chart.focus();
  await page.keyboard.press("Escape");
  await panel.getByText(/microbatch \d+/i).first().waitFor({ state: "detached" });
});

test("arrow keys select the next span and announce it", async () => {
  await chart.focus();
  await page.keyboard.press("ArrowRight");
  const panel = page.getByTestId("selection");
  await panel.getByText(/rank \d+/i).first().waitFor();
  const first = await panel.innerText();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((before) => document.querySelector('[data-testid="selection"]').innerText !== before, first);
  const described = await chart.getAttribute("aria-describedby");
  assert.match(await page.locator(`#${described}`).innerText(), /stage \d+/i);
  await page.keyboard.press("Enter");
  await page.keyboard.press("f");
});

test("the reasons list decisions and rejected candidates", async () => {
  const why = await page.getByTestId("reasons").innerText();
  const { title, answer } = outcome.results[0];
  assert.ok(why.startsWith(title), "the reasons are those of the fastest plan");
  const { candidates, simulated, pruned, rejected, losers } = answer.provenance.search;
  assert.ok(answer.decisions.length > 0 && losers.length > 0);
  // The page adds thousands separators and narrow spaces.
  const plain = (text) => text.replaceAll(",", "").replaceAll("\u202f", " ");
  for (const decision of answer.decisions) assert.ok(plain(why).includes(plain(decision)), decision);
  const counts = [[simulated, "simulated"], [pruned, "not simulated, because they cannot be faster"], [rejected, "invalid or too large for memory"]];
  const texts = counts.filter(([count]) => count > 0).map(([count, text]) => `${count.toLocaleString("en")} ${text}`);
  assert.ok(why.includes(`${candidates.toLocaleString("en")} layouts: ${texts.join("; ")}.`), why);
  for (const { reason } of losers.slice(0, 5)) assert.ok(why.includes(reason), reason);
  expectNoFaults(page);
});

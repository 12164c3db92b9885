// Tools of the Gantt charts: search, critical path, areas, minimap, axis, pinned ranks, folded ranks, comparison, table, help.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { gantt, openReady, readChangedWindow, readWindow, setNumber, waitForPlanning } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";

/** Width of the row headers and height of the axis, in px. */
const HEADER = 52;
const AXIS = 20;

let page, figure, chart, fullWindow;
useFixture(async ({ open }) => {
  page = await open();
  await openReady(page, "llama-2-7b-long-documents");
  chart = gantt(page, "wait_free_cyclic");
  figure = page.locator("figure.gantt", { has: chart });
  fullWindow = await readWindow(chart);
});

const announcement = () => figure.locator(".gantt-spoken").first();
const selection = () => page.getByTestId("selection");
const duration = ({ start, end }) => end - start;

async function press(...keys) {
  await chart.focus();
  for (const key of keys) await page.keyboard.press(key);
}

async function resetView() {
  const now = await readWindow(chart);
  await press("Escape", "Escape", "f");
  if (now.start !== fullWindow.start || now.end !== fullWindow.end) await readChangedWindow(chart, now);
}

/** Waits until the text of an element differs from `before`, and returns it. */
async function waitForTextChange(locator, before) {
  for (let turn = 0; turn < 100; turn += 1) {
    const now = await locator.innerText();
    if (now !== before) return now;
    await page.waitForTimeout(50);
  }
  assert.fail(`the text is still "${before}"`);
}

test("a search counts its matches, steps through them and reports invalid terms", async () => {
  await press("/");
  const search = figure.getByRole("searchbox");
  await search.waitFor();
  assert.ok(await search.evaluate((element) => element === document.activeElement), "/ focuses the search");
  const state = figure.locator(".gantt-tools [role=status]").first();
  await search.fill("r1 mb2 B");
  assert.match(await waitForTextChange(state, ""), /^[\d,]+ found$/);
  await page.keyboard.press("Enter");
  await selection().getByText(/microbatch 2\b/i).first().waitFor();
  assert.match(await selection().innerText(), /backward/i);
  assert.match(await waitForTextChange(state, ""), /^1 of [\d,]+$/);
  await search.fill("hello");
  await figure.getByText("“hello” is not understood").waitFor();
  await search.fill("r1 mb99999");
  await figure.getByText("nothing found").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await search.inputValue(), "");
  await resetView();
});

test("the critical path is traversed in both directions", async () => {
  await press("ArrowRight");
  await selection().getByText(/rank \d+/i).first().waitFor();
  let text = await selection().innerText();
  const seen = [];
  for (let step = 0; step < 3; step += 1) {
    await press("Control+BracketRight");
    text = await waitForTextChange(selection(), text);
    seen.push(text);
  }
  await press("Control+BracketLeft");
  assert.equal(await waitForTextChange(selection(), text), seen[1], "one step back selects the previous action");
  await resetView();
});

test("a drag over rows selects an area and shows its sums; the key M does the same", async () => {
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 5);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 30, { steps: 5 });
  await page.mouse.up();
  const area = figure.getByTestId("gantt-area");
  await area.waitFor();
  const text = await area.innerText();
  assert.match(text, /ranks 0–1/);
  for (const word of ["Computation", "Exposed communication", "Idle", "Sends"]) assert.ok(text.includes(word), word);
  // Computation, exposed communication and idle time add up to 100 %.
  const shares = await area.locator("dl div").evaluateAll((rows) => rows.map((row) => parseFloat(row.querySelector("small").textContent)));
  assert.ok(Math.abs(shares[0] + shares[1] + shares[2] - 100) <= 0.3, `${shares}`);
  const spans = await area.locator("tbody tr").evaluateAll((rows) => rows.length);
  assert.ok(spans >= 2, "at least forwards and backwards");
  await area.getByRole("button", { name: "Zoom to it" }).click();
  const zoomed = await readChangedWindow(chart, fullWindow);
  assert.ok(duration(zoomed) < 0.3 * duration(fullWindow), "the window has the width of the area, a fifth of the chart");
  await area.getByRole("button", { name: "Close" }).click();
  await area.waitFor({ state: "detached" });
  await resetView();
  await press("ArrowRight", "m", "ArrowRight", "ArrowRight", "m");
  await area.waitFor();
  await press("Escape");
  await area.waitFor({ state: "detached" });
  await resetView();
});

test("a drag on the axis zooms, and a drag in the minimap moves the window", async () => {
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  const bottom = box.y + box.height - AXIS / 2;
  await page.mouse.move(box.x + HEADER + (box.width - HEADER) * 0.2, bottom);
  await page.mouse.down();
  await page.mouse.move(box.x + HEADER + (box.width - HEADER) * 0.4, bottom, { steps: 5 });
  await page.mouse.up();
  const zoomed = await readChangedWindow(chart, fullWindow);
  assert.ok(Math.abs(duration(zoomed) / duration(fullWindow) - 0.2) < 0.02, `${duration(zoomed) / duration(fullWindow)}`);
  const strip = figure.locator("canvas.gantt-minimap");
  const map = await strip.boundingBox();
  const at = (share) => map.x + HEADER + (map.width - HEADER) * share;
  await page.mouse.move(at(0.3), map.y + map.height / 2);
  await page.mouse.down();
  await page.mouse.move(at(0.4), map.y + map.height / 2, { steps: 5 });
  await page.mouse.up();
  const moved = await readChangedWindow(chart, zoomed);
  assert.ok(Math.abs(duration(moved) - duration(zoomed)) <= 2, "the duration of the window does not change");
  assert.ok(Math.abs((moved.start - zoomed.start) / duration(fullWindow) - 0.1) < 0.02, "the window moves with the pointer");
  await resetView();
});

test("a rank that is pinned by key is in the first row until it is unpinned by button", async () => {
  await press("ArrowDown", "ArrowDown", "p");
  const unpin = figure.getByRole("button", { name: "Unpin 1" });
  await unpin.waitFor();
  const pinned = /^Rank \d+ /m.exec(await selection().innerText())[0];
  assert.notEqual(pinned, "Rank 0 ");
  const waitForFirstRow = async (name) => {
    await chart.scrollIntoViewIfNeeded();
    const box = await chart.boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 7);
    await page.locator(".gantt-tooltip").getByText(new RegExp(`^${name}`)).waitFor();
  };
  await waitForFirstRow(pinned);
  await unpin.click();
  await unpin.waitFor({ state: "detached" });
  await waitForFirstRow("Rank 0 ");
  await resetView();
});

test("a relative axis scales every chart to its own duration, and differences are described in words", async () => {
  const slow = gantt(page, "1f1b");
  const [fast, other] = [await readWindow(chart), await readWindow(slow)];
  assert.deepEqual([fast.start, fast.end], [other.start, other.end], "all charts have one axis");
  await page.getByTestId("gantt-relative-switch").click();
  const own = await readChangedWindow(chart, fast);
  assert.ok(own.end < fast.end, "the window of the faster plan ends earlier");
  await page.getByTestId("gantt-relative-switch").click();
  await readChangedWindow(chart, own);
  await page.getByTestId("gantt-differences-switch").click();
  await press("ArrowRight");
  await selection().getByText(/in the baseline|baseline's iteration/).first().waitFor();
  const words = await figure.getByTestId("gantt-differences").innerText();
  assert.match(words, /^[\d,]+ of [\d,]+ actions have a counterpart: [\d,]+ .+, [\d,]+ .+$/);
  await page.getByTestId("gantt-differences-switch").click();
  await resetView();
});

test("a selection is announced, the actions are available as a table, and ? opens the help", async () => {
  await press("ArrowRight");
  assert.match(await waitForTextChange(announcement(), ""), /stage \d+.*microbatch \d+.*\d (µs|ms|s)\b/i);
  const table = figure.locator("details.gantt-table");
  await table.locator("summary").click();
  const row = table.locator("tbody tr").nth(10);
  const [rank, action, stage, microbatch, , length] = await row.locator("td").allInnerTexts();
  assert.equal(await table.locator(".gantt-pages span").innerText(), `1–100 of ${fullWindow.spans.toLocaleString("en")}`, "the table lists the spans of the chart");
  await row.getByRole("button").click();
  await selection().getByText(`Rank ${rank} · ${action} · microbatch ${microbatch}`).waitFor();
  await selection().getByText(length, { exact: true }).waitFor();
  await selection().getByText(new RegExp(`^${stage} \\(chunk`)).waitFor();
  await table.locator("summary").click();
  await press("?");
  const help = page.getByRole("dialog");
  await help.getByText("along the critical path").waitFor();
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "hidden" });
  expectNoFaults(page);
});

test("sixteen ranks can be folded and unfolded", async () => {
  await setNumber(page, "/layout/tensor", 2);
  await setNumber(page, "/layout/pipeline", 16);
  await waitForPlanning(page);
  const fold = figure.getByTestId("gantt-fold");
  const height = async () => (await chart.boundingBox()).height;
  await fold.getByText("Fold ranks").waitFor();
  const tall = await height();
  const waitForHeight = async (matches, what) => {
    for (let turn = 0; !matches(await height()); turn += 1) {
      assert.ok(turn < 100, `${what}: ${await height()} px after ${tall}`);
      await page.waitForTimeout(50);
    }
  };
  await fold.click();
  await fold.getByText("Unfold ranks").waitFor();
  await waitForHeight((px) => px < tall, "folded ranks reduce the height");
  await fold.click();
  await waitForHeight((px) => px === tall, "unfolded ranks restore the height");
  await press("ArrowRight", "g");
  await waitForHeight((px) => px < tall, "G folds the group of the selected action");
  await press("g");
  await waitForHeight((px) => px === tall, "G unfolds the group");
  expectNoFaults(page);
});

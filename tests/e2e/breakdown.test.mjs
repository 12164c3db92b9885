// Time and memory by rank: legends, bars, and tables whose values equal the outcome.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { fetchScenario, openReady, waitForPlanning } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";

let page, outcome;
const fixture = useFixture(async ({ open, server }) => {
  page = await open();
  await openReady(page, "llama-2-7b-long-documents");
  ({ outcome } = await fetchScenario(page, server));
});

const planned = () => outcome.results.filter(({ answer }) => answer.status === "planned");
const readLegend = (card) => card.locator(".chart-legend li").allInnerTexts();
const readSums = (table) => table.locator("[data-sum]").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.sum)));

/** Waits until the chart has `parts` traces with `rows` bars each, and returns the number of traces. */
async function waitForBars(card, parts, rows) {
  await card.scrollIntoViewIfNeeded();
  const traces = card.locator(".barlayer .trace");
  await card.page().waitForFunction(
    ([id, parts, rows]) => {
      const traces = [...document.querySelectorAll(`[data-testid="${id}"] .barlayer .trace`)];
      return traces.length === parts && traces.every((trace) => trace.querySelectorAll(".point").length === rows);
    },
    [await card.getAttribute("data-testid"), parts, rows],
  );
  return traces.count();
}

const assertClose = (actual, expected, what, tolerance = 1e-3) =>
  assert.ok(Math.abs(actual - expected) <= tolerance * expected, `${what}: ${actual} instead of ${expected}`);

test("the time of every rank adds up to the iteration", async () => {
  const card = page.getByTestId("card-time");
  const [first] = planned();
  assert.deepEqual(await readLegend(card), [
    "computation",
    "recomputed",
    "exposed communication (TP, CP, EP, sends)",
    "exposed gradient synchronisation",
    "optimizer",
    "bubble",
  ]);
  await waitForBars(card, 6, first.answer.ranks.length);
  await card.locator("details summary").first().click();
  const ranks = await readSums(card.getByTestId("time-ranks"));
  assert.equal(ranks.length, first.answer.layout.pipeline);
  for (const [rank, sum] of ranks.entries()) assertClose(sum, first.answer.metrics.iteration_s, `rank ${rank}`);
  const planners = await readSums(card.getByTestId("time-planners"));
  assert.equal(planners.length, planned().length);
  for (const [index, { planner, answer }] of planned().entries()) assertClose(planners[index], answer.metrics.iteration_s, planner);
  assert.equal(await card.getByTestId("time-stages").locator("tbody tr").count(), first.answer.stages.length);
});

test("bars show ranks or planners, for the selected plan", async () => {
  const card = page.getByTestId("card-time");
  await card.getByRole("radio", { name: "By planner" }).check();
  await waitForBars(card, 6, planned().length);
  await card.getByRole("radio", { name: "By rank" }).check();
  const last = planned().at(-1);
  await page.getByTestId("ranking").locator(`tr[data-planner="${last.planner}"] .row-button`).click();
  await card.getByText(last.title).waitFor();
  await waitForBars(card, 6, last.answer.ranks.length);
  const bar = card.locator(".barlayer .trace .point").first();
  await bar.scrollIntoViewIfNeeded();
  const box = await bar.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const hover = card.locator(".hoverlayer .hovertext");
  await hover.waitFor();
  assert.match(await hover.textContent(), /^rank 0: computation.*\d\s(m?s), [\d.]+\s%/);
});

test("the parts of the peak memory add up to the peak of the plan", async () => {
  const card = page.getByTestId("card-peak");
  const last = planned().at(-1);
  const names = await readLegend(card);
  assert.deepEqual(names.slice(0, 5), ["weights", "gradients", "optimizer", "activations", "temporary"]);
  const limit = last.answer.metrics.memory_limit_gib;
  assert.match(names[5], new RegExp(`^limit: device memory minus the reserve, ${limit.toFixed(1)}`));
  await waitForBars(card, 5, last.answer.ranks.length);
  assert.match(await card.getByTestId("peak-caption").innerText(), /^Rank \d+ .*\sGiB without the reserve at .* in flight\. Largest part: [a-z]+/s);
  await card.locator("details summary").first().click();
  const ranks = await readSums(card.getByTestId("peak-ranks"));
  assert.equal(ranks.length, last.answer.ranks.length);
  const rows = await card.getByTestId("peak-ranks").locator("tbody tr").all();
  for (const [rank, row] of rows.entries()) {
    const parts = (await row.locator("td").allInnerTexts()).slice(0, 5).map(parseFloat);
    // Cells have three significant digits.
    assertClose(parts.reduce((one, other) => one + other), ranks[rank], `parts of rank ${rank}`, 5e-3);
  }
  assertClose(Math.max(...ranks), last.answer.metrics.peak_memory_gib, "the highest rank, without the reserve, as in the table of plans");
  expectNoFaults(page);
});

test("an outcome of an older engine without breakdowns can be computed again", async () => {
  const old = await fixture.open();
  await old.route("**/api/v1/scenarios/*/outcome", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    for (const { answer } of body.outcome.results) delete answer.ranks;
    await route.fulfill({ response, json: body });
  });
  await old.goto(new URL(page.url()).pathname);
  await waitForPlanning(old);
  await old.getByTestId("card-time").getByTestId("no-breakdown").getByRole("button").waitFor();
  await old.getByTestId("card-peak").getByTestId("no-breakdown").waitFor();
  assert.equal(await old.locator(".chart-stacked").count(), 0);
  expectNoFaults(old);
  await old.context().close();
});

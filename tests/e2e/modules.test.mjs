// Modules with separate layouts: placement, stage loads, adaptive correction, and the sweep over layouts with a view of each point.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { readWindow, waitForPlanning } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";

/** A study computes for at most 20 s, after the computations that are queued before it. */
const STUDY_TIMEOUT = { timeout: 60_000 };

const paths = {};
const fixture = useFixture(async ({ open }) => {
  for (const [name, slug] of [["dflop", "dflop-nodes-1"], ["heterogeneous", "heterogeneous-vlm-s-16k"]]) {
    const page = await open();
    await page.goto(`/new?ready=${slug}`);
    await waitForPlanning(page);
    paths[name] = new URL(page.url()).pathname;
    await page.context().close();
  }
});

async function open(name, options, view = "") {
  const page = await fixture.open(options);
  await page.goto(paths[name] + view);
  await waitForPlanning(page);
  return page;
}

async function unfold(page, name) {
  const card = page.getByTestId(name);
  await card.scrollIntoViewIfNeeded();
  await card.locator("summary").first().click();
  return card;
}

test("a DFLOP plan shows the placement of modules and the load of its stages", async () => {
  const page = await open("dflop", undefined, "#p=dflop");
  const placement = page.getByTestId("card-placement");
  await placement.locator(".placement-row").first().waitFor();
  assert.equal(await placement.locator(".placement-row").count(), 2);
  assert.ok((await placement.getByTestId("boundaries").locator("tbody tr").count()) >= 1);
  const arrow = placement.locator(".placement-arrow").first();
  assert.match(await arrow.getAttribute("aria-label"), /^From .+ to .+: [\d.]+\s(MiB|GiB) a tensor forward, [\d.]+\s(MiB|GiB) backward$/);
  const [bars, arrowBox] = [await placement.locator(".placement-bars").first().boundingBox(), await arrow.boundingBox()];
  assert.ok(arrowBox.x >= bars.x + bars.width && arrowBox.height > 30, "the arrow is to the right of the bars and connects two rows");
  const stages = await unfold(page, "card-stages");
  await stages.getByTestId("stage-durations").first().waitFor(STUDY_TIMEOUT);
  assert.ok((await stages.getByTestId("stage-durations").count()) >= 2, "encoder and backbone");
  assert.match(await stages.locator("tbody").innerText(), /DFLOP/);
  expectNoFaults(page);
  await page.context().close();
});

test("adaptive correction is simulated and is disabled if it saves no time", async () => {
  const page = await open("dflop");
  const card = await unfold(page, "card-correction");
  const verdict = card.getByTestId("correction-verdict");
  await verdict.waitFor(STUDY_TIMEOUT);
  await card.getByTestId("correction-times").locator(".scatterlayer .trace").nth(1).waitFor({ state: "attached", ...STUDY_TIMEOUT });
  const slow = card.getByLabel("Slow shapes");
  await slow.fill("0");
  await verdict.getByText(/None of [\d,]+ shapes is slow/).waitFor(STUDY_TIMEOUT);
  assert.match(await verdict.innerText(), /is switched off at the end of iteration 19/);
  await card.getByTestId("correction-table").locator("summary").click();
  assert.equal(await card.locator("tr[data-iteration]").count(), 60);
  assert.match(await card.locator('tr[data-iteration="19"]').innerText(), /switches off/);
  await card.getByLabel("Length of the run").fill("30");
  await card.locator('tr[data-iteration="59"]').waitFor({ state: "detached", ...STUDY_TIMEOUT });
  await slow.fill("101");
  await card.getByText("out of range: 0 to 100").waitFor();
  assert.equal(await slow.getAttribute("aria-invalid"), "true");
  await card.getByRole("button", { name: "Reset" }).click();
  await card.getByText("out of range").waitFor({ state: "detached" });
  await card.getByText(/slow: an item of them takes/).waitFor(STUDY_TIMEOUT);
  expectNoFaults(page);
  await page.context().close();
});

test("adaptive correction uses the shapes of a run", async () => {
  const page = await open("dflop");
  const { id } = await fixture.server.get(`/scenarios/${paths.dflop.split("/").pop()}`);
  const { outcome } = await fixture.server.get(`/scenarios/${id}/outcome`);
  const planned = outcome.results.find(({ planner }) => planner === "dflop").answer.iterations;
  const line = (iteration, step) =>
    ` iteration ${step}/ 100 | consumed samples: ${step * 32} | elapsed time per iteration (ms): ${(iteration.iteration_s * (step === 1 ? 2600 : 1300)).toFixed(4)} | lm loss: 2.0 |\n`;
  const log = planned.map((iteration, index) => line(iteration, index + 1)).join("");
  const answer = await fetch(`${fixture.server.url}/api/v1/runs/import?name=night`, { method: "POST", body: log });
  assert.ok(answer.ok, await answer.text());
  await page.reload();
  await waitForPlanning(page);
  const card = await unfold(page, "card-correction");
  await card.getByTestId("correction-verdict").waitFor(STUDY_TIMEOUT);
  await card.getByTestId("correction-run").selectOption({ index: 1 });
  await card.getByTestId("correction-penalties").waitFor(STUDY_TIMEOUT);
  assert.match(await card.getByTestId("correction-penalties").locator("tbody tr").first().innerText(), /items, [\d,]+ to [\d,]+ tokens/);
  expectNoFaults(page);
  await page.context().close();
});

/** Moves the pointer to a point and returns its label. The label of an earlier point disappears first. */
async function hoverPoint(page, label, x, y) {
  await page.mouse.move(0, 0);
  await label.waitFor({ state: "detached" });
  await page.mouse.move(x - 3, y);
  await page.mouse.move(x, y);
  await label.waitFor();
  return label.textContent();
}

/** Clicks a point and returns whether the address changes. A redraw between hover and click drops the click. */
async function clickPoint(page, x, y, link) {
  await page.mouse.click(x, y, { delay: 60 });
  const changed = page.waitForFunction((link) => location.href !== link, link, { timeout: 4_000 });
  return changed.then(() => true, () => false);
}

test("a layout of the sweep can be opened by keyboard, link and click", async () => {
  const page = await open("heterogeneous");
  const card = await unfold(page, "card-layouts");
  const rows = card.getByTestId("layouts-front").locator("tbody tr");
  await rows.first().waitFor(STUDY_TIMEOUT);
  assert.ok((await rows.count()) >= 3, "the best layout of each search space");
  const show = rows.last().getByRole("button", { name: /^Show the timeline of / });
  const title = (await rows.last().locator("th").textContent()).trim();
  await show.focus();
  await page.keyboard.press("Enter");
  const chosen = card.getByTestId("chosen-layout");
  await chosen.waitFor(STUDY_TIMEOUT);
  const first = await readWindow(card.getByTestId("gantt-layout"));
  assert.equal((await chosen.locator("h3").textContent()).trim(), title);
  assert.match(await chosen.getByTestId("layout-description").innerText(), /fewer tokens\/s than the fastest|The fastest of all.*Order: .*Critical path: .*What binds: .*Memory: /s);
  assert.ok((await chosen.locator(".placement-row").count()) >= 1);
  assert.equal(await show.getAttribute("aria-pressed"), "true");
  await page.waitForFunction(() => location.hash.includes("layout="));
  const link = page.url();

  // Click a point of another layout. The chart detects the point under the pointer with a delay and shows its title.
  const chart = card.getByTestId("layouts-chart");
  await chart.evaluate((element) => element.scrollIntoView({ block: "center" }));
  const label = chart.locator(".hoverlayer .hovertext");
  const points = await chart.locator(".scatterlayer .trace .point").all();
  // A dropped click is repeated at the next point.
  for (const point of [...points, ...points]) {
    const box = await point.boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const text = await hoverPoint(page, label, x, y);
    if (text.startsWith(title.replaceAll("; ", ""))) continue;
    if (await clickPoint(page, x, y, link)) break;
  }
  await page.waitForFunction((link) => location.href !== link, link);
  await chosen.getByTestId("layout-description").getByText("Order:").waitFor(STUDY_TIMEOUT);
  assert.notEqual((await chosen.locator("h3").textContent()).trim(), title);

  const other = await fixture.open();
  await other.goto(link);
  await waitForPlanning(other);
  const again = other.getByTestId("chosen-layout");
  await again.waitFor(STUDY_TIMEOUT);
  assert.equal((await again.locator("h3").textContent()).trim(), title);
  assert.equal((await readWindow(other.getByTestId("gantt-layout"))).end, first.end);
  await again.getByRole("button", { name: "Close" }).click();
  await again.waitFor({ state: "detached" });
  await other.waitForFunction(() => !location.hash.includes("layout="));
  expectNoFaults(page);
  expectNoFaults(other);
  await other.context().close();
  await page.context().close();
});

/** Opens all cards about modules on a page. */
async function openAll(page, name) {
  await (await unfold(page, "card-stages")).getByTestId("stage-durations").first().waitFor(STUDY_TIMEOUT);
  if (name === "dflop") {
    const card = await unfold(page, "card-correction");
    await card.getByTestId("correction-verdict").waitFor(STUDY_TIMEOUT);
    await card.getByTestId("correction-table").locator("summary").click();
    return;
  }
  const card = await unfold(page, "card-layouts");
  const show = card.getByTestId("layouts-front").getByRole("button", { name: /^Show the timeline of / }).first();
  await show.waitFor(STUDY_TIMEOUT);
  await show.click();
  await card.getByTestId("layout-description").getByText("Order:").waitFor(STUDY_TIMEOUT);
}

for (const scheme of ["light", "dark"]) {
  for (const name of ["dflop", "heterogeneous"]) {
    test(`cards about modules have no serious accessibility violation and no overflow at 320 px, ${name}, ${scheme}`, async () => {
      const page = await open(name, { scheme, width: 320, height: 800 });
      await openAll(page, name);
      assert.deepEqual(await findOverflow(page), []);
      assert.deepEqual(await findSeriousViolations(page), []);
      expectNoFaults(page);
      await page.context().close();
    });
  }
}

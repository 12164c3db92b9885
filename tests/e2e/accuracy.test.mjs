// Predictions compared with measurements: the accuracy page, and the source of device figures in the editor.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { field, openReady, reveal, setNumber } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";

let sets;
const fixture = useFixture(async ({ server }) => {
  ({ sets } = await server.get("/accuracy"));
});

const chart = (page) => page.getByTestId("agreement");
const row = (page, id) => page.getByTestId("accuracy-sets").locator(`tr[data-set="${id}"]`);
/** Returns the sets whose points have one unit. The others have a table instead of a chart. */
const setsWithChart = () => sets.filter(({ unit }) => unit !== "mixed");

/** Returns the number of points in the chart, without the line of equality and its band. */
async function countPoints(page) {
  await chart(page).locator(".main-svg").first().waitFor();
  return chart(page).locator(".scatterlayer .trace .points path").count();
}

test("the table contains every set and states whether its goal is met", async () => {
  const page = await fixture.open();
  await page.goto("/");
  await page.locator("header").getByRole("link", { name: "Accuracy", exact: true }).click();
  assert.ok(sets.length > 0, "the server was built with measurements");
  for (const { id, title, statistics, goal } of sets) {
    const text = await row(page, id).innerText();
    const met = statistics.mean_abs_pct <= goal.mean && statistics.max_abs_pct <= (goal.largest ?? Infinity);
    assert.ok(text.includes(title) && text.includes(met ? "met" : "missed"), text);
    assert.ok(text.includes(statistics.count.toLocaleString("en-GB")), text);
  }
  const current = page.locator("header a[aria-current=page]");
  assert.equal(await current.innerText(), "Accuracy");
  expectNoFaults(page);
  await page.context().close();
});

test("selecting a set by keyboard changes the chart and the address", async () => {
  const page = await fixture.open();
  await page.goto("/accuracy");
  const [first, second] = setsWithChart();
  assert.equal(await chart(page).getAttribute("data-set"), first.id);
  assert.equal(await countPoints(page), first.points.length);
  await row(page, second.id).getByRole("link").focus();
  await page.keyboard.press("Enter");
  await page.locator(`[data-testid="agreement"][data-set="${second.id}"]`).waitFor();
  assert.equal(new URL(page.url()).search, `?set=${second.id}`);
  await page.waitForFunction(
    (count) => document.querySelectorAll('[data-testid="agreement"] .scatterlayer .trace .points path').length === count,
    second.points.length,
  );
  const detail = await page.getByTestId("accuracy-detail").innerText();
  for (const sentence of [second.title, second.source]) assert.ok(detail.includes(sentence), sentence);
  await page.goBack();
  await page.locator(`[data-testid="agreement"][data-set="${first.id}"]`).waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("a link opens its set, and hovering over a point shows its configuration", async () => {
  const page = await fixture.open({ scheme: "dark" });
  const set = setsWithChart().findLast(({ points }) => points.length < 100 && points[0].label);
  await page.goto(`/accuracy?set=${set.id}`);
  assert.equal(await countPoints(page), set.points.length);
  assert.equal(await row(page, set.id).getByRole("link").getAttribute("aria-current"), "true");
  const point = chart(page).locator(".scatterlayer .trace .points path").first();
  await point.scrollIntoViewIfNeeded();
  const box = await point.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const hover = chart(page).locator(".hoverlayer .hovertext");
  await hover.waitFor();
  const text = await hover.textContent();
  assert.ok(set.points.some(({ label }) => text.includes(label)), text);
  await page.getByTestId("accuracy-points").locator("summary").click();
  await page.getByTestId("accuracy-points").locator("tbody tr").first().waitFor();
  assert.equal(await page.getByTestId("accuracy-points").locator("tbody tr").count(), Math.min(set.points.length, 100));
  expectNoFaults(page);
  await page.context().close();
});

test("filters select rows and their mean error, and errors are drawn over a property", async () => {
  const page = await fixture.open();
  const set = sets.find(({ id }) => id === "ultrascale_h100");
  const property = set.properties.indexOf("TP");
  const selected = set.points.filter(({ properties }) => properties[property] === "8");
  assert.ok(selected.length > 0 && selected.length < set.points.length);
  await page.goto(`/accuracy?set=${set.id}`);
  const note = page.getByTestId("accuracy-filtered");
  await note.getByText(`${set.points.length} of ${set.points.length} rows`).waitFor();
  await page.getByTestId("accuracy-filters").locator('select[data-property="TP"]').selectOption("8");
  await note.getByText(`${selected.length} of ${set.points.length} rows`).waitFor();
  await page.waitForFunction(
    (count) => document.querySelector('[data-testid="agreement"]').dataset.points === String(count),
    selected.length,
  );
  const mean = selected.map(({ measured, predicted }) => Math.abs(predicted / measured - 1)).reduce((a, b) => a + b, 0);
  assert.ok((await note.innerText()).includes(`mean error ${((100 * mean) / selected.length).toPrecision(3)}`), await note.innerText());
  await page.getByTestId("error-property").selectOption({ label: "Microbatch" });
  await page.getByTestId("error-axis").locator(".main-svg").first().waitFor();
  await page.getByTestId("error-axis").getByText("microbatch", { exact: true }).waitFor();
  await page.getByTestId("accuracy-points").locator("summary").click();
  await page.getByTestId("accuracy-points").getByRole("columnheader", { name: "Microbatch" }).waitFor();
  const choices = page.getByTestId("accuracy-choices").locator("tbody tr");
  assert.equal(await choices.count(), set.choices.length);
  await page.waitForURL(`**/accuracy?set=${set.id}&TP=8&by=microbatch`);
  await page.reload();
  await note.getByText(`${selected.length} of ${set.points.length} rows`).waitFor();
  assert.equal(await page.getByTestId("error-property").locator("option:checked").innerText(), "Microbatch");
  await page.getByRole("button", { name: "All rows" }).click();
  await note.getByText(`${set.points.length} of ${set.points.length} rows`).waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("an unknown set has an error message", async () => {
  const page = await fixture.open();
  await page.goto("/accuracy?set=nothing");
  await page.getByText("This set does not exist").waitFor();
  assert.equal(await chart(page).count(), 0);
  expectNoFaults(page);
  await page.context().close();
});

test("without measurements, the page describes how to create them", async () => {
  const page = await fixture.open();
  await page.route("**/api/v1/accuracy", (route) => route.fulfill({ json: { engine: "", sets: [] } }));
  await page.goto("/accuracy");
  await page.getByText("cargo xtask accuracy").waitFor();
  expectNoFaults(page);
  await page.context().close();
});

for (const scheme of ["light", "dark"]) {
  test(`sets have no serious accessibility violation and no overflow, ${scheme}`, async () => {
    const found = [];
    for (const width of [1440, 320]) {
      const page = await fixture.open({ scheme, width });
      for (const { id } of sets) {
        await page.goto(`/accuracy?set=${id}`);
        await page.getByTestId("accuracy-detail").waitFor();
        found.push(...(await findOverflow(page)).map((what) => `${id} at ${width}: ${what}`));
      }
      await page.waitForLoadState("networkidle");
      found.push(...(await findSeriousViolations(page)));
      expectNoFaults(page);
      await page.context().close();
    }
    assert.deepEqual(found, []);
  });
}

test("the editor states the source of a device's figures", async () => {
  const page = await fixture.open();
  await openReady(page, "llama-2-7b-long-documents");
  await page.getByTestId("cluster-preset").selectOption("a100-80gb");
  const status = page.getByTestId("calibration");
  const text = await status.innerText();
  assert.match(text, /Fitted on [\d,]+ timings \([\d,]+ matrix products, .*collectives\), mean residual [\d.]+\s%/);
  assert.equal(await page.getByTestId("device-note").count(), 0);
  await setNumber(page, "/cluster/device/matmul_efficiency", 0.5);
  await status.getByText("Edited: no longer as fitted").waitFor();
  await page.getByTestId("cluster-preset").selectOption("ascend-910b");
  await page.getByTestId("device-note").getByText(/contradict/).waitFor();
  assert.match(await page.getByTestId("device-note").innerText(), /^Caution: /);
  await status.getByText(/^Not measured: /).waitFor();
  await status.getByRole("link").click();
  await page.waitForURL("**/accuracy");
  expectNoFaults(page);
  await page.context().close();
});

test("advanced training settings are added to the scenario and removed", async () => {
  const page = await fixture.open();
  await openReady(page, "llama-2-7b-long-documents");
  await reveal(page, "/training/zero");
  const sent = () => page.waitForRequest((request) => request.method() === "PUT" && request.url().endsWith("/scenarios"));
  let request = sent();
  await field(page, "/training/zero").selectOption("2");
  assert.equal((await request).postDataJSON().training.zero, 2);
  request = sent();
  await field(page, "/training/fused_weight_gradients").setChecked(false);
  assert.equal((await request).postDataJSON().training.fused_weight_gradients, false);
  request = sent();
  await field(page, "/training/zero").selectOption("");
  assert.equal("zero" in (await request).postDataJSON().training, false);
  await setNumber(page, "/training/activation_offload", 7);
  await page.locator('[data-error-for="/training/activation_offload"]').waitFor();
  await page.context().close();
});

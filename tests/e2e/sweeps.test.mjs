// Sweeps: scaling studies, the page of a sweep, a sweep over two axes, points opened as scenarios.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { findViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { openReady, waitForPlanning } from "./explore.mjs";
import { screenshots, useFixture } from "./fixture.mjs";

const SWEEP_TIMEOUT = { timeout: 120_000 };

let page;
const fixture = useFixture(async ({ open }) => {
  page = await open();
});

async function checkAccessibility(of) {
  assert.deepEqual(await findViolations(of), []);
}

async function takeScreenshot(of, name) {
  await of.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
}

test("an empty list of sweeps describes how to create one", async () => {
  await page.goto("/sweeps");
  await page.getByText("No sweep yet.").waitFor();
  await checkAccessibility(page);
  expectNoFaults(page);
});

test("one click computes a scaling study and draws it in the card", async () => {
  await openReady(page, "llama-2-7b-long-documents");
  const card = page.getByTestId("card-scaling");
  await card.scrollIntoViewIfNeeded();
  await card.locator("summary").first().click();
  const buttons = card.getByRole("group", { name: "Scaling studies" }).getByRole("button");
  await buttons.first().waitFor();
  const names = await buttons.allInnerTexts();
  assert.deepEqual(names, ["nodes", "context length", "global batch"], "the model reads no images");
  await card.getByRole("button", { name: "global batch" }).click();
  await card.locator('[data-testid="sweep-progress"][data-state="done"]').waitFor(SWEEP_TIMEOUT);
  assert.match(await card.getByTestId("sweep-progress").innerText(), /^5 of 5 points planned/);
  for (const chart of ["scaling-throughput", "scaling-time"]) {
    await card.getByTestId(chart).locator(".scatterlayer .trace").first().waitFor({ state: "attached", ...SWEEP_TIMEOUT });
  }
  await checkAccessibility(page);
  await takeScreenshot(card, "scaling-card");
  expectNoFaults(page);
  await card.getByTestId("scaling-sweep").click();
  await page.getByTestId("sweep-points").locator("tbody tr").nth(4).waitFor(SWEEP_TIMEOUT);
  await page.getByTestId("sweep-lines").locator(".scatterlayer .trace").first().waitFor({ state: "attached", ...SWEEP_TIMEOUT });
  assert.match(await page.getByTestId("sweep-subject").innerText(), / on .*, with other values of global batch/);
  await page.getByTestId("sweep-scenario").click();
  await page.waitForURL(/\/s\/[a-z2-7]+/);
  expectNoFaults(page);
});

test("a sweep over two fields has a heat map, and its points open as scenarios", async () => {
  await openReady(page, "llama-2-7b-long-documents");
  const card = page.getByTestId("card-scaling");
  await card.locator("summary").first().click();
  const form = card.getByTestId("make-sweep");
  await card.getByText("Sweep…").click();
  for (const [field, values] of [["TP", "2, 4"], ["PP", "1, 2, 3000"]]) {
    await form.getByRole("checkbox", { name: `${field} (` }).check();
    await form.getByRole("textbox", { name: `Values of ${field}`, exact: true }).fill(values);
  }
  const own = form.getByRole("textbox", { name: "Another field, by JSON pointer" });
  await own.fill("training/zero");
  await form.getByRole("alert").getByText("begins with a slash").waitFor();
  assert.ok(await form.getByRole("button", { name: "Plan 6 points" }).isDisabled());
  await own.fill("");
  await form.getByRole("button", { name: "Plan 6 points" }).click();
  await page.locator('[data-testid="sweep-progress"][data-state="done"]').waitFor(SWEEP_TIMEOUT);
  const map = page.getByTestId("heat-map");
  await map.waitFor(SWEEP_TIMEOUT);
  await page.getByTestId("sweep-metric").selectOption("tokens_per_s");
  await map.getByText("tokens/s").first().waitFor();
  assert.match(page.url(), /metric=tokens_per_s&/);
  await page.getByTestId("sweep-x").selectOption({ label: "TP" });
  assert.equal(await page.getByTestId("sweep-y").locator("option:checked").innerText(), "PP", "the axes are exchanged");
  await page.getByTestId("sweep-x").selectOption({ label: "PP" });
  // PP 3000 is above the number of devices, and TP 2 with PP 1 does not fit. These three cells have no value.
  assert.equal(await map.locator("td.heat.none").count(), 3);
  const rows = await page.getByTestId("sweep-points").locator("tbody tr").count();
  assert.equal(rows, 6);
  await page.getByTestId("sweep-front").waitFor(SWEEP_TIMEOUT);
  await checkAccessibility(page);
  await takeScreenshot(page, "sweep-light");
  const api = new URL(page.url()).pathname.replace("/sweeps/", "/api/v1/sweeps/");
  const file = await (await page.request.get(`${api}/points.jsonl`)).text();
  assert.equal(file.trim().split("\n").length, 7, "a header line and six points");
  await map.getByRole("button").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/s\//);
  await waitForPlanning(page);
  expectNoFaults(page);
});

test("the list contains the sweep, and its page does not overflow narrow dark screens", async () => {
  await page.goto("/sweeps");
  const lines = page.getByTestId("sweeps").locator("tbody tr[data-id]");
  await lines.nth(1).waitFor();
  const href = await lines.first().getByRole("link").first().getAttribute("href");
  await takeScreenshot(page, "sweeps-light");
  for (const width of [320, 390]) {
    const narrow = await fixture.open({ scheme: "dark", width, height: 800 });
    await narrow.goto(href);
    await narrow.getByTestId("sweep-points").locator("tbody tr").first().waitFor(SWEEP_TIMEOUT);
    assert.deepEqual(await findOverflow(narrow), []);
    await checkAccessibility(narrow);
    await takeScreenshot(narrow, `sweep-dark-${width}`);
    expectNoFaults(narrow);
    await narrow.context().close();
  }
});

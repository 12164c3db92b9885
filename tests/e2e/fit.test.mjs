// Changes that make a scenario fit, and changes that save time: search, apply, undo, cancel.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { readRanking, waitForPlanning } from "./explore.mjs";
import { screenshots, useFixture } from "./fixture.mjs";

const fixture = useFixture();

/** A study computes for at most 20 s, after the computations that are queued before it. */
const STUDY_TIMEOUT = { timeout: 60_000 };

/** Llama-3 70B on 64 devices with 80 GB. Without recomputation, the activations do not fit. */
const scenario = (training) => ({
  schema: "scenario/1",
  title: "Llama-3 70B on 64 H100",
  model: { preset: "llama-3-70b" },
  cluster: { preset: "h100", nodes: 8 },
  workload: {
    samples: { kind: "drawn", text_tokens: { kind: "constant", value: 8192 }, images: { kind: "constant", value: 0 } },
    global_batch: 64,
    context_length: 8192,
    packing: "single",
  },
  training,
  layout: { tensor: 4, pipeline: 4, microbatch: 2 },
  planners: ["1f1b", "gpipe"],
  iterations: 1,
});

/** Stores a scenario and opens it. */
async function openScenario(page, training, states) {
  const response = await fetch(`${fixture.server.url}/api/v1/scenarios`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(scenario(training)),
  });
  assert.ok(response.ok, await response.clone().text());
  await page.goto(`/s/${(await response.json()).short}`);
  await waitForPlanning(page, states);
}

const panel = (page) => page.getByTestId("card-fit");
const statusNote = (page) => panel(page).getByRole("status").first();
const rows = (page) => panel(page).getByTestId("fit-changes").locator("tbody tr");
const findButton = (page) => panel(page).getByRole("button", { name: "Find changes" });

async function readChanges(page) {
  await rows(page).first().waitFor(STUDY_TIMEOUT);
  return rows(page).evaluateAll((lines) =>
    lines.map((line) => ({
      words: line.querySelector("th").innerText,
      seconds: Number(line.cells[1].dataset.value),
      gib: Number(line.cells[2].dataset.value),
    })),
  );
}

/** Waits until the table is marked as belonging to another scenario, or is no longer marked. */
async function waitForStale(page, expected) {
  await page.waitForFunction((stale) => (document.querySelector(".fit-stale [data-testid=fit-changes]") !== null) === stale, expected);
}

test("a scenario fits after the first change is applied, and undo restores the list of changes", async () => {
  const page = await fixture.open();
  await openScenario(page, { recompute: "none" }, ["infeasible"]);
  assert.equal(await panel(page).getByRole("heading").first().innerText(), "Changes that make it fit");
  assert.equal(await rows(page).count(), 0, "no change is simulated before the request");
  await findButton(page).focus();
  await page.keyboard.press("Enter");
  const found = await readChanges(page);
  assert.ok(found.length >= 2 && found.length <= 10, `${found.length}`);
  assert.deepEqual(found.map(({ seconds }) => seconds), found.map(({ seconds }) => seconds).toSorted((a, b) => a - b));
  assert.ok(found.some(({ words }) => words.startsWith("Recompute: None → Whole layers")), JSON.stringify(found));
  assert.match(await panel(page).getByTestId("fit-need").innerText(), /rank \d needs [\d.]+\sGiB; [\d.]+\sGiB available/);
  await panel(page).getByTestId("fit-ranks").locator("summary").click();
  assert.equal(await panel(page).getByTestId("peak-ranks").locator("tbody tr").count(), 4);
  await panel(page).getByTestId("fit-ranks").locator("summary").click();
  assert.deepEqual(await findSeriousViolations(page), []);
  await panel(page).scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(screenshots, "fit-infeasible-light.png"), fullPage: true });

  await rows(page).first().getByRole("button", { name: /^Apply / }).focus();
  await page.keyboard.press("Enter");
  await waitForPlanning(page, ["done"]);
  const { "1f1b": plan } = await readRanking(page);
  assert.equal(Number(plan.iteration_s), found[0].seconds, "the time equals the prediction");
  assert.equal(await panel(page).getByRole("heading").first().innerText(), "Changes that save time");
  await waitForStale(page, true);
  assert.match(await statusNote(page).innerText(), /^Applied: .*The scenario has changed since/);
  assert.equal(await rows(page).first().getByRole("button").getAttribute("aria-disabled"), "true");
  await page.screenshot({ path: join(screenshots, "fit-applied-light.png") });
  assert.deepEqual(await findSeriousViolations(page), []);

  await panel(page).getByRole("button", { name: "Undo" }).click();
  await waitForPlanning(page, ["infeasible"]);
  await waitForStale(page, false);
  assert.deepEqual(await readChanges(page), found, "the changes are not simulated again");
  expectNoFaults(page);
  await page.context().close();
});

test("a scenario that fits lists the changes that save most time, on a narrow dark page", async () => {
  const page = await fixture.open({ scheme: "dark", width: 390, height: 844 });
  await openScenario(page, { recompute: "full" }, ["done"]);
  assert.equal(await panel(page).getByRole("heading").first().innerText(), "Changes that save time");
  const { "1f1b": now } = await readRanking(page);
  await findButton(page).click();
  const found = await readChanges(page);
  assert.ok(found.every(({ seconds }) => seconds < Number(now.iteration_s)), JSON.stringify(found));
  assert.match(await rows(page).first().innerText(), /−[\d.]+\sm?s \(−[\d.]+\s%\)/);
  assert.match(await statusNote(page).innerText(), /^1F1B: Now [\d.]+\ss per step\. \d+ changes simulated/);
  assert.deepEqual(await findOverflow(page), []);
  await panel(page).evaluate((box) => window.scrollTo(0, box.offsetTop - 100));
  await page.screenshot({ path: join(screenshots, "fit-feasible-dark-390.png") });
  // Apply is visible without scrolling the table.
  const region = panel(page).getByRole("region", { name: "Single changes, fastest first" });
  assert.ok(await region.evaluate((box) => box.scrollWidth <= box.clientWidth), "the table needs no horizontal scrolling");
  await panel(page).getByRole("combobox", { name: "Planner whose changes are simulated" }).selectOption("gpipe");
  await waitForStale(page, true);
  assert.deepEqual(await findSeriousViolations(page), []);
  expectNoFaults(page);
  await page.context().close();
});

test("a search can be cancelled and repeated, and its failure is shown in the panel", async () => {
  const page = await fixture.open();
  await openScenario(page, { recompute: "full" }, ["done"]);
  let answer = "hold";
  await page.route("**/studies/fit?**", async (route) => {
    if (answer === "hold") return;
    if (answer === "go") return route.continue();
    await route.fulfill({ status: 200, contentType: "application/json", body: "{}" });
  });
  await findButton(page).click();
  await panel(page).getByRole("button", { name: "Cancel" }).click();
  await panel(page).getByText("Cancelled.").waitFor();
  answer = "unreadable";
  await findButton(page).click();
  await panel(page).getByRole("alert").getByText("The answer cannot be read").waitFor();
  answer = "go";
  await panel(page).getByRole("button", { name: "Try again" }).click();
  await rows(page).first().waitFor(STUDY_TIMEOUT);
  expectNoFaults(page);
  await page.context().close();
});

test("the fewest devices of each type are searched on request", async () => {
  const page = await fixture.open();
  await openScenario(page, { recompute: "none" }, ["infeasible"]);
  const group = panel(page).getByTestId("fit-devices");
  await group.locator("summary").click();
  await group.getByRole("button", { name: "Find fewest devices" }).click();
  const types = group.getByTestId("fit-device-types").locator("tbody tr");
  await types.first().waitFor(STUDY_TIMEOUT);
  const devices = await types.locator("td[data-value]").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));
  assert.ok(devices.length > 0);
  assert.deepEqual(devices, devices.toSorted((a, b) => a - b));
  await group.scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(screenshots, "fit-devices-light.png") });
  expectNoFaults(page);
  await page.context().close();
});

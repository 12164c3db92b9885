// Navigation between pages, also while requests are pending; undo, cancelled uploads, saved charts.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { openReady, setNumber, waitForPlanning } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";
import { waitForValue } from "./runs.mjs";

const fixture = useFixture();

const headerLink = (page, name) => page.locator("header.bar").getByRole("link", { name, exact: true });
/**
 * Holds the requests of this method and address. `waitForRequest` waits until one is held. `release` sends the held requests, waits until
 * they end, and stops holding.
 */
async function holdRequests(page, method, address) {
  const held = [];
  await page.route(address, (route) => (route.request().method() === method ? held.push(route) : route.continue()));
  return {
    waitForRequest: () => waitForValue(() => held.length, (count) => count === 1, "held requests"),
    async release() {
      for (const route of held) {
        const ended = Promise.race(["requestfinished", "requestfailed"].map((name) => page.waitForEvent(name, (request) => request === route.request())));
        await route.continue();
        await ended;
      }
      await page.unroute(address);
      // The response of a later request is handled after those of the held requests.
      await page.evaluate(async () => {
        await (await fetch("/api/v1/runs")).text();
        await new Promise(requestAnimationFrame);
      });
    },
  };
}

const readPath = (page) => new URL(page.url()).pathname;

test("the explore page has the same state however it is opened", async () => {
  const page = await fixture.open();
  await openReady(page, "llama-2-7b-long-documents");
  await page.waitForURL("**/s/*");
  await headerLink(page, "Explore").click();
  await page.getByTestId("export").waitFor();
  assert.equal(await headerLink(page, "Explore").getAttribute("aria-current"), "page");
  await headerLink(page, "Datasets").click();
  await page.getByTestId("export").waitFor({ state: "detached" });
  await headerLink(page, "Explore").click();
  await waitForPlanning(page);
  await page.getByTestId("export").waitFor();
  const before = readPath(page);
  await setNumber(page, "/workload/global_batch", 24);
  await waitForPlanning(page);
  await page.waitForFunction((before) => location.pathname !== before, before);

  // The link opens the pinned scenario, although the router has its address as the current one (ADR 7).
  const card = page.getByTestId("card-comparison");
  await card.getByTestId("comparison-pin").click();
  const pinned = readPath(page);
  await setNumber(page, "/workload/global_batch", 40);
  await waitForPlanning(page);
  await page.waitForFunction((pinned) => location.pathname !== pinned, pinned);
  const edited = readPath(page);
  await card.getByTestId("comparison-link").click();
  await page.waitForFunction((pinned) => location.pathname === pinned, pinned);
  await waitForPlanning(page);
  assert.equal(await page.locator('[data-pointer="/workload/global_batch"]').inputValue(), "24");
  await page.goBack();
  await page.waitForFunction((edited) => location.pathname === edited, edited);
  await waitForPlanning(page);
  assert.equal(await page.locator('[data-pointer="/workload/global_batch"]').inputValue(), "40");
  expectNoFaults(page);
  await page.context().close();
});

test("the back button returns from the compared scenario", async () => {
  const page = await fixture.open();
  await page.goto("/new?ready=gpt-3-175b-uniform");
  await waitForPlanning(page);
  const other = readPath(page);
  await page.goto("/new?ready=llama-2-7b-long-documents");
  await waitForPlanning(page);
  const here = readPath(page);
  // The router has this address as the current one, also after the page replaces it.
  await page.goto(here);
  await waitForPlanning(page);
  const title = await page.getByTestId("title").inputValue();
  const card = page.getByTestId("card-comparison");
  await card.getByTestId("comparison-link-field").fill(`${fixture.server.url}${other}`);
  await card.getByTestId("comparison-link-field").blur();
  await card.getByTestId("comparison-link").click();
  await page.waitForFunction((other) => location.pathname === other, other);
  await waitForPlanning(page);
  assert.notEqual(await page.getByTestId("title").inputValue(), title);
  await page.goBack();
  await page.waitForFunction(
    ([here, title]) => location.pathname === here && document.querySelector('[data-testid="title"]')?.value === title,
    [here, title],
  );
  await waitForPlanning(page);
  await page.goForward();
  await page.waitForFunction(
    ([other, title]) => location.pathname === other && ![title, "", undefined].includes(document.querySelector('[data-testid="title"]')?.value),
    [other, title],
  );
  await waitForPlanning(page);
  expectNoFaults(page);
  await page.context().close();
});

test("a link works again after the back button", async () => {
  const page = await fixture.open();
  await page.goto("/new?ready=llama-2-7b-long-documents");
  await waitForPlanning(page);
  const here = readPath(page);
  for (const _ of ["once", "again"]) {
    await headerLink(page, "Scenarios").click();
    await page.waitForFunction(() => location.pathname === "/scenarios");
    await page.goBack();
    await page.waitForFunction((here) => location.pathname === here, here);
    await waitForPlanning(page);
  }
  expectNoFaults(page);
  await page.context().close();
});

test("an edit of the title can be undone, and undo of another edit does not change the title", async () => {
  const page = await fixture.open();
  await page.goto("/new?ready=llama-2-7b-long-documents");
  await waitForPlanning(page);
  const title = page.getByTestId("title");
  await title.fill("Ours");
  const batch = page.locator('[data-pointer="/workload/global_batch"]');
  const before = await batch.inputValue();
  await setNumber(page, "/workload/global_batch", 24);
  await waitForPlanning(page);
  await page.locator("main h1").first().click({ position: { x: 2, y: 2 } });
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("Control+z");
  await waitForPlanning(page);
  assert.deepEqual([await batch.inputValue(), await title.inputValue()], [before, "Ours"]);
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => document.querySelector('[data-testid="title"]').value !== "Ours");
  expectNoFaults(page);
  await page.context().close();
});

test("a scenario from a self-contained link survives navigation", async () => {
  const page = await fixture.open();
  await page.goto("/new?ready=llama-2-7b-long-documents");
  await waitForPlanning(page);
  await page.getByTestId("export").locator("summary").click();
  await page.getByTestId("copy-contained").click();
  await page.waitForFunction(() => document.querySelector('[data-testid="copy-contained"]').dataset.url);
  const link = await page.getByTestId("copy-contained").getAttribute("data-url");
  const other = await fixture.open();
  // Simulates another server, which has no results of the scenario.
  await other.route("**/api/v1/scenarios/identity", async (route) => {
    const identity = await (await route.fetch()).json();
    await route.fulfill({ json: { ...identity, planned: false } });
  });
  await other.goto(link);
  await other.getByTestId("unsaved").waitFor();
  await headerLink(other, "Explore").click();
  await other.getByTestId("unsaved").waitFor();
  await headerLink(other, "Datasets").click();
  await other.getByTestId("upload").waitFor({ state: "attached" });
  await headerLink(other, "Explore").click();
  await other.getByTestId("unsaved").waitFor();
  await other.waitForFunction(() => location.pathname === "/c/" && location.hash.startsWith("#z1."));
  expectNoFaults(page);
  expectNoFaults(other);
  await page.context().close();
  await other.context().close();
});

test("a response that arrives after navigation does not affect other pages", async () => {
  const page = await fixture.open();
  const upload = await holdRequests(page, "POST", "**/api/v1/traces?*");
  await page.goto("/traces");
  const trace = { name: "late.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify([{ ph: "X", pid: 1, tid: 1, ts: 0, dur: 5, name: "late" }])) };
  await page.getByTestId("trace-upload").setInputFiles(trace);
  await page.getByTestId("cancel-upload").waitFor();
  await headerLink(page, "Runs").click();
  await page.getByTestId("import-log").waitFor({ state: "attached" });
  await page.getByTestId("runs-empty").waitFor();
  await upload.waitForRequest();
  const before = await page.locator("main").innerHTML();
  await upload.release();
  assert.equal(readPath(page), "/runs");
  assert.equal(await page.locator("main").innerHTML(), before, "the page of runs is unchanged");

  // Charts of schedules have abstract units, charts of plans have seconds.
  await openReady(page, "llama-2-7b-long-documents");
  const comparison = await holdRequests(page, "POST", "**/api/v1/schedules");
  await headerLink(page, "Schedules").click();
  await comparison.waitForRequest();
  await headerLink(page, "Explore").click();
  await waitForPlanning(page);
  await comparison.release();
  const chart = page.locator("canvas.gantt-canvas").first();
  await chart.focus();
  await page.keyboard.press("ArrowRight");
  const details = page.getByTestId("selection");
  await details.locator("dl").waitFor();
  assert.match(await details.innerText(), /Duration\s+[\d.]+ (s|ms|µs)/);
  expectNoFaults(page);
  await page.context().close();
});

test("an upload can be cancelled", async () => {
  const page = await fixture.open();
  await page.route("**/api/v1/datasets?*", (route) => (route.request().method() === "POST" ? undefined : route.continue()));
  await page.goto("/datasets");
  await page.getByTestId("upload").setInputFiles({ name: "lengths.txt", mimeType: "text/plain", buffer: Buffer.from("128\n256\n512\n") });
  await page.getByTestId("cancel-upload").click();
  await page.getByTestId("cancel-upload").waitFor({ state: "detached" });
  assert.equal(await page.locator(".notice.bad").count(), 0);
  await page.unroute("**/api/v1/datasets?*");
  await page.getByTestId("upload").setInputFiles({ name: "lengths.txt", mimeType: "text/plain", buffer: Buffer.from("128\n256\n512\n") });
  await page.getByTestId("preview-figures").waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("a chart is saved as SVG and PNG, and differences are described in text", async () => {
  const page = await fixture.open();
  await openReady(page, "llama-2-7b-long-documents");
  const chart = page.locator(".chart", { has: page.locator(".chart-saves") }).first();
  await chart.scrollIntoViewIfNeeded();
  for (const [format, begins] of [["svg", "<svg"], ["png", "\x89PNG"]]) {
    const wait = page.waitForEvent("download");
    await chart.hover();
    await chart.locator(`[data-format="${format}"]`).click();
    const download = await wait;
    assert.match(download.suggestedFilename(), new RegExp(`^[\\w-]+\\.${format}$`));
    const bytes = await readFile(await download.path());
    assert.equal(bytes.subarray(0, begins.length).toString("latin1"), begins);
    assert.ok(bytes.length > 2000, `${format}: ${bytes.length} bytes`);
  }
  await page.getByTestId("gantt-differences-switch").click();
  const canvas = page.locator("canvas.gantt-canvas").nth(1);
  await canvas.focus();
  await page.keyboard.press("ArrowRight");
  await page.getByTestId("selection").getByText("Against the baseline").waitFor();
  assert.match(await page.getByTestId("selection").innerText(), /in the baseline|baseline's iteration/);
  const figure = page.locator("figure.gantt").nth(1);
  assert.match(await figure.locator(".gantt-spoken").innerText(), /baseline/);
  await figure.locator("details.gantt-table > summary").click();
  await figure.getByRole("columnheader", { name: "Against the baseline" }).waitFor();
  expectNoFaults(page);
  await page.context().close();
});

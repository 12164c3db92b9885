// Lazily loaded pages: which modules are fetched when, and what is shown during loading and after a failure.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { useFixture } from "./fixture.mjs";
import { readShifts, recordShifts } from "./layout_shifts.mjs";

const fixture = useFixture();

const isPart = (url) => url.pathname.endsWith(".wasm") && !url.pathname.includes("planscope_bg");
const recordPartRequests = (page) => {
  const requested = [];
  page.on("request", (request) => isPart(new URL(request.url())) && requested.push(new URL(request.url()).pathname));
  return requested;
};

test("the gallery needs one module, and hovering over a link fetches the modules of its page", async () => {
  const page = await fixture.open();
  // Only the main module can be loaded.
  await page.route(isPart, (route) => route.abort());
  await page.goto("/");
  await page.waitForSelector('[data-testid^="gallery-"]');
  await page.unroute(isPart);
  await page.context().close();

  const second = await fixture.open();
  const requested = recordPartRequests(second);
  await second.goto("/");
  await second.waitForSelector('[data-testid^="gallery-"]');
  await second.waitForLoadState("networkidle");
  assert.deepEqual(requested, [], "the first visit fetches no module of another page");
  await second.hover('[data-testid="new-scenario"]');
  await second.waitForLoadState("networkidle");
  const prefetched = new Set(requested);
  assert.ok(prefetched.size > 0, "the explore page is fetched before the click");
  await second.click('[data-testid="new-scenario"]');
  await second.waitForSelector("main.explore");
  assert.deepEqual(requested.filter((path) => !prefetched.has(path)), [], "opening the page fetches nothing more");
  expectNoFaults(second);
  await second.context().close();
});

test("a page fetches only its own modules, once", async () => {
  const page = await fixture.open();
  await page.goto("/accuracy");
  await page.waitForSelector("h1:not(.visually-hidden)");
  const requested = recordPartRequests(page);
  await page.click('nav a[href="/runs"]');
  await page.waitForSelector('h1:text-is("Runs")');
  assert.ok(requested.length > 0);
  await page.waitForLoadState("networkidle");
  requested.length = 0;
  await page.goBack();
  await page.waitForSelector('h1:not(:text-is("Runs"))');
  await page.goForward();
  await page.waitForSelector('h1:text-is("Runs")');
  assert.deepEqual(requested, [], "an opened page is not fetched again");
  expectNoFaults(page);
  await page.context().close();
});

test("a slow module shows a placeholder, and the layout is stable when it arrives", async () => {
  const page = await fixture.open();
  await recordShifts(page);
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route(isPart, async (route) => {
    await released;
    await route.continue();
  });
  await page.goto("/sweeps", { waitUntil: "commit" });
  await page.waitForSelector('[data-testid="page-loading"]');
  // The header is visible during loading.
  assert.ok(await page.isVisible("header.bar"));
  release();
  await page.waitForSelector('h1:text-is("Sweeps")');
  const { sum } = await readShifts(page);
  assert.ok(sum < 0.05, `layout shift ${sum}`);
  await page.unroute(isPart);
  expectNoFaults(page);
  await page.context().close();
});

test("a module that fails to load shows an error with retry and reload", async () => {
  const page = await fixture.open();
  await page.goto("/");
  await page.waitForSelector('[data-testid^="gallery-"]');
  await page.waitForLoadState("networkidle");
  // After an upgrade of the server, the old file names do not exist.
  const respondNotFound = (route) => route.fulfill({ status: 404, contentType: "application/problem+json", body: "{}" });
  await page.route(isPart, respondNotFound);
  await page.click('nav a[href="/traces"]');
  const notice = page.getByTestId("page-load-error");
  await notice.waitFor();
  assert.equal(await notice.getAttribute("role"), "alert");
  // Other pages can still be opened.
  await page.click('a.brand');
  await page.waitForSelector('[data-testid^="gallery-"]');
  await page.click('nav a[href="/traces"]');
  await notice.waitFor();
  await page.unroute(isPart);
  await notice.getByRole("button", { name: "Try again" }).click();
  await page.waitForSelector('h1:text-is("Traces")');

  await page.route(isPart, respondNotFound);
  await page.click('nav a[href="/profiles"]');
  await notice.waitFor();
  await page.unroute(isPart);
  await Promise.all([page.waitForNavigation(), notice.getByRole("button", { name: "Reload" }).click()]);
  await page.waitForSelector('h1:text-is("Profiles")');
  await page.context().close();
});

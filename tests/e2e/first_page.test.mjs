// First page: a form for a new scenario, twelve ready scenarios with figures of the server, and a collapsed list of all scenarios.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { fetchScenario, field, reveal, waitForPlanning } from "./explore.mjs";
import { screenshots, useFixture } from "./fixture.mjs";

const fixture = useFixture();

test("the first page shows the form for a new scenario and twelve ready scenarios with figures", async () => {
  const page = await fixture.open();
  await page.goto("/");
  await page.locator(".ready.tile").first().waitFor();
  const order = await page.evaluate(() => {
    const first = document.querySelector('[data-testid="new-model"]');
    const tile = document.querySelector(".ready.tile");
    return first.compareDocumentPosition(tile) & Node.DOCUMENT_POSITION_FOLLOWING;
  });
  assert.ok(order, "the form is before the tiles");
  const front = await fixture.server.get("/gallery/front-page");
  const tiles = front.topics.flatMap((topic) => topic.tiles);
  assert.equal(tiles.length, 12);
  assert.equal(await page.locator(".ready.tile").count(), 12);
  for (const { slug, headline } of tiles) {
    assert.ok(headline, `${slug} has figures`);
    assert.match(headline.engine, /^planscope \d/);
    const text = await page.getByTestId(`gallery-${slug}`).innerText();
    assert.ok(text.includes(headline.best.planner), `${slug}: ${text}`);
    assert.match(text, /MFU/);
    if (headline.gain >= 1.005) assert.ok(text.includes(`${headline.gain.toFixed(2)}×`), `${slug}: ${headline.gain} in ${text}`);
  }
  for (const [width, scheme] of [[1440, "light"], [1440, "dark"], [390, "light"], [390, "dark"]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme: scheme });
    await page.screenshot({ path: join(screenshots, `first-page-${scheme}-${width}.png`), fullPage: true });
  }
  expectNoFaults(page);
  await page.context().close();
});

test("a model and a cluster start a scenario with a free layout", async () => {
  const page = await fixture.open();
  await page.goto("/");
  await page.locator('[data-testid="new-model"] option[value="llama-2-13b"]').waitFor({ state: "attached" });
  await page.getByTestId("new-model").selectOption("llama-2-13b");
  await page.getByTestId("new-nodes").fill("2");
  await page.getByTestId("new-nodes").blur();
  await page.getByTestId("start-scenario").click();
  await waitForPlanning(page);
  const { scenario } = await fetchScenario(page, fixture.server);
  assert.equal(scenario.model.name, "Llama-2 13B");
  assert.equal(scenario.cluster.nodes, 2);
  assert.deepEqual(Object.keys(scenario.layout ?? {}), [], "no degree is fixed");
  assert.equal(scenario.free.length, 12, "no setting is fixed");
  assert.equal(scenario.planners[0], "best");
  expectNoFaults(page);
  await page.context().close();
});

test("settings of a new scenario are free until the user fixes them", async () => {
  const page = await fixture.open();
  // The edit cancels the planning of the first scenario.
  const isStored = (request) => request.method() === "PUT" && request.url().endsWith("/scenarios");
  const opened = page.waitForResponse((response) => isStored(response.request()));
  await page.goto("/new");
  await opened;
  const pointer = "/training/recompute";
  const free = page.locator('[data-free="recompute"]');
  await reveal(page, pointer);
  assert.ok(await free.isChecked());
  assert.ok(await field(page, pointer).isDisabled());
  assert.equal(await field(page, pointer).evaluate((select) => select.selectedOptions[0].text), "free");
  const sent = page.waitForRequest(isStored);
  await free.focus();
  await page.keyboard.press("Space");
  await page.locator(`[data-pointer="${pointer}"]:enabled`).waitFor();
  const scenario = (await sent).postDataJSON();
  assert.equal(scenario.free.length, 11);
  assert.ok(!scenario.free.includes("recompute"));
  assert.equal(await field(page, pointer).inputValue(), scenario.training.recompute, "the field shows the value of the scenario");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator(`[data-pointer="${pointer}"]:disabled`).waitFor();
  assert.ok(await free.isChecked(), "the edit is undone");
  expectNoFaults(page);
  await page.context().close();
});

test("all scenarios can be searched", async () => {
  const page = await fixture.open();
  await page.goto("/");
  await page.getByTestId("all-scenarios").locator("summary").click();
  const { entries } = await fixture.server.get("/gallery");
  const lines = page.locator(".scenario-list li");
  await lines.nth(entries.length - 1).waitFor();
  assert.equal(await lines.count(), entries.length);
  await page.getByTestId("all-scenarios-search").fill("github 32 HYDRAULIS 13b");
  await page.getByTestId("gallery-hydraulis-13b-32-github").waitFor();
  const words = ["github", "32", "hydraulis", "13b"];
  const describe = ({ title, summary, paper, scenario }) => [title, summary, paper?.title, paper?.place, scenario.model.name].join(" ").toLowerCase();
  const matching = entries.filter((entry) => words.every((word) => describe(entry).includes(word)));
  await lines.nth(matching.length).waitFor({ state: "detached" });
  assert.equal(await lines.count(), matching.length, "every word must match");
  for (const { slug } of matching) assert.equal(await page.locator(`.scenario-list [data-testid="gallery-${slug}"]`).count(), 1, slug);
  await page.getByTestId("all-scenarios-search").fill("xyzzy");
  await page.getByText("No scenario matches.").waitFor();
  assert.equal(await lines.count(), 0);
  expectNoFaults(page);
  await page.context().close();
});

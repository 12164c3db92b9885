// Studies of a PipeWeaver plan: charts, tables, cancellation, errors.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { fetchScenario, openReady, waitForPlanning } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";
import { waitForValue } from "./runs.mjs";

let page, outcome, path;
const fixture = useFixture(async ({ open, server }) => {
  page = await open();
  await openReady(page, "vlm-s-image-heavy");
  ({ outcome } = await fetchScenario(page, server));
  path = new URL(page.url()).pathname;
});

/** A study computes for at most 20 s, after the computations that are queued before it. */
const STUDY_TIMEOUT = { timeout: 60_000 };

async function unfold(card) {
  await card.scrollIntoViewIfNeeded();
  await card.locator("summary").first().click();
}

test("the search progress is drawn over rankings and over time, and listed in a table", async () => {
  assert.ok(outcome.results.some(({ planner }) => planner === "pipeweaver"));
  const card = page.getByTestId("card-search");
  assert.equal(await card.getByTestId("search-chart").count(), 0, "the study is not computed before the card is opened");
  await unfold(card);
  await card.getByTestId("search-chart").locator(".scatterlayer .trace").nth(4).waitFor({ state: "attached", ...STUDY_TIMEOUT });
  const names = await card.locator(".chart-legend li").allInnerTexts();
  assert.deepEqual(names.slice(0, 3), ["Monte-Carlo tree search", "Depth first", "Random"]);
  assert.match(names[3], /^tree search after swaps [\d.]+\ss$/);
  assert.match(names[4], /^lower bound of this replica [\d.]+\ss$/);
  const dashes = await card.locator(".chart-legend line").evaluateAll((lines) => lines.map((line) => line.getAttribute("stroke-dasharray")));
  assert.equal(new Set(dashes).size, 5, "lines differ without colour");
  const axis = card.locator(".xtitle");
  assert.equal(await axis.textContent(), "rankings tried");
  await card.getByRole("radio", { name: "By time" }).check();
  await card.getByText("seconds of search").waitFor();
  await card.getByTestId("search-table").locator("summary").click();
  const bests = await card.locator("tr[data-strategy] [data-value]").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));
  assert.equal(bests.length, 3);
  assert.ok(bests[0] <= bests[1] && bests[0] <= bests[2], `tree search is best: ${bests}`);
  expectNoFaults(page);
});

test("the study of sub-microbatch sizes marks the size of the plan", async () => {
  const card = page.getByTestId("card-sizes");
  await unfold(card);
  await card.getByTestId("sizes-caption").waitFor(STUDY_TIMEOUT);
  assert.match(await card.getByTestId("sizes-caption").innerText(), /The partitioner chose at most \d+ items of ViT 5B in a part: /);
  await card.getByTestId("sizes-table").locator("summary").click();
  const rows = await card.locator("tr[data-size] th").allInnerTexts();
  assert.ok(rows.length > 1 && rows.some((row) => row.endsWith("the plan's")), `${rows}`);
  const ring = await card.locator(".chart-legend li").last().innerText();
  assert.match(ring, /^size of the plan, \d+$/);
  expectNoFaults(page);
});

test("the memory table has a row for each plan", async () => {
  const card = page.getByTestId("card-memory");
  await card.getByTestId("memory-table").locator("summary").click();
  const rows = card.locator("tr[data-planner]");
  assert.equal(await rows.count(), outcome.results.filter(({ answer }) => answer.status === "planned").length);
  assert.match(await rows.first().innerText(), /GiB.*GiB.*(GiB|–)/s);
});

test("the actions of a rank are listed, and the execution plan can be downloaded", async () => {
  const card = page.getByTestId("card-execution-plan");
  await unfold(card);
  await card.getByTestId("execution-summary").waitFor(STUDY_TIMEOUT);
  assert.match(await card.getByTestId("execution-summary").innerText(), /^[\d,]+ actions on 4 ranks: .* transfers in .* batches\. Followed with .* buffers/);
  const [download] = await Promise.all([page.waitForEvent("download"), card.getByRole("link", { name: "All ranks as CSV" }).click()]);
  assert.match(download.suggestedFilename(), /^planscope-[a-z2-7]+-[a-z_0-9]+-0-execution\.csv$/);
  const count = Number((await card.getByTestId("execution-summary").innerText()).split(" ")[0].replaceAll(",", ""));
  const [head, ...lines] = (await readFile(await download.path(), "utf8")).trim().split("\n");
  assert.match(head, /^rank,\w+,\w+,action,/);
  assert.equal(lines.length, count, "a line for each action");
  const readActions = () => card.locator("tbody tr[data-action]").evaluateAll((rows) => rows.map((row) => row.dataset.action));
  for (const rank of ["3", "0"]) {
    await card.getByLabel("Rank whose list is shown").selectOption(rank);
    const expected = lines.map((line) => line.split(",")).filter(([of]) => of === rank).map((cells) => cells[3]);
    const isOfRank = (found) => found.length > 50 && found.every((action, index) => action === expected[index]);
    await waitForValue(readActions, isOfRank, `the actions of rank ${rank}, ${expected.slice(0, 20)}`);
  }
  expectNoFaults(page);
});

test("a study can be cancelled and repeated, and its failure is shown", async () => {
  const other = await fixture.open();
  await other.goto(path);
  await waitForPlanning(other);
  let answer = "hold";
  await other.route("**/studies/search?**", async (route) => {
    if (answer === "hold") return;
    if (answer === "go") return route.continue();
    const problem = { type: "/problems/no-study", title: "There is nothing to study", status: 422, detail: "nothing to split" };
    await route.fulfill({ status: 200, contentType: "application/json", body: JSON.stringify(problem) });
  });
  const card = other.getByTestId("card-search");
  await unfold(card);
  await card.getByRole("button", { name: "Cancel" }).click();
  await card.getByText("Cancelled.").waitFor();
  answer = "unreadable";
  await card.getByRole("button", { name: "Compute it" }).click();
  await card.getByRole("alert").getByText("The answer cannot be read").waitFor();
  answer = "go";
  await card.getByRole("button", { name: "Try again" }).click();
  await card.getByTestId("search-chart").waitFor(STUDY_TIMEOUT);
  await other.context().close();
});

test("studies do not overflow a narrow dark page", async () => {
  const narrow = await fixture.open({ scheme: "dark", width: 320, height: 800 });
  await narrow.goto(path);
  await waitForPlanning(narrow);
  const card = narrow.getByTestId("card-search");
  await card.locator("summary").first().focus();
  await narrow.keyboard.press("Enter");
  await card.getByTestId("search-chart").waitFor(STUDY_TIMEOUT);
  assert.deepEqual(await findOverflow(narrow), []);
  expectNoFaults(narrow);
  await narrow.context().close();
});

test("a scenario without a PipeWeaver plan has no studies", async () => {
  await openReady(page, "llama-2-7b-long-documents");
  assert.equal(await page.getByTestId("card-search").count(), 0);
});

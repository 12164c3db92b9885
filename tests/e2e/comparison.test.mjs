// Comparison of scenarios that are pinned, pasted or in the link. Pages of the papers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults } from "./browser.mjs";
import { fetchScenario, openReady, setNumber, waitForPlanning } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";

const fixture = useFixture();

test("a pinned scenario is compared during edits and in the link until it is removed", async () => {
  const page = await fixture.open();
  await openReady(page, "llama-2-7b-long-documents");
  const before = await fetchScenario(page, fixture.server);
  const card = page.getByTestId("card-comparison");
  await card.getByTestId("comparison-pin").click();
  await card.getByTestId("comparison-same").waitFor();

  await setNumber(page, "/workload/global_batch", 64);
  await waitForPlanning(page);
  const after = await fetchScenario(page, fixture.server);
  const changes = card.getByTestId("comparison-changes").locator("tbody tr");
  await changes.first().waitFor();
  assert.deepEqual(await changes.locator("th, td").allInnerTexts(), ["workload › global batch", "128", "64"]);
  const rows = card.getByTestId("comparison-figures").locator("tbody tr");
  assert.equal(await rows.count(), after.outcome.results.length);
  const time = (outcome) => outcome.results.find(({ planner }) => planner === "1f1b").answer.metrics.iteration_s;
  const change = 100 * (time(after.outcome) / time(before.outcome) - 1);
  const row = rows.filter({ has: page.locator("th", { hasText: /^1F1B$/ }) });
  const shown = (await row.locator("td").first().innerText()).replace("−", "-");
  assert.ok(change < -30, `half of the batch takes less time: ${change} %`);
  assert.match(shown, new RegExp(`${change.toPrecision(3)}\\s%$`), shown);
  assert.match(await card.getByTestId("comparison-explained").innerText(), /1F1B is [\d.]+× as fast as in the other scenario \(−.*computation −/);
  const chart = card.getByTestId("gantt-comparison");
  await page.waitForFunction((chart) => Number(chart.dataset.paintedSpans) > 0, await chart.elementHandle());

  await page.waitForFunction((short) => location.hash.includes(`cmp=${short}`), before.short);
  const elsewhere = await fixture.open({ scheme: "dark", width: 390 });
  await elsewhere.goto(page.url());
  await waitForPlanning(elsewhere);
  const changesElsewhere = elsewhere.getByTestId("comparison-changes").locator("tbody tr").locator("th, td");
  await changesElsewhere.first().waitFor();
  assert.deepEqual(await changesElsewhere.allInnerTexts(), ["workload › global batch", "128", "64"]);
  assert.deepEqual(await findSeriousViolations(elsewhere), []);
  expectNoFaults(elsewhere);
  await elsewhere.context().close();

  await card.getByTestId("comparison-stop").click();
  await card.getByTestId("comparison-changes").waitFor({ state: "detached" });
  await page.waitForFunction(() => !location.hash.includes("cmp="));
  expectNoFaults(page);
  await page.context().close();
});

test("a pasted link selects the scenario of the comparison, and invalid text has an error", async () => {
  const page = await fixture.open({ refusals: true });
  await page.goto("/new?ready=llama-2-7b-long-documents");
  await waitForPlanning(page);
  const link = page.url();
  await page.goto("/new?ready=gpt-3-175b-uniform");
  await waitForPlanning(page);
  const card = page.getByTestId("card-comparison");
  const field = card.getByTestId("comparison-link-field");
  await field.fill("not a link");
  await field.blur();
  await card.getByRole("alert").waitFor();
  await field.fill(link);
  await field.blur();
  await card.getByTestId("comparison-figures").waitFor();
  await field.fill("/s/zzzzzzzzzzzz");
  await field.blur();
  await card.locator(".notice.bad").waitFor();
  await page.context().close();
});

test("every paper has a page with its scenarios and figures, and old links to the list open this page", async () => {
  const page = await fixture.open();
  await page.goto("/papers");
  const { papers } = await fixture.server.get("/papers");
  for (const { id, sets } of papers) {
    await page.getByTestId(`paper-card-${id}`).click();
    await page.waitForURL(`**/papers/${id}`);
    await page.getByTestId(`set-${id}-${sets[0].id}`).waitFor();
    assert.equal(await page.locator("article.set").count(), sets.length);
    await page.getByTestId("all-scenarios").locator("li").first().waitFor({ state: "attached" });
    await page.goBack();
    await page.getByTestId(`paper-card-${id}`).waitFor();
  }
  const { id, sets } = papers.at(-1);
  await page.goto("/");
  await page.goto(`/papers#${id}-${sets.at(-1).id}`);
  await page.waitForURL(`**/papers/${id}#*`);
  await page.waitForFunction((place) => document.getElementById(place)?.getBoundingClientRect().top < innerHeight, `${id}-${sets.at(-1).id}`);
  await page.locator("details.all-scenarios > summary").click();
  await page.goto(`/papers/nothing`);
  await page.getByText("Unknown paper").waitFor();
  expectNoFaults(page);
  await page.context().close();
});

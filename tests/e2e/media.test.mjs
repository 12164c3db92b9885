// Rows with images: upload, selection of a preprocessing rule, planning with DFLOP.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { choosePlanners, fetchScenario, field, readRanking, setNumber, waitForPlanning } from "./explore.mjs";
import { root } from "./server.mjs";
import { screenshots, useFixture } from "./fixture.mjs";

const FILE = join(root, "tests/e2e/fixtures/media_rows.jsonl");

const fixture = useFixture();

const card = (page) => page.getByTestId("import-card");

/** Selects a preprocessing rule and waits until the report contains it. */
async function chooseRule(page, rule, title) {
  await page.getByTestId("upload-preprocessing").selectOption(rule);
  await card(page).getByTestId("import-report").getByText(title).waitFor();
}

/** Stores the dataset of the card. */
async function storeDataset(page) {
  await page.getByTestId("store-dataset").click();
  await card(page).waitFor({ state: "detached" });
}

test("a scenario is planned with the selected rule for images", async () => {
  const page = await fixture.open();
  await page.goto("/");
  await page.getByTestId("new-scenario").click();
  await waitForPlanning(page, ["done", "infeasible", "error"]);
  await page.getByTestId("model-preset").selectOption("internvl3-8b");
  await page.getByTestId("cluster-preset").selectOption("a100-80gb");
  await setNumber(page, "/cluster/nodes", 1);
  for (const degree of ["/layout/tensor", "/layout/pipeline"]) await setNumber(page, degree, "");
  await setNumber(page, "/workload/context_length", 32768);
  await setNumber(page, "/workload/global_batch", 32);
  await choosePlanners(page, ["1f1b"]);
  await field(page, "/planners/dflop").setChecked(true);
  await field(page, "/planners/best").setChecked(false);

  await page.getByTestId("upload").setInputFiles(FILE);
  const advice = card(page).getByTestId("import-advice");
  await advice.waitFor();
  assert.match(await advice.innerText(), /internvl/);
  await storeDataset(page);
  const plain = (await fixture.server.get("/datasets")).datasets[0];

  await page.getByTestId("upload").setInputFiles(FILE);
  await chooseRule(page, "internvl", "Encoder, with InternVL");
  const report = await card(page).getByTestId("import-report").innerText();
  assert.match(report, /36 samples have encoder items, 4 have none/);
  assert.match(report, /Not read by InternVL: 2 clips of sound/);
  await storeDataset(page);
  await waitForPlanning(page);
  const first = await fetchScenario(page, fixture.server);
  const tiled = (await fixture.server.get("/datasets")).datasets[0];
  assert.equal(tiled.shaped.preprocessing, "internvl");
  assert.equal(first.scenario.workload.samples.id, tiled.id);
  assert.notEqual(tiled.id, plain.id);
  assert.ok((await readRanking(page)).dflop.iteration_s, "DFLOP has a plan");

  await page.getByTestId("upload").setInputFiles(FILE);
  await chooseRule(page, "llava-onevision", "Encoder, with LLaVA-OneVision");
  await storeDataset(page);
  await page.getByTestId("workload-note").getByText("LLaVA-OneVision").waitFor();
  await waitForPlanning(page);
  const second = await fetchScenario(page, fixture.server);
  const longest = (answer) => answer.outcome.workload.sample_tokens.max;
  assert.ok(longest(second) > longest(first), "the same images have more tokens");
  const seconds = (answer) => answer.outcome.results.find(({ planner }) => planner === "dflop").answer.metrics.iteration_s;
  assert.notEqual(seconds(second), seconds(first));
  expectNoFaults(page);
  await page.context().close();
});

test("the page of datasets shows encoder items and lengths", async () => {
  for (const [scheme, width] of [["light", 1440], ["dark", 390]]) {
    const page = await fixture.open({ scheme, width });
    await page.goto("/datasets");
    await page.getByTestId("upload-preprocessing").selectOption("qwen-vl");
    await page.getByTestId("upload").setInputFiles(FILE);
    await card(page).getByTestId("import-report").getByText("Encoder, with Qwen-VL").waitFor();
    await storeDataset(page);
    await page.getByText("backbone: mean").first().waitFor();
    await page.getByText("Qwen-VL: mean").first().waitFor();
    await page.screenshot({ path: join(screenshots, `datasets-${width}-${scheme}.png`), fullPage: true });
    expectNoFaults(page);
    await page.context().close();
  }
});

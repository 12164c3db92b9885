// Live runs: created on the page, sent with the displayed commands, compared with a plan and with other runs.
import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { openReady } from "./explore.mjs";
import { chooseScenario, countDrawnPoints, fetchPoints, runShell, startShell, waitForValue } from "./runs.mjs";
import { root } from "./server.mjs";
import { readmeScreenshots, screenshots, useFixture } from "./fixture.mjs";

let folder, scenario, log;
/** Identifiers of the run that the shell sends, and of the run that is imported. */
let sentRun, importedRun;
const fixture = useFixture(async ({ open, server }) => {
  folder = mkdtempSync(join(tmpdir(), "planscope-log-"));
  log = readFileSync(findLogFile());
  const page = await open();
  await openReady(page, "llama-2-7b-long-documents");
  await page.getByTestId("save").click();
  await page.getByTestId("save").getByText("Saved", { exact: true }).waitFor();
  await page.context().close();
  scenario = (await server.get("/scenarios")).scenarios[0].id;
});
after(async () => {
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Returns the path of the log of a real job if PLANSCOPE_DATA is set, otherwise of the fixture. */
function findLogFile() {
  const data = process.env.PLANSCOPE_DATA;
  if (!data) return join(root, "tests/e2e/fixtures/megatron_run.log");
  const real = join(data, "data/logs/meg_ds_3d_gpt2_perf_n16-ds-on.out");
  assert.ok(existsSync(real), `PLANSCOPE_DATA does not contain ${real}`);
  return real;
}

test("a run that is sent with the displayed commands and interrupted has the same points as an import", async (t) => {
  t.diagnostic(`${process.env.PLANSCOPE_DATA ? "the log of a real job" : "the fixture"}, ${log.length} bytes`);
  const page = await fixture.open();
  await page.goto("/");
  await page.locator("header").getByRole("link", { name: "Runs", exact: true }).click();
  await page.getByTestId("run-name").fill("Nightly");
  await chooseScenario(page, scenario, "llama");
  await page.locator('[data-testid="choose-plan"] option[value="1f1b"]').waitFor({ state: "attached" });
  await page.getByTestId("choose-plan").selectOption("1f1b");
  await page.getByTestId("open-run").click();
  const streamed = await page.getByTestId("command-streamed").innerText();
  const looped = await page.getByTestId("command-looped").innerText();
  const finish = await page.getByTestId("command-finish").innerText();
  assert.match(streamed, /^while sleep 1; do tail .*curl .*Bearer \S+/);
  await page.getByTestId("command-looped").locator("xpath=../..").getByRole("button").click();
  await page.getByRole("button", { name: /^Copied: / }).waitFor();
  assert.equal((await page.evaluate(() => navigator.clipboard.readText())).trim(), looped.trim(), "the button copies the displayed command");
  sentRun = await page.getByTestId("run-created").getAttribute("data-run");
  await page.getByTestId("run-link").click();
  await page.waitForURL(`**/runs/${sentRun}`);
  await page.getByText("No step has arrived yet").waitFor();
  assert.equal(await page.getByTestId("run-state").locator(".state").getAttribute("data-state"), "waiting");

  // The streaming command sends half of the log, and is killed in the middle of a line. The loop sends the rest.
  const file = join(folder, "train.log");
  const steps = [...log.toString("latin1").matchAll(/elapsed time per iteration/g)].map(({ index }) => index);
  const [sixth, half] = [steps[Math.floor(steps.length / 6)], steps[Math.floor(steps.length / 2)]];
  writeFileSync(file, log.subarray(0, sixth));
  const stream = startShell(streamed, folder);
  try {
    await waitForValue(() => countDrawnPoints(page, "step"), (count) => count > 0, "points appear");
    const first = await countDrawnPoints(page, "step");
    appendFileSync(file, log.subarray(sixth, half));
    await waitForValue(() => countDrawnPoints(page, "step"), (count) => count > first, "more points appear");
    await waitForValue(async () => (await fixture.server.get(`/runs/${sentRun}`)).summary.bytes, (bytes) => bytes === half, "half of the log is stored");
  } finally {
    await stream.kill();
  }
  assert.equal(await page.getByTestId("feed-mode").getAttribute("data-mode"), "streaming");
  assert.equal(await page.getByTestId("run-state").locator(".state").getAttribute("data-state"), "live");
  const before = await countDrawnPoints(page, "step");
  appendFileSync(file, log.subarray(half));
  const loop = startShell(looped, folder);
  try {
    await waitForValue(async () => (await fixture.server.get(`/runs/${sentRun}`)).summary.bytes, (bytes) => bytes === log.length, "the log is stored", 60_000);
    await waitForValue(() => countDrawnPoints(page, "step"), (count) => count > before, "the chart gets more points");
  } finally {
    await loop.kill();
  }
  runShell(finish, folder);
  await page.locator('[data-testid="run-state"] [data-state="ended"]').waitFor();

  await page.goto("/runs");
  await page.getByTestId("import-log").setInputFiles(findLogFile());
  importedRun = await page.getByTestId("imported").getAttribute("data-run");
  await page.getByTestId("imported").getByTestId("log-report").getByText(/lines parsed/).waitFor();
  const points = await fetchPoints(fixture.server, sentRun);
  assert.deepEqual(points, await fetchPoints(fixture.server, importedRun), "the streamed and the imported run have the same points");
  assert.ok(points.length > 40, `${points.length} points`);
  expectNoFaults(page);
  await page.context().close();
});

test("a run of another job has no differences to the plan, and one click corrects the scenario", async () => {
  const page = await fixture.open();
  const log = readFileSync(join(root, "tests/e2e/fixtures/megatron_run.log"));
  const headers = { origin: fixture.server.url };
  const run = (await (await fetch(`${fixture.server.url}/api/v1/runs/import`, { method: "POST", headers, body: log })).json()).summary.id;
  await page.goto(`/runs/${run}`);
  // The search field accepts a link to the scenario.
  await page.getByTestId("choose-scenario").fill(`${fixture.server.url}/s/${scenario.slice(0, 12)}#i=1`);
  await page.locator(`[data-testid="choose-scenario"][data-scenario="${scenario}"]`).waitFor();
  const other = page.getByTestId("other-job");
  await other.waitFor({ timeout: 60_000 });
  assert.match(await other.locator('tr[data-check="global-batch"]').innerText(), /512/);
  assert.match(await page.getByTestId("figures-summary").innerText(), /different jobs/);
  assert.equal(await page.locator('[data-metric="error"]').count(), 0, "no differences");
  assert.equal(await page.getByTestId("calibrate").count(), 0);
  assert.equal(await page.locator('[data-testid="chart-step"]').getAttribute("data-levels"), "0", "the prediction of another job is not drawn");
  await page.screenshot({ path: join(screenshots, "other-job-1440-light.png"), fullPage: true });
  await page.getByTestId("correct-scenario").click();
  await page.getByTestId("same-job").waitFor({ timeout: 120_000 });
  await other.waitFor({ state: "detached" });
  const corrected = (await fixture.server.get(`/runs/${run}`)).summary.scenario;
  assert.notEqual(corrected, scenario);
  assert.equal((await fixture.server.get(`/scenarios/${corrected}`)).scenario.workload.global_batch, 512);
  assert.match(await page.getByTestId("same-job").innerText(), /global batch size.*Not checked: tokens per step/s);

  const comparison = await fixture.server.get(`/runs/${run}/comparison`);
  const step = comparison.predictions.find(({ quantity }) => quantity === "step_time");
  const row = page.locator('[data-testid="figures"] tr[data-quantity="step"]');
  const sign = step.error < 0 ? "−" : "+";
  assert.ok((await row.locator('[data-metric="error"]').innerText()).startsWith(sign), await row.innerText());
  assert.match(await page.getByTestId("figures-summary").innerText(), /A step takes .* predicted .* inside the band: [\d,]+ of [\d,]+/);
  await page.locator('[data-testid="chart-step"][data-levels="2"]').waitFor();
  const levels = page.getByTestId("chart-step");
  await page.getByTestId("plan-interleaved").check();
  await page.locator('[data-testid="chart-step"][data-levels="3"]').waitFor();
  assert.match(await levels.innerText(), /interleaved/i);
  assert.equal(new URL(page.url()).searchParams.get("plans"), "interleaved");
  await page.reload();
  await page.locator('[data-testid="chart-step"][data-levels="3"]').waitFor();
  assert.equal(await page.getByTestId("plan-interleaved").isChecked(), true, "the address contains the selection");
  expectNoFaults(page);
  await page.context().close();
});

test("the scenario of a run is selected by text, by keyboard and by link", async () => {
  const page = await fixture.open();
  await page.goto("/runs");
  const field = page.getByTestId("choose-scenario");
  const offers = page.getByTestId("scenario-offers");
  await field.click();
  await offers.getByText("Saved scenarios").waitFor();
  await offers.getByText("Gallery").waitFor();
  assert.match(await offers.locator(`[data-offer="${scenario}"] .offer-figure`).innerText(), /s, /, "the offer has the main figure of the scenario");
  await field.fill("gpt-3 uniform");
  await offers.locator('[data-offer="gpt-3-175b-uniform"]').waitFor();
  await field.press("ArrowDown");
  await field.press("ArrowUp");
  await field.press("Enter");
  await page.locator('[data-testid="choose-plan"] option').nth(1).waitFor({ state: "attached", timeout: 120_000 });
  assert.equal((await fixture.server.get(`/scenarios/${await field.getAttribute("data-scenario")}`)).kept, false, "the selected scenario is a draft");
  await page.getByTestId("choose-none").click();
  assert.equal(await field.getAttribute("data-scenario"), null);
  await field.fill("/s/aaaaaaaaaaaa");
  await page.getByTestId("choose-failure").getByText(/opens no scenario/).waitFor();
  await field.fill("/c/#z1.AAAA");
  await page.getByTestId("choose-failure").getByText(/damaged/).waitFor();
  await page.context().close();
});

test("a second run is drawn in the charts of the first, and the table contains both", async () => {
  const page = await fixture.open();
  await page.goto(`/runs/${sentRun}`);
  const alone = await waitForValue(() => countDrawnPoints(page, "step"), (count) => count > 0, "points");
  await page.getByTestId("add-run").focus();
  await page.locator(`[data-testid="add-run"] option[value="${importedRun}"]`).waitFor({ state: "attached" });
  await page.getByTestId("add-run").selectOption(importedRun);
  await page.getByTestId("compared").locator("tbody tr").nth(1).waitFor();
  await waitForValue(() => countDrawnPoints(page, "step"), (count) => count > alone, "points of the second run");
  assert.match((await page.getByTestId("compared").locator("tbody tr").nth(1).innerText()).replace(/\s/g, " "), / ([+−]0\.\d\d|0) %/, "the difference of two runs of the same log is below 1 %");
  assert.equal(new URL(page.url()).searchParams.get("runs"), importedRun);
  await page.getByTestId("show-loss").uncheck();
  await page.getByTestId("chart-loss").waitFor({ state: "detached" });
  await page.reload();
  await page.getByTestId("compared").locator("tbody tr").nth(1).waitFor();
  assert.equal(await page.getByTestId("chart-loss").count(), 0);
  assert.equal(await page.getByTestId("show-loss").isChecked(), false);
  expectNoFaults(page);
  await page.context().close();
});

test("without event streams, the page polls", async () => {
  const page = await fixture.open({ refusals: true });
  await page.route("**/events?*", (route) => route.fulfill({ status: 404, body: "" }));
  const opened = await (await fetch(`${fixture.server.url}/api/v1/runs`, { method: "POST", body: '{"name": "Polled"}' })).json();
  await page.goto(opened.url);
  await page.locator('[data-testid="feed-mode"][data-mode="polling"]').waitFor({ state: "attached" });
  const answer = await fetch(`${fixture.server.url}/api/v1/runs/${opened.run}/log?offset=0`, {
    method: "PUT",
    headers: { authorization: `Bearer ${opened.ingest_token}` },
    body: log,
  });
  assert.ok(answer.ok, `${answer.status} ${await answer.text()}`);
  await waitForValue(() => countDrawnPoints(page, "step"), (count) => count > 0, "points arrive without an event stream");
  expectNoFaults(page);
  await page.context().close();
});

test("runs are renamed, tagged, found, deleted and restored", async () => {
  const page = await fixture.open();
  await page.goto(`/runs/${sentRun}`);
  await page.getByTestId("run-title").fill("Nightly of the 7B");
  await page.getByTestId("run-title").press("Enter");
  await page.getByTestId("run-tags").fill("a100, nightly");
  await page.getByTestId("run-tags").press("Tab");
  await page.getByTestId("run-note").fill("with offload");
  await page.getByTestId("run-note").press("Tab");
  await waitForValue(async () => (await fixture.server.get(`/runs/${sentRun}`)).summary.note, (note) => note === "with offload", "the note is stored");
  await page.goto("/runs");
  const rows = page.getByTestId("runs").locator("tbody tr[data-id]");
  await page.getByTestId("runs-tags").getByRole("button", { name: "nightly" }).click();
  await waitForValue(() => rows.count(), (count) => count === 1, "one run has the tag");
  assert.match(await rows.first().innerText(), /Nightly of the 7B[\s\S]*with offload/);
  await page.getByTestId("runs-search").fill("nothing of this name");
  await page.getByText("Nothing matches.").waitFor();
  await page.getByTestId("runs-search").fill("7B");
  await rows.first().waitFor();
  await page.getByRole("button", { name: "Delete Nightly of the 7B" }).click();
  await waitForValue(() => rows.count(), (count) => count === 0, "the run is not in the list");
  await waitForValue(async () => (await fetch(`${fixture.server.url}/api/v1/runs/${sentRun}`)).status, (status) => status === 410, "the run is deleted");
  await page.getByRole("button", { name: "Undo" }).click();
  await waitForValue(() => rows.count(), (count) => count === 1, "the run is in the list again");
  assert.equal((await fixture.server.get(`/runs/${sentRun}`)).summary.name, "Nightly of the 7B");
  expectNoFaults(page);
  await page.context().close();
});

test("an example log is replayed as a live run", async () => {
  const page = await fixture.open();
  await page.goto("/runs");
  await page.getByTestId("replay-example").click();
  await page.waitForURL(/\/runs\/[a-z2-7]+/, { timeout: 60_000 });
  await page.getByTestId("run-state").getByText("Live").waitFor();
  const run = new URL(page.url()).pathname.split("/").pop();
  await waitForValue(async () => (await fixture.server.get(`/runs/${run}`)).summary.points, (points) => points > 3, "first points");
  await page.screenshot({ path: join(screenshots, "replay-1440-light.png") });
  expectNoFaults(page);
  await page.context().close();
});

/** Creates the log of a synthetic job with the step times of the plan, 2 % slower, with noise. */
function createLog(steps, { iterations }, globalBatch) {
  let seed = 7;
  const noise = () => ((seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648) * 2 - 1;
  const line = (_, at) => {
    const ms = 1000 * iterations[at % iterations.length].iteration_s * (1.02 + 0.02 * noise());
    const [forward, backward] = [0.31, 0.62].map((share) => (ms * share * (1 + 0.02 * noise())).toFixed(2));
    const loss = (2.1 + 8.2 * Math.exp(-at / 45) + 0.04 * noise()).toFixed(6);
    const norm = (0.6 + 1.4 * Math.exp(-at / 20) + 0.1 * noise()).toFixed(3);
    const facts = [
      `iteration ${String(at + 1).padStart(8)}/     400`, `consumed samples: ${(at + 1) * globalBatch}`,
      `elapsed time per iteration (ms): ${ms.toFixed(1)}`, "learning rate: 1.500E-04", `global batch size: ${globalBatch}`,
      `lm loss: ${loss}`, `grad norm: ${norm}`,
    ];
    return ` ${facts.join(" | ")} |\ntime (ms) | forward-compute: ${forward} | backward-compute: ${backward} | optimizer: ${(ms * 0.004).toFixed(2)}\n`;
  };
  return Array.from({ length: steps }, line).join("");
}

test("a job that runs as planned is drawn live inside the predicted interval", async () => {
  const headers = { origin: fixture.server.url, "content-type": "application/json" };
  const request = { name: "Llama-2 7B, long documents", scenario, plan: "wait_free_cyclic" };
  const opened = await (await fetch(`${fixture.server.url}/api/v1/runs`, { method: "POST", headers, body: JSON.stringify(request) })).json();
  const { outcome } = await fixture.server.get(`/scenarios/${scenario}/outcome`);
  const plan = outcome.results.find(({ planner }) => planner === request.plan).answer;
  const { scenario: definition } = await fixture.server.get(`/scenarios/${scenario}`);
  const text = createLog(140, plan, definition.workload.global_batch);
  const log = `${fixture.server.url}/api/v1/runs/${opened.run}/log`;
  const put = async (from, to) => {
    const body = text.slice(from, to);
    const authorization = `Bearer ${opened.ingest_token}`;
    const answer = await fetch(`${log}?offset=${from}`, { method: "PUT", headers: { authorization }, body });
    assert.ok(answer.ok, `${answer.status} ${await answer.text()}`);
  };
  const half = text.indexOf("\n", text.length / 2) + 1;
  await put(0, half);
  for (const scheme of ["light", "dark"]) {
    const page = await fixture.open({ scheme });
    await page.goto(`/runs/${opened.run}`);
    await waitForValue(() => countDrawnPoints(page, "step"), (count) => count >= 60, "the first half");
    if (scheme === "light") await put(half, text.length);
    // The last step has no point until the next step begins.
    await waitForValue(() => countDrawnPoints(page, "step"), (count) => count >= 139, "the second half");
    assert.equal(await page.getByTestId("run-state").locator(".state").getAttribute("data-state"), "live");
    const inside = /inside the band: (\d+) of (\d+)/.exec(await page.getByTestId("figures-summary").innerText());
    assert.ok(Number(inside?.[1]) > 0.9 * Number(inside?.[2]), `${inside?.[0]}`);
    await page.getByText(/step 140 of 400/).waitFor();
    if (readmeScreenshots) await page.screenshot({ path: join(readmeScreenshots, `run-${scheme}.png`) });
    expectNoFaults(page);
    await page.context().close();
  }
});

for (const scheme of ["light", "dark"]) {
  test(`pages of runs and profiles have no serious accessibility violation and no overflow, ${scheme}`, async () => {
    const found = [];
    const pages = [["runs", "/runs"], ["run", `/runs/${sentRun}?runs=${importedRun}`], ["profiles", "/profiles"]];
    for (const width of [1440, 390, 320]) {
      const page = await fixture.open({ scheme, width, height: width > 1000 ? 1000 : 844 });
      for (const [name, path] of pages) {
        await page.goto(path);
        await page.locator("main").waitFor();
        await page.waitForFunction(() => !document.querySelector(".skeleton"));
        if (name === "run") await waitForValue(() => countDrawnPoints(page, "step"), (count) => count > 0, "charts");
        found.push(...(await findOverflow(page)).map((what) => `${name} at ${width}: ${what}`));
        if (width === 1440) found.push(...(await findSeriousViolations(page)).map((words) => `${name}: ${words}`));
        if (width !== 320) await page.screenshot({ path: join(screenshots, `${name}-${width}-${scheme}.png`), fullPage: width < 1000 });
      }
      expectNoFaults(page);
      await page.context().close();
    }
    assert.deepEqual(found, []);
  });
}


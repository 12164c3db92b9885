// Check of a training configuration: verdict, memory, changes in the syntax of the configuration, slow runs, first page.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { readmeScreenshots, screenshots, useFixture } from "./fixture.mjs";
import { waitForValue } from "./runs.mjs";

const fixture = useFixture();

/** A study computes for at most 20 s, after the computations that are queued before it. */
const STUDY_TIMEOUT = { timeout: 60_000 };

const JOB = `[model]
name = "llama3"
flavor = "8B"

[training]
local_batch_size = 2
seq_len = 8192
secret_key = "hunter2"

[parallelism]
tensor_parallel_degree = 1

[activation_checkpoint]
mode = "none"
`;

const badge = (page) => page.getByTestId("verdict");
const rows = (page) => page.getByTestId("check-changes").locator(".check-list > li");
const waitForChanges = (page) => rows(page).first().waitFor(STUDY_TIMEOUT);

async function check(page, text) {
  await page.goto("/check");
  await page.getByTestId("check-text").fill(text);
  await page.getByTestId("check-devices").fill("8");
  await page.getByTestId("check-text").press("Control+Enter");
  await badge(page).waitFor(STUDY_TIMEOUT);
}

test("a job fits after a change in the syntax of its file is applied, and undo restores the file", async () => {
  const page = await fixture.open();
  await check(page, JOB);
  assert.match(await badge(page).innerText(), /Does not fit[\s\S]*GiB needed on rank 0/);
  await page.getByTestId("check-memory-card").locator(".chart-stacked").waitFor();
  assert.match(await page.getByTestId("check-read").innerText(), /training\.secret_key/);
  assert.ok(!(await page.locator("main .check-columns").innerText()).includes("hunter2"), "values of unknown keys are not returned");
  await waitForChanges(page);
  const microbatch = rows(page).filter({ hasText: "local_batch_size = 1" }).first();
  assert.match(await microbatch.innerText(), /6\s*local_batch_size = 1/);
  const best = page.getByTestId("check-best");
  await best.waitFor(STUDY_TIMEOUT);
  assert.equal(await best.locator(".slower").count(), 0, "the best plan has at most 10 % risk");
  const safe = await best.innerText();
  await page.getByTestId("max-risk").selectOption("0");
  await waitForValue(() => best.innerText().catch(() => safe), (text) => text !== safe, "another plan without a limit");
  await page.getByTestId("max-risk").selectOption("10");
  await waitForValue(() => best.innerText().catch(() => ""), (text) => text === safe, "the first plan again");
  await page.screenshot({ path: join(screenshots, "check-does-not-fit-light.png"), fullPage: true });
  assert.deepEqual(await findSeriousViolations(page), []);

  await rows(page).getByRole("button", { name: "Apply" }).first().click();
  await page.locator(".verdict-badge:not(.not)").waitFor(STUDY_TIMEOUT);
  assert.notEqual(await page.getByTestId("check-text").inputValue(), JOB);
  assert.match(await page.getByTestId("check-interval").innerText(), /80 %: [\d.]+.s to [\d.]+.s/);
  const mfu = () => page.getByTestId("check-mfu").innerText();
  const dense = await mfu();
  assert.match(dense, /TFLOP\/s, MFU [\d.]+.%/);
  await page.getByTestId("check-mfu-formula").selectOption("1 sparse");
  assert.ok(parseFloat((await mfu()).split("MFU ")[1]) < 0.5 * parseFloat(dense.split("MFU ")[1]), "half of the attention scores and twice the peak");
  await page.getByTestId("check-undo").click();
  await page.locator(".verdict-badge.not").waitFor(STUDY_TIMEOUT);
  assert.equal(await page.getByTestId("check-text").inputValue(), JOB);
  expectNoFaults(page);
  await page.context().close();
});

test("an example has intervals, a combination of changes and a faster plan on one axis", async () => {
  for (const scheme of ["light", "dark"]) {
    const page = await fixture.open({ scheme });
    await page.goto("/check");
    await page.getByTestId("check-devices").fill("64");
    await page.getByTestId("example-torchtitan").click();
    await badge(page).waitFor(STUDY_TIMEOUT);
    await page.getByTestId("check-together").waitFor(STUDY_TIMEOUT);
    assert.match(await page.getByTestId("check-together").innerText(), /Changes \d+, .* together: [\d.]+.ms/);
    await page.getByTestId("check-best").waitFor(STUDY_TIMEOUT);
    assert.match(await page.getByTestId("check-best").innerText(), /^[\d.]+.ms \(−[\d.]+.ms, −[\d.]+.%\)/);
    assert.match(await page.getByTestId("check-best").innerText(), /peak [\d.]+.GiB/);
    assert.equal(await page.locator('canvas[data-testid^="gantt-"]').count() > 0, true);
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: join(screenshots, `check-example-${scheme}.png`), fullPage: true });
    if (readmeScreenshots) await page.screenshot({ path: join(readmeScreenshots, `check-${scheme}.png`) });
    expectNoFaults(page);
    await page.context().close();
  }
});

test("a measured step is compared with the prediction", async () => {
  const page = await fixture.open({ scheme: "dark" });
  await check(page, JOB.replace('"none"', '"full"'));
  await waitForChanges(page);
  await page.getByTestId("measured").fill("6");
  await page.getByTestId("explain-slowness").click();
  const causes = page.getByTestId("check-causes").locator("tbody tr");
  await causes.first().waitFor(STUDY_TIMEOUT);
  assert.match(await page.getByTestId("check-slowness").innerText(), /(slower than|as long as) predicted, (but inside|outside) the 80 % interval/);
  assert.match(await causes.first().innerText(), /nccl-tests|trace|throttle|dtype/);
  await page.screenshot({ path: join(screenshots, "check-slow-dark.png"), fullPage: true });
  await page.getByTestId("measured").fill("0.001");
  await page.getByTestId("explain-slowness").click();
  await page.getByText("above the peak of the devices").waitFor(STUDY_TIMEOUT);
  expectNoFaults(page);
  await page.context().close();
});

test("an invalid number has an error at its field, and a pasted log is recognised", async () => {
  const page = await fixture.open({ refusals: true });
  await check(page, JOB.replace('"none"', '"full"'));
  for (const wrong of ["12.5", "-8"]) {
    await page.getByTestId("check-devices").fill(wrong);
    await page.getByRole("alert").getByText("Enter a whole number from 1 to 131,072").waitFor();
    assert.equal(await page.getByTestId("check").isDisabled(), true, wrong);
  }
  await page.getByTestId("check-devices").fill("8");
  const measured = page.getByTestId("check-slowness");
  for (const [wrong, message] of [["22,5", "decimal point"], ["abc", "Enter a number, for example 22.5"], ["0", "above 0"]]) {
    await page.getByTestId("measured").fill(wrong);
    await measured.getByRole("alert").getByText(message).waitFor();
    assert.equal(await page.getByTestId("explain-slowness").isDisabled(), true, wrong);
  }
  await page.getByTestId("measured").fill("");
  assert.equal(await measured.getByRole("alert").count(), 0);
  await waitForChanges(page);
  const step = (number) =>
    ` iteration ${number}/ 100 | consumed samples: ${8 * number} | elapsed time per iteration (ms): 900.0 | ` +
    `learning rate: 1.000E-04 | global batch size: 8 | lm loss: 2.0E+00 |\n`;
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByTestId("check-text").fill(step(1) + step(2) + step(3));
  await page.getByTestId("check").click();
  await page.getByRole("alert").getByText("This is the log of a run").or(page.getByRole("alert").getByText("this is the log of a run")).first().waitFor(STUDY_TIMEOUT);
  expectNoFaults(page);
  await page.context().close();
});

test("the timers of a log are compared with the prediction", async () => {
  const arguments_ =
    "--num-layers 8 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 " +
    "--global-batch-size 8 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --bf16 --vocab-size 50257";
  const log = (batch) =>
    Array.from({ length: 30 }, (_, step) =>
      ` iteration ${step + 1}/ 1000 | consumed samples: ${(step + 1) * batch} | elapsed time per iteration (ms): 900.0 | ` +
      `learning rate: 1.000E-04 | global batch size: ${batch} | lm loss: 2.0E+00 |\n` +
      "time (ms) | forward-compute: 40.00 | backward-compute: 700.00 | backward-params-all-reduce: 2.00 | optimizer: 5.00\n",
    ).join("");
  const page = await fixture.open({ scheme: "light", refusals: true });
  await check(page, arguments_);
  await waitForChanges(page);
  const open = (batch) =>
    page.getByTestId("check-log").setInputFiles({ name: "run.log", mimeType: "text/plain", buffer: Buffer.from(log(batch)) });
  await open(8);
  await page.getByTestId("log-of-same-job").waitFor(STUDY_TIMEOUT);
  const card = page.getByTestId("check-slowness");
  assert.match(await card.innerText(), /Backward compute[\s\S]*700.ms/i);
  assert.match(await card.innerText(), /(slower than|as long as) predicted, outside the 80 % interval/);
  await page.screenshot({ path: join(screenshots, "check-log-light.png"), fullPage: true });
  assert.deepEqual(await findSeriousViolations(page), []);
  await open(64);
  await page.getByTestId("log-of-other-job").waitFor(STUDY_TIMEOUT);
  assert.match(await card.innerText(), /Global batch/i);
  assert.equal(await page.getByTestId("check-causes").count(), 0);
  await page.getByTestId("check-log").setInputFiles({ name: "a.log", mimeType: "text/plain", buffer: Buffer.from("nothing\n") });
  await card.getByText("no step of a known trainer").waitFor(STUDY_TIMEOUT);
  expectNoFaults(page);
  await page.context().close();
});

test("the first page checks a pasted configuration, on a narrow page", async () => {
  const page = await fixture.open({ width: 390, height: 844 });
  await page.goto("/");
  await page.getByTestId("first-check-text").fill(JOB.replace('"none"', '"full"'));
  await page.getByTestId("first-check").click();
  await badge(page).waitFor(STUDY_TIMEOUT);
  assert.equal(new URL(page.url()).pathname, "/check");
  await waitForChanges(page);
  assert.deepEqual(await findOverflow(page), []);
  await page.screenshot({ path: join(screenshots, "check-fits-light-390.png"), fullPage: true });
  assert.deepEqual(await findSeriousViolations(page), []);
  await page.reload();
  await badge(page).waitFor(STUDY_TIMEOUT);
  const restored = await page.getByTestId("check-text").inputValue();
  assert.equal(restored, JOB.replace('"none"', '"full"').replace('secret_key = "hunter2"', ""), "the tab has the text without credentials");
  expectNoFaults(page);
  await page.context().close();
});

test("a file without a configuration has an error, and several files form one job", async () => {
  const page = await fixture.open({ refusals: true });
  await page.goto("/check");
  await page.getByTestId("check-text").fill("hello");
  await page.getByTestId("check").click();
  await page.getByRole("alert").getByText("The configuration file cannot be read").waitFor(STUDY_TIMEOUT);
  const model = { model_type: "llama", hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, num_attention_heads: 32, vocab_size: 32000 };
  const zero = { zero_optimization: { stage: 3 }, train_micro_batch_size_per_gpu: 1, gradient_accumulation_steps: 4, bf16: { enabled: true } };
  await page.getByTestId("check-devices").fill("8");
  await page.getByTestId("check-file").setInputFiles([
    { name: "config.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(model)) },
    { name: "ds_z3.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(zero)) },
  ]);
  await badge(page).waitFor(STUDY_TIMEOUT);
  assert.match(await page.getByTestId("check-further").innerText(), /ds_z3\.json/);
  assert.match(await page.getByTestId("check-read").innerText(), /zero_optimization\.stage/);
  expectNoFaults(page);
  await page.context().close();
});

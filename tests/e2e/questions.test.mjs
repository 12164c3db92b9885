// Questions that the page Check answers. The name of a test is the question. Other questions are in tests/tests/questions.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { screenshots, useFixture } from "./fixture.mjs";

const fixture = useFixture();

const STUDY_TIMEOUT = { timeout: 60_000 };

/** Arguments of Megatron-LM for Llama-3 70B on 64 H100, 1F1B with four stages. Without recomputation the job does not fit. */
const ARGUMENTS = `pretrain_gpt.py --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 \\
  --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --group-query-attention --num-query-groups 8 \\
  --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 128 --swiglu --bf16 --vocab-size 128256 \\
  --untie-embeddings-and-output-weights --use-distributed-optimizer --sequence-parallel --normalization RMSNorm --disable-bias-linear \\
  --attention-backend flash`;

async function check(page, text) {
  await page.goto("/check");
  await page.getByTestId("check-text").fill(text);
  await page.getByTestId("check-devices").fill("64");
  await page.getByTestId("check-text").press("Control+Enter");
  await page.getByTestId("verdict").waitFor(STUDY_TIMEOUT);
}

test("why does rank 0 run out of memory and the last stage not", async () => {
  const page = await fixture.open();
  await check(page, ARGUMENTS);
  assert.match(await page.getByTestId("verdict").innerText(), /Does not fit[\s\S]*GiB needed on rank 0/);
  const card = page.getByTestId("check-memory-card");
  assert.match(await card.innerText(), /Rank 0 needs [\d.]+.GiB; its largest part: activations/i);
  const label = await card.locator("[aria-label^='Memory by rank']").first().getAttribute("aria-label");
  const needs = [...label.matchAll(/rank \d: ([\d.]+)/g)].map(([, gib]) => Number(gib));
  assert.equal(needs.length, 4);
  assert.deepEqual(needs, needs.toSorted((a, b) => b - a), "each later stage has fewer activations in flight");
  assert.equal(await page.getByTestId("card-budget").count(), 0, "a job that does not fit has no duration");
  expectNoFaults(page);
  await page.context().close();
});

test("how many days, GPU hours and dollars do 15 trillion tokens take", async () => {
  const page = await fixture.open({ width: 390, height: 844 });
  await check(page, ARGUMENTS.replace("--pipeline-model-parallel-size 4", "--pipeline-model-parallel-size 8"));
  const card = page.getByTestId("card-budget");
  await card.waitFor(STUDY_TIMEOUT);
  const cells = () => card.locator("tbody tr td").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));
  await card.locator("#budget-tokens").fill("15000");
  await card.locator("#budget-goodput").fill("100");
  await card.locator("#budget-price").fill("2");
  const [days, hours, dollars] = await cells();
  // Meta reports 6.4 million GPU hours for Llama 3 70B, including interruptions.
  assert.ok(hours > 3.2e6 && hours < 6.4e6, `${hours}`);
  assert.ok(Math.abs(hours / 64 / 24 / days - 1) < 1e-9 && Math.abs(dollars / hours - 2) < 1e-9);
  assert.match(await card.locator("tbody tr td").first().innerText(), /days[\s\S]*80.%: .*days to .*days/);
  await card.locator("#budget-goodput").fill("50");
  assert.ok(Math.abs((await cells())[0] / days - 2) < 1e-9, "half of the goodput takes twice the days");
  await card.scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(screenshots, "check-budget-light-390.png") });
  assert.deepEqual(await findOverflow(page), []);
  assert.deepEqual(await findSeriousViolations(page), []);
  expectNoFaults(page);
  await page.context().close();
});

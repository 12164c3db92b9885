// Files of sample lengths: preview, selection of columns, errors at fields, shards, mixtures.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { join } from "node:path";
import { screenshots, useFixture } from "./fixture.mjs";
import { readShifts, recordShifts } from "./layout_shifts.mjs";

const fixture = useFixture();

const file = (name, content) => ({ name, mimeType: "text/plain", buffer: Buffer.from(content) });
const lengthFile = (name, values) => file(name, `num_tokens\n${values.join("\n")}\n`);
const uploadFiles = (page, files) => page.getByTestId("upload").setInputFiles(files);
const fetchDatasets = async () => (await fixture.server.get("/datasets")).datasets;

test("a file has a preview before storage, and an error replaces the previous preview", async () => {
  const page = await fixture.open({ refusals: true });
  await page.goto("/datasets");
  await uploadFiles(page, lengthFile("a.csv", [100, 200, 300, 400]));
  const figures = page.getByTestId("preview-figures");
  await figures.waitFor();
  assert.match(await figures.innerText(), /4 samples, mean 250 tokens/);
  assert.match(await page.getByTestId("import-report").innerText(), /a\.csv[\s\S]*4 samples read/);
  await page.getByTestId("import-card").getByTestId("histogram").waitFor();
  assert.equal((await fetchDatasets()).length, 0);

  // Characters are converted to tokens, and the name can be changed.
  await page.getByTestId("upload-unit").selectOption("characters");
  await page.getByText("mean 62.5 tokens").first().waitFor();
  await page.getByTestId("upload-characters").fill("10");
  await page.getByTestId("upload-characters").press("Enter");
  await page.getByText("mean 25 tokens").first().waitFor();
  await page.getByTestId("upload-name").fill("my lengths");
  await page.getByTestId("store-dataset").click();
  await page.getByTestId("stored-dataset").getByText("my lengths").waitFor();
  const [dataset] = await fetchDatasets();
  assert.deepEqual([dataset.name, dataset.text_tokens.mean], ["my lengths", 25]);

  await uploadFiles(page, file("negative.csv", "num_tokens\n-5\n-7\n"));
  await page.getByTestId("upload-refused").waitFor();
  assert.equal(await page.getByTestId("stored-dataset").count(), 0);
  assert.equal(await page.getByTestId("import-card").getByText("negative.csv").count() > 0, true);
  await page.getByTestId("discard-upload").click();
  await page.getByTestId("import-card").waitFor({ state: "detached" });
  assert.equal((await fetchDatasets()).length, 1);
  expectNoFaults(page);
  await page.context().close();
});

const unclear = file("unclear.csv", `alpha,beta\n${Array.from({ length: 40 }, (_, row) => `${row},${100 + 10 * ((7 * row) % 40)}`).join("\n")}\n`);

test("a column of unknown meaning is chosen by the user, with sample values and histograms", async () => {
  for (const [scheme, width] of [["light", 1440], ["dark", 1440], ["light", 390], ["dark", 390]]) {
    const page = await fixture.open({ scheme, width, refusals: true });
    await recordShifts(page);
    await page.goto("/datasets");
    await page.getByTestId("upload").waitFor({ state: "attached" });
    // Wait for the list first. The card of the file then moves the list, and this shift must not count.
    await page.locator("main .table-scroll").waitFor();
    await uploadFiles(page, unclear);
    await page.getByTestId("column-unclear").waitFor();
    // Screenshot without `fullPage`, which resizes the viewport and causes a layout shift.
    await page.screenshot({ path: join(screenshots, `columns-${width}-${scheme}.png`) });
    assert.deepEqual(await findOverflow(page), []);
    const beta = page.getByRole("button", { name: /beta/ });
    assert.match(await beta.innerText(), /100 · 170/);
    await beta.focus();
    await page.keyboard.press("Enter");
    await page.getByTestId("preview-figures").getByText("40 samples").waitFor();
    assert.equal(await page.getByTestId("upload-column").inputValue(), "beta");
    await page.getByTestId("import-card").getByTestId("histogram").waitFor();
    const { sum } = await readShifts(page);
    assert.ok(sum < 0.1, `layout shift ${sum} at ${width} px`);
    await page.screenshot({ path: join(screenshots, `preview-${width}-${scheme}.png`), fullPage: true });
    expectNoFaults(page);
    await page.context().close();
  }
});

test("a table of a distribution requires the number of samples of each row", async () => {
  const page = await fixture.open({ refusals: true });
  await page.goto("/datasets");
  await uploadFiles(page, file("table.csv", "alpha,beta\n10,4\n20,3\n30,2\n40,1\n50,1\n60,1\n"));
  await page.getByTestId("column-unclear").waitFor();
  await page.getByRole("button", { name: /alpha/ }).click();
  await page.getByText("Choose the number of samples of each row of alpha").waitFor();
  await page.getByRole("button", { name: /beta/ }).click();
  await page.getByTestId("preview-figures").getByText("12 samples").waitFor();
  await page.getByTestId("upload-weight").selectOption({ label: "none" });
  await page.getByTestId("preview-figures").getByText("6 samples").waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("shards become one dataset, and a shard of other columns is named", async () => {
  const page = await fixture.open({ refusals: true });
  await page.goto("/datasets");
  await uploadFiles(page, [lengthFile("s-0.csv", [100, 200]), lengthFile("s-1.csv", [600])]);
  await page.getByTestId("preview-figures").getByText("3 samples, mean 300 tokens").waitFor();
  await uploadFiles(page, [lengthFile("s-0.csv", [100, 200]), file("odd.csv", "seq_len,n\n7,1\n9,2\n")]);
  const refused = page.getByTestId("upload-refused");
  await refused.waitFor();
  assert.match(await refused.innerText(), /odd\.csv/);
  expectNoFaults(page);
  await page.context().close();
});

test("an invalid tokenizer file is rejected at its field", async () => {
  const page = await fixture.open({ refusals: true });
  await page.goto("/datasets");
  await uploadFiles(page, file("texts.jsonl", '{"text": "a b c"}\n{"text": "a b c d e"}\n'));
  await page.getByTestId("preview-figures").waitFor();
  await page.getByTestId("upload-tokenizer").setInputFiles(file("tokenizer.json", "{}"));
  await page.getByText("The tokenizer is not valid").waitFor();
  const tokenizer = {
    version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null,
    pre_tokenizer: { type: "Whitespace" }, post_processor: null, decoder: null,
    model: { type: "WordLevel", vocab: { "[UNK]": 0, a: 1 }, unk_token: "[UNK]" },
  };
  await page.getByTestId("upload-tokenizer").setInputFiles(file("tokenizer.json", JSON.stringify(tokenizer)));
  await page.getByTestId("tokenizer").getByText("has 10 tokens").waitFor();
  await page.getByTestId("preview-figures").getByText("mean 4 tokens").waitFor();
  assert.equal(await page.getByText("The tokenizer is not valid").count(), 0);
  expectNoFaults(page);
  await page.context().close();
});

test("datasets are mixed by weight, in the list and in a scenario", async () => {
  const page = await fixture.open();
  await page.goto("/datasets");
  for (const [name, value] of [["short", 128], ["long", 4096]]) {
    await uploadFiles(page, lengthFile(`${name}.csv`, [value, value]));
    await page.getByTestId("preview-figures").waitFor();
    await page.getByTestId("store-dataset").click();
    await page.getByTestId("stored-dataset").getByText(`${name}.csv`).first().waitFor();
  }
  const { id: short } = (await fetchDatasets()).find(({ name }) => name === "short.csv");
  const { id: long } = (await fetchDatasets()).find(({ name }) => name === "long.csv");
  await page.getByTestId("mix").locator("summary").click();
  await page.getByTestId("mix-add").selectOption(short);
  await page.getByTestId("mix-add").selectOption(long);
  await page.getByLabel("Weight of short.csv").fill("3");
  await page.getByTestId("mix").getByText("75.0").waitFor();
  await page.screenshot({ path: join(screenshots, "mix-1440-light.png"), fullPage: true });
  /** Returns the parts of the next scenario with a mixture that is stored. Its planning is not needed. */
  const waitForParts = async () => {
    const isMixed = (request) => request.method() === "PUT" && request.url().endsWith("/scenarios") && request.postDataJSON().workload.samples.parts;
    const stored = await page.waitForResponse((response) => isMixed(response.request()));
    return (await stored.json()).scenario.workload.samples.parts;
  };
  let parts = waitForParts();
  await page.getByTestId("mix-open").click();
  assert.deepEqual((await parts).map(({ weight, source }) => [weight, source.id]), [[3, short], [1, long]]);
  assert.match(await page.getByTestId("mixture-share").first().innerText(), /75/);

  // Without the second part, the scenario has no mixture. Adding a part creates a mixture again.
  await page.getByRole("button", { name: /Remove short\.csv/ }).click();
  await page.getByTestId("mixture-share").first().waitFor({ state: "detached" });
  parts = waitForParts();
  await page.getByTestId("samples-add").selectOption(`dataset:${short}`);
  await page.getByTestId("mixture-share").nth(1).waitFor();
  assert.deepEqual((await parts).map(({ source }) => source.id), [long, short]);
  expectNoFaults(page);
  await page.context().close();
});

test("the card of a file violates no accessibility rule", async () => {
  const page = await fixture.open({ refusals: true });
  await page.goto("/datasets");
  await uploadFiles(page, unclear);
  await page.getByTestId("column-unclear").waitFor();
  assert.deepEqual(await findViolations(page), []);
  await page.getByRole("button", { name: /beta/ }).click();
  await page.getByTestId("preview-figures").waitFor();
  assert.deepEqual(await findViolations(page), []);
  await page.context().close();
});

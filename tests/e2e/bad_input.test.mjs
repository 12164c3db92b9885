// Invalid input: the error is at the field, nothing is stored, and no input is lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expectNoFaults } from "./browser.mjs";
import { errorAt, field, openReady, readRanking, setNumber, status, waitForPlanning } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";

let page;
const fixture = useFixture(async ({ open }) => {
  page = await open({ refusals: true });
  await openReady(page, "llama-2-7b-long-documents");
});

const cases = [
  ["no nodes", "/cluster/nodes", 0, "0 is out of range: 1 to 16,384"],
  ["a negative number of nodes", "/cluster/nodes", -3, "-3 is not a whole number from 1 to 16,384"],
  ["no devices", "/cluster/devices_per_node", 0, "0 is out of range: 1 to 256"],
  ["TP that does not divide the heads", "/layout/tensor", 3, "32 heads of Llama-2 7B are not a multiple of TP 3; possible TP: 1, 2, 4, 8, 16, 32"],
  ["more stages than layers", "/layout/pipeline", 64, "64 stages for 32 layers; at most one stage a layer"],
  ["a negative bandwidth", "/cluster/inter_node/gb_per_s", -1, "-1 GB/s is out of range: 0.01 to 100,000"],
  ["no context", "/workload/context_length", 0, "0 tokens is out of range: 1 to 16,777,216"],
  ["an empty global batch", "/workload/global_batch", 0, "0 samples is out of range: 1 to 1,048,576"],
  ["no iterations", "/iterations", 0, "0 is out of range: 1 to 10,000"],
];

for (const [name, pointer, value, message] of cases) {
  test(`${name}: the field shows an error, and the last result stays`, async () => {
    const answer = await readRanking(page);
    const address = page.url();
    const good = await field(page, pointer).inputValue();
    await setNumber(page, pointer, value);
    const error = errorAt(page, pointer);
    await error.waitFor();
    assert.equal(await error.innerText(), message);
    assert.equal(await field(page, pointer).getAttribute("aria-invalid"), "true");
    assert.equal(await field(page, pointer).inputValue(), String(value), "the input stays");
    assert.deepEqual(await readRanking(page), answer, "the last result stays");
    assert.equal(page.url(), address, "the address is that of a stored scenario");
    await field(page, pointer).fill(good);
    await error.waitFor({ state: "detached" });
    await waitForPlanning(page);
    assert.deepEqual(await readRanking(page), answer, "the same scenario has the same result");
  });
}

test("an empty number field has an error, and the results are marked as outdated", async () => {
  const nodes = field(page, "/cluster/nodes");
  const [good, answer, address] = [await nodes.inputValue(), await readRanking(page), page.url()];
  await nodes.fill("");
  await errorAt(page, "/cluster/nodes").getByText("a number is needed here").waitFor();
  // No request is sent. The status shows the error of the field, and the results of the last valid scenario are marked as outdated.
  await page.locator('[data-testid="plan-status"][data-state="error"]').waitFor();
  assert.match(await status(page).innerText(), /^1 field has an error; .* The results are outdated/);
  await page.locator('.results[data-outdated="true"]').waitFor();
  assert.equal(await nodes.getAttribute("aria-invalid"), "true");
  assert.deepEqual(await readRanking(page), answer, "the last result stays");
  assert.equal(page.url(), address, "the address is that of a stored scenario");
  await nodes.fill(good);
  await errorAt(page, "/cluster/nodes").waitFor({ state: "detached" });
  await page.locator(".results:not([data-outdated])").waitFor();
  await waitForPlanning(page);
});

test("a reserve as large as the device memory is rejected with the valid range", async () => {
  const good = (await field(page, "/training/memory_reserve_gib").inputValue()) || "4";
  await setNumber(page, "/training/memory_reserve_gib", 90);
  const error = errorAt(page, "/training/memory_reserve_gib");
  await error.waitFor();
  assert.match(await error.innerText(), /90 GiB is out of range: 0 to less than the device's memory of 80 GiB/);
  await setNumber(page, "/training/memory_reserve_gib", good);
  await error.waitFor({ state: "detached" });
  await waitForPlanning(page);
});

test("each of several invalid fields has an error", async () => {
  await setNumber(page, "/cluster/nodes", 0);
  await setNumber(page, "/workload/global_batch", 0);
  await errorAt(page, "/cluster/nodes").waitFor();
  await errorAt(page, "/workload/global_batch").waitFor();
  await status(page).getByText(/^2 fields have errors/).waitFor();
  await setNumber(page, "/cluster/nodes", 4);
  await setNumber(page, "/workload/global_batch", 128);
  await waitForPlanning(page);
});

const uploads = [
  ["an empty file", "empty.csv", "", /^File is empty/],
  ["text without numbers", "poem.txt", "two roads diverged\nin a yellow wood\n", /^This looks like plain text without numbers/],
  ["a negative length", "negative.txt", "512\n-4\n1024\n", /first line 2: -4 is not a length/],
  ["a zero length", "zero.txt", "512\n0\n1024\n", /first line 2: 0 is not a length/],
  ["an image with the extension .json", "lengths.json", "\u0089PNG\r\n\u001a\n", /^This looks like a PNG image, not a length file/],
];

for (const [name, file, content, message] of uploads) {
  test(`an upload of ${name} is rejected with the reason and not stored`, async () => {
    const before = (await fixture.server.get("/datasets")).datasets.length;
    const answer = await readRanking(page);
    await page.getByTestId("upload").setInputFiles({ name: file, mimeType: "text/plain", buffer: Buffer.from(content, "latin1") });
    await page.locator('main [role="alert"]').getByText(message).waitFor();
    assert.equal((await fixture.server.get("/datasets")).datasets.length, before);
    assert.deepEqual(await readRanking(page), answer);
  });
}

test("a file name is shown, never run", async () => {
  const name = '<img src=x onerror="document.title=1">.csv';
  await page.goto("/datasets");
  await page.getByTestId("upload").setInputFiles({ name, mimeType: "text/csv", buffer: Buffer.from("100\n200\n300\n") });
  await page.getByTestId("store-dataset").click();
  await page.getByTestId("stored-dataset").waitFor();
  await page.getByText("<img src=x").first().waitFor();
  assert.equal(await page.locator('img[src="x"]').count(), 0);
});

test("a model that does not fit has a result with the binding constraint", async () => {
  await openReady(page, "gpt-3-175b-uniform");
  await setNumber(page, "/layout/tensor", "");
  await setNumber(page, "/layout/pipeline", "");
  await setNumber(page, "/cluster/nodes", 1);
  await waitForPlanning(page, ["infeasible"]);
  const rows = await readRanking(page);
  for (const cells of Object.values(rows)) assert.match(cells.binding, /GiB/);
  // The card shows the nearest miss by rank and by term of memory. The rank with the highest memory need is above the limit.
  const card = page.getByTestId("card-peak");
  await card.getByRole("heading", { name: "Memory of the nearest miss" }).waitFor();
  assert.match(await card.getByTestId("peak-caption").innerText(), /^Rank \d+ needs most: .*\sGiB without the reserve/s);
  await card.getByTestId("peak-remedy").waitFor();
  await card.locator("details summary").first().click();
  const sums = await card.getByTestId("peak-ranks").locator("[data-sum]").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.sum)));
  assert.ok(Math.max(...sums) > 76, `${sums} GiB, limit 76 GiB: 80 GiB minus the reserve of 4 GiB`);
});

test("a link to an unknown scenario has an error message", async () => {
  for (const [path, message] of [
    ["/s/aaaaaaaaaa", /no scenario|not found|unknown|does not exist|no such/i],
    ["/s/abc", /10|ten|short/i],
  ]) {
    await page.goto(path);
    await page.getByText(message).first().waitFor();
  }
  expectNoFaults(page);
});

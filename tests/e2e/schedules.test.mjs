// Schedules without a model: comparison, edits, imported tables, links.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { field, gantt, openReady, readChangedWindow, readWindow, setNumber, waitForPlanning } from "./explore.mjs";
import { readmeScreenshots, screenshots, useFixture } from "./fixture.mjs";

/** Rank 1 has both forwards before its first backward. Rank 0 has a backward before its second forward. */
const DEADLOCK = "0F0,0B0,0F1,0B1\n,1F0,1F1,1B0,1B1\n";

const fixture = useFixture();

/** Waits until the result of the last edit is shown. During an edit, the state becomes "asking". */
const waitForAnswer = (page, state = "done") => page.locator(`[data-testid="schedules-status"][data-state="${state}"]`).waitFor();

async function openSchedules(options, address = "/schedules") {
  const page = await fixture.open(options);
  await page.goto(address);
  await waitForAnswer(page);
  return page;
}

const row = (page, key) => page.getByTestId("schedules").locator(`tr[data-schedule="${key}"]`);
const readFigure = async (page, key, metric) => Number(await row(page, key).locator(`[data-metric="${metric}"]`).getAttribute("data-value"));
const card = (page, key) => page.getByTestId(`card-${key}`);

/** Opens a file with this content and waits for its result. */
async function openTable(page, name, text) {
  await page.getByTestId("open-table").setInputFiles({ name: `${name}.csv`, mimeType: "text/csv", buffer: Buffer.from(text) });
  await row(page, `table:${name}`).waitFor();
}

test("the page opens with four schedules on one time axis", async () => {
  const page = await fixture.open();
  await page.goto("/");
  await page.getByRole("link", { name: "Schedules", exact: true }).click();
  await waitForAnswer(page);
  for (const kind of ["1f1b", "interleaved", "zb_h1", "zbv"]) {
    assert.ok((await readWindow(gantt(page, kind))).spans > 0, kind);
  }
  // (m + p - 1)(F + B) with p = 4, m = 8, F = I = W = 1.
  assert.equal(await readFigure(page, "1f1b", "makespan"), 33);
  assert.equal(await readFigure(page, "1f1b", "peak"), 4);
  assert.ok((await readFigure(page, "zbv", "speedup")) > 1);
  assert.match(await row(page, "1f1b").locator('[data-metric="bubble"]').innerText(), /^9\s+formula 9$/);
  await page.getByTestId("memory-chart").locator(".main-svg").first().waitFor();
  const whole = await readWindow(gantt(page, "1f1b"));
  await gantt(page, "1f1b").focus();
  await page.keyboard.press("w");
  const zoomed = await readChangedWindow(gantt(page, "1f1b"), whole);
  const other = await readWindow(gantt(page, "zbv"));
  assert.deepEqual([other.start, other.end], [zoomed.start, zoomed.end]);
  await page.keyboard.press("ArrowRight");
  await page.getByTestId("selection").getByText(/\d u\b/).first().waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("an arrow key changes the number of microbatches and updates the table", async () => {
  const page = await openSchedules();
  await field(page, "/microbatches").focus();
  await page.keyboard.press("ArrowUp");
  await waitForAnswer(page);
  assert.equal(await field(page, "/microbatches").inputValue(), "9");
  assert.equal(await readFigure(page, "1f1b", "makespan"), 36);
  await page.locator("body").click({ position: { x: 700, y: 60 } });
  await page.keyboard.press("Control+z");
  await waitForAnswer(page);
  assert.equal(await readFigure(page, "1f1b", "makespan"), 33);
  await setNumber(page, "/ranks", 0);
  await waitForAnswer(page, "error");
  assert.match(await page.locator('[data-error-for="/ranks"]').innerText(), /1 to 1,024/);
  assert.equal(await readFigure(page, "1f1b", "makespan"), 33, "the last result stays");
  await setNumber(page, "/ranks", 5);
  await waitForAnswer(page);
  assert.equal(await readFigure(page, "1f1b", "makespan"), 36);
  await page.context().close();
});

test("a number can start with a point, and an empty field restores its value", async () => {
  const page = await openSchedules();
  const forward = field(page, "/times/forward");
  await forward.focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type(".5");
  await waitForAnswer(page);
  assert.equal(await forward.inputValue(), ".5");
  // (m + p - 1)(F + I + W)
  assert.equal(await readFigure(page, "1f1b", "makespan"), 27.5);
  await forward.fill("");
  await page.locator('[data-error-for="/times/forward"]').waitFor();
  await forward.blur();
  await page.locator('[data-error-for="/times/forward"]').waitFor({ state: "detached" });
  assert.equal(await forward.inputValue(), "0.5");
  expectNoFaults(page);
  await page.context().close();
});

test("the table is sorted by makespan, and any row can be the baseline", async () => {
  const page = await openSchedules();
  const order = () => page.getByTestId("schedules").locator("tbody tr").evaluateAll((rows) => rows.map((row) => row.dataset.schedule));
  const before = await order();
  const heading = page.locator('[data-heading="makespan"]');
  await heading.getByRole("button").click();
  assert.equal(await heading.getAttribute("aria-sort"), "ascending");
  const makespans = await Promise.all((await order()).map((key) => readFigure(page, key, "makespan")));
  assert.deepEqual(makespans, makespans.toSorted((one, other) => one - other));
  await heading.getByRole("button").click();
  await heading.getByRole("button").click();
  assert.deepEqual(await order(), before);
  await row(page, "zbv").getByRole("radio").check();
  assert.equal(await readFigure(page, "zbv", "speedup"), 1);
  assert.ok((await readFigure(page, "1f1b", "speedup")) < 1);
  expectNoFaults(page);
  await page.context().close();
});

test("a schedule that cannot be built shows the reason", async () => {
  const page = await openSchedules();
  await field(page, "/kinds/dual_pipe").check();
  await setNumber(page, "/ranks", 3);
  await waitForAnswer(page);
  assert.match(await row(page, "dual_pipe").innerText(), /needs an even number of ranks/);
  expectNoFaults(page);
  await page.context().close();
});

test("uneven times come from an example, a list or pasted cells", async () => {
  const page = await openSchedules();
  const forward = field(page, "/times/forward");
  /** Enters forward times and returns the forward times of the request. */
  const enter = async (text) => {
    const sent = page.waitForRequest((request) => request.url().endsWith("/api/v1/schedules"));
    await forward.fill(text);
    return (await sent).postDataJSON().times.forward;
  };
  await page.getByTestId("long-tail").click();
  await waitForAnswer(page);
  assert.equal(await forward.inputValue(), "0.6\n0.5\n1\n0.4\n2.6\n0.7\n0.5\n0.8");
  assert.ok((await readFigure(page, "1f1b", "makespan")) > 33);
  await setNumber(page, "/microbatches", 9);
  await waitForAnswer(page);
  assert.deepEqual(await enter("1\t2\t3\t4\n".repeat(9)), Array(9).fill([1, 2, 3, 4]));
  await waitForAnswer(page);
  await enter("1\t2\t3\n".repeat(9));
  await waitForAnswer(page, "error");
  const wrong = page.locator(".field", { has: forward }).locator(".field-error");
  assert.equal(await wrong.first().innerText(), "Value 1: 3 values; 1 or 4 would fit");
  await page.getByTestId("spread").selectOption("stages");
  await waitForAnswer(page, "error");
  await wrong.getByText("3 values; 1 or 4 would fit", { exact: true }).waitFor();
  assert.deepEqual(await enter("1, 1, 1, 3"), [1, 1, 1, 3]);
  await field(page, "/times/input_grad").fill("1");
  await field(page, "/times/weight_grad").fill("x");
  assert.match(await page.locator('[data-error-for="/times/weight_grad"]').innerText(), /"x" is not a number/);
  await field(page, "/times/weight_grad").fill("1");
  await waitForAnswer(page);
  // The last rank is never idle: (p - 1) F + m (F' + I + W) + (p - 1)(I + W) with p = 4, m = 9, F = I = W = 1, F' = 3.
  assert.equal(await readFigure(page, "1f1b", "makespan"), 54);
  await page.context().close();
});

test("a deadlock is shown as a cycle of waiting cells", async () => {
  const page = await openSchedules({ width: 1440 }, "/schedules#p=2&m=2");
  await openTable(page, "mine", DEADLOCK);
  await waitForAnswer(page);
  const cycle = page.getByTestId("deadlock");
  const text = await cycle.innerText();
  assert.match(text, /B1 0B0 waits for D2 1B0, which comes after C2 1F1/);
  const grid = page.getByTestId("csv-grid");
  assert.equal(await grid.locator("td.waits").count(), 2);
  await cycle.getByRole("button", { name: "C2" }).first().click();
  assert.match(await page.getByTestId("grid-cell").innerText(), /^C2 1F1/);
  // Alt and an arrow key move 1F1 behind 1B0, which resolves the deadlock.
  await page.keyboard.press("Alt+ArrowRight");
  await waitForAnswer(page);
  await cycle.waitFor({ state: "detached" });
  assert.match(await page.getByTestId("grid-cell").innerText(), /^D2 1F1/);
  assert.equal(await page.getByTestId("csv-text").inputValue(), "0F0,0B0,0F1,0B1\n,1F0,1B0,1F1,1B1\n");
  assert.ok((await readFigure(page, "table:mine", "makespan")) > 0);
  await page.keyboard.press("Control+z");
  await waitForAnswer(page);
  await cycle.waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("invalid cells are listed and marked, and pasted text opens a table", async () => {
  const page = await openSchedules({}, "/schedules#p=1&m=1");
  await page.locator("h1").click();
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.setData("text/plain", "0F0,0Q0,0B0\n");
    document.querySelector("h1").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
  });
  await waitForAnswer(page);
  assert.match(await page.getByTestId("problems").innerText(), /^1 problem\s+B1 /);
  assert.equal(await page.locator('td[data-cell="B1"]').getAttribute("class"), "wrong");
  await page.getByTestId("csv-text").fill("0F0,0B0\n");
  await waitForAnswer(page);
  assert.equal(await page.getByTestId("problems").count(), 0);
  assert.equal(await readFigure(page, "table:pasted", "makespan"), 3);
  expectNoFaults(page);
  await page.context().close();
});

test("an edit of a copied schedule changes the makespan", async () => {
  const page = await openSchedules();
  await card(page, "1f1b").getByTestId("edit-copy").click();
  await waitForAnswer(page);
  const key = "table:1F1B, edited";
  assert.equal(await readFigure(page, key, "makespan"), 33);
  // On rank 0, move the last forward of the warm-up behind the first backward.
  const text = page.getByTestId("csv-text");
  const lines = (await text.inputValue()).split("\n");
  const cells = lines[0].split(",").filter(Boolean);
  const [third] = cells.splice(3, 1);
  cells.splice(4, 0, third);
  await text.fill([cells.join(","), ...lines.slice(1)].join("\n"));
  await waitForAnswer(page);
  assert.ok((await readFigure(page, key, "makespan")) > 33);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    card(page, "1f1b").getByTestId("save-csv").click(),
  ]);
  assert.equal(download.suggestedFilename(), "1F1B.csv");
  await card(page, key).getByRole("button", { name: /^Remove/ }).click();
  await waitForAnswer(page);
  assert.equal(await row(page, key).count(), 0);
  expectNoFaults(page);
  await page.context().close();
});

test("a link opens the same input in a new browser", async () => {
  const page = await openSchedules();
  await setNumber(page, "/microbatches", 6);
  await setNumber(page, "/times/forward", 1.5);
  await field(page, "/kinds/gpipe").check();
  await openTable(page, "mine", "0F0,0B0\n1F0,1B0\n");
  await waitForAnswer(page);
  await row(page, "gpipe").getByRole("radio").check();
  await page.waitForFunction(() => location.hash.includes("base=gpipe"));
  const other = await openSchedules({}, new URL(page.url()).pathname + new URL(page.url()).hash);
  for (const pointer of ["/microbatches", "/times/forward"]) {
    assert.equal(await field(other, pointer).inputValue(), await field(page, pointer).inputValue());
  }
  const table = (of) => of.getByTestId("schedules").locator("tbody").innerText();
  assert.equal(await table(other), await table(page));
  assert.ok(await row(other, "gpipe").getByRole("radio").isChecked());
  assert.equal(await other.getByTestId("csv-text").inputValue(), "0F0,0B0\n1F0,1B0");
  expectNoFaults(other);
  await other.context().close();
  await page.context().close();
});

test("input, table and charts survive navigation", async () => {
  const page = await fixture.open();
  await openReady(page, "llama-2-7b-long-documents");
  const header = (name) => page.locator("header").getByRole("link", { name, exact: true });
  await header("Schedules").click();
  await waitForAnswer(page);
  await setNumber(page, "/times/input_grad", 1.5);
  await openTable(page, "mine", "0F0,0B0\n1F0,1B0");
  await waitForAnswer(page);
  await header("Explore").click();
  await waitForPlanning(page);
  // The key `i` of the explore page has another meaning on the page of schedules.
  await page.getByTestId("iteration-1").click();
  await page.waitForFunction(() => /[#&]i=1(&|$)/.test(location.hash));
  const explored = new URL(page.url()).pathname;
  await header("Schedules").click();
  await waitForAnswer(page);
  assert.equal(await field(page, "/times/input_grad").inputValue(), "1.5");
  await row(page, "table:mine").waitFor();
  await page.waitForFunction(() => location.pathname === "/schedules" && location.hash.includes("table=mine"));
  await page.goBack();
  await page.waitForFunction((explored) => location.pathname === explored, explored);
  await waitForPlanning(page);
  await page.goBack();
  await waitForAnswer(page);
  assert.ok((await readWindow(gantt(page, "1f1b"))).spans > 0);
  expectNoFaults(page);
  await page.context().close();
});

for (const scheme of ["light", "dark"]) {
  test(`schedules have no serious accessibility violation and no overflow, ${scheme}`, async () => {
    const found = [];
    for (const width of [1440, 390, 320]) {
      const page = await openSchedules({ scheme, width }, "/schedules");
      for (const kind of ["1f1b", "zbv"]) await readWindow(gantt(page, kind));
      if (readmeScreenshots && width === 1440) {
        await page.evaluate(() => scrollTo(0, 0));
        await page.screenshot({ path: join(readmeScreenshots, `schedules-${scheme}.png`) });
      }
      await openTable(page, "mine", DEADLOCK);
      await waitForAnswer(page);
      await page.getByTestId("deadlock").waitFor();
      found.push(...(await findOverflow(page)).map((what) => `${width}: ${what}`));
      await page.screenshot({ path: join(screenshots, `schedules-${width}-${scheme}.png`), fullPage: true });
      found.push(...(await findSeriousViolations(page)).map((text) => `${width}: ${text}`));
      expectNoFaults(page);
      await page.context().close();
    }
    assert.deepEqual(found, []);
  });
}

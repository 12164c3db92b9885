// Lists of stored objects, and links: search, tags, names, pins, deletion and undo, pages, exported files, all forms of links.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow, openPage } from "./browser.mjs";
import { field, gantt, readWindow, setNumber, waitForPlanning } from "./explore.mjs";
import { root, startServer } from "./server.mjs";
import { screenshots, useFixture } from "./fixture.mjs";

const example = JSON.parse(readFileSync(join(root, "examples/llama-2-7b-long-documents.json"), "utf8"));
const { links } = JSON.parse(readFileSync(join(root, "tests/e2e/fixtures/links.json"), "utf8"));

let page;
const fixture = useFixture(async ({ open }) => {
  page = await open({ refusals: true });
});

const send = async (method, path, body, type = "application/json") => {
  const response = await fetch(`${fixture.server.url}/api/v1${path}`, { method, body, headers: { "content-type": type } });
  return { status: response.status, body: response.status === 204 ? null : await response.json() };
};
const storeScenario = async (scenario) => (await send("PUT", "/scenarios", JSON.stringify(scenario))).body;
const saveScenario = async (title, seed) => {
  const stored = await storeScenario({ ...example, title, seed });
  await send("POST", `/scenarios/${stored.id}/keep`, "");
  return stored;
};
const rows = (list) => page.getByTestId(list).locator("tbody tr[data-id]");
const readNames = (list) => page.getByTestId(list).locator("tbody tr[data-id] .name").allInnerTexts();
const waitForEqual = async (read, wanted, what) => {
  const end = Date.now() + 10_000;
  for (;;) {
    const found = await read();
    try {
      assert.deepEqual(found, wanted);
      return;
    } catch (error) {
      if (Date.now() > end) throw new assert.AssertionError({ message: `${what}: ${error.message}` });
    }
    await page.waitForTimeout(60);
  }
};

test("an empty list describes the next step", async () => {
  for (const [list, words] of [["scenarios", /press Save/], ["plans", /ready scenario/i], ["datasets", /Drop a file/], ["runs", /paste its command/], ["traces", /Drop one above/], ["profiles", /calibrate a profile/]]) {
    await page.goto(`/${list}`);
    await page.getByTestId(`${list}-empty`).getByText(words).first().waitFor();
  }
});

test("scenarios are found by text and tags, renamed, annotated and pinned", async () => {
  for (const [title, seed] of [["Alpha 100%", 901], ["Beta a_b", 902], ["Gamma <img src=x onerror=alert(1)>", 903]]) await saveScenario(title, seed);
  await page.goto("/scenarios");
  await waitForEqual(() => readNames("scenarios"), ["Gamma <img src=x onerror=alert(1)>", "Beta a_b", "Alpha 100%"], "newest first");

  await page.getByRole("button", { name: "Edit Beta a_b" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Beta renamed");
  await page.getByLabel("Note").fill("on the slow rack");
  await page.getByLabel("Tags, by commas").fill("night, lab , night");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("link", { name: "Beta renamed" }).waitFor();
  await page.getByRole("button", { name: "Pin Alpha 100%" }).click();
  await waitForEqual(() => readNames("scenarios"), ["Alpha 100%", "Gamma <img src=x onerror=alert(1)>", "Beta renamed"], "pinned first");

  await page.getByTestId("scenarios-search").fill("100%");
  await waitForEqual(() => readNames("scenarios"), ["Alpha 100%"], "wildcards have no special meaning");
  assert.equal(new URL(page.url()).search, "?q=100%25", "the query is in the address");
  await page.getByTestId("scenarios-search").fill("slow LLAMA");
  await waitForEqual(() => readNames("scenarios"), ["Beta renamed"], "every word must match, and notes are searched");
  await page.getByTestId("scenarios-search").fill("");
  await waitForEqual(() => rows("scenarios").count(), 3, "all");
  await page.getByTestId("scenarios-tags").getByRole("button", { name: "lab" }).click();
  await waitForEqual(() => readNames("scenarios"), ["Beta renamed"], "by tag");
  await page.goBack();
  await waitForEqual(() => rows("scenarios").count(), 3, "back");
  await page.goForward();
  await waitForEqual(() => readNames("scenarios"), ["Beta renamed"], "forward");
  await page.goto("/scenarios?sort=name");
  await waitForEqual(() => readNames("scenarios"), ["Alpha 100%", "Beta renamed", "Gamma <img src=x onerror=alert(1)>"], "by name");
  await page.getByRole("button", { name: "Name", exact: true }).click();
  await waitForEqual(() => readNames("scenarios"), ["Alpha 100%", "Gamma <img src=x onerror=alert(1)>", "Beta renamed"], "descending");
  assert.equal(await page.locator("th[aria-sort=descending]").innerText(), "Name ▼");
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  await page.goto("/");
  await page.getByTestId("last-saved").getByRole("link").first().waitFor();
  assert.match(await page.getByTestId("last-saved").locator("li").first().innerText(), /★.*Alpha 100%/s);
});

test("a deleted scenario can be restored by undo, in the list of deleted objects, and from its link", async () => {
  const stored = (await fixture.server.get("/scenarios?q=Alpha")).scenarios[0];
  await page.goto("/scenarios");
  await page.getByRole("button", { name: "Delete Alpha 100%" }).click();
  await page.getByRole("link", { name: "Alpha 100%" }).waitFor({ state: "detached" });
  const total = async () => Number((await page.getByTestId("scenarios-total").innerText()).match(/^\d+/)[0]);
  await waitForEqual(total, await rows("scenarios").count(), "the total excludes the deleted scenario");
  assert.notEqual(await page.evaluate(() => document.activeElement.tagName), "BODY", "the focus moves to another row");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("link", { name: "Alpha 100%" }).waitFor();
  await waitForEqual(() => page.evaluate(() => document.activeElement.closest("tr")?.dataset.id), stored.id, "the focus is on the restored row");

  await page.getByRole("button", { name: "Delete Alpha 100%" }).click();
  await page.getByRole("link", { name: "Alpha 100%" }).waitFor({ state: "detached" });
  await page.goto("/scenarios?deleted=true");
  await waitForEqual(async () => (await fixture.server.get("/scenarios?q=Alpha")).total, 0, "the deletion is stored although the page was left at once");
  await page.reload();
  await page.getByRole("button", { name: "Restore Alpha 100%" }).click();
  await waitForEqual(() => rows("scenarios").count(), 0, "no deleted scenario is left");
  assert.equal((await fixture.server.get("/scenarios?q=Alpha")).total, 1);

  await send("DELETE", `/scenarios/${stored.id}`);
  await page.goto(`/s/${stored.short}`);
  await page.getByText("This scenario was deleted").waitFor();
  assert.match(await page.getByTestId("deleted-when").innerText(), /deleted on 20\d\d-\d\d-\d\d \d\d:\d\d UTC/);
  await page.screenshot({ path: join(screenshots, "deleted-1440-light.png") });
  await page.getByTestId("restore").click();
  await waitForPlanning(page);
  assert.equal(await page.getByTestId("title").inputValue(), "Alpha 100%");
});

test("pages of a long list are in the browser history", async () => {
  for (let number = 0; number < 60; number += 1) await send("POST", "/runs", JSON.stringify({ name: `run ${String(number).padStart(2, "0")}` }));
  await page.goto("/runs?sort=name");
  await waitForEqual(() => rows("runs").count(), 50, "first page");
  assert.match(await page.getByTestId("runs-pager").innerText(), /1 to 50 of 60/);
  await page.getByTestId("runs-pager").getByRole("button", { name: "Next" }).click();
  await waitForEqual(() => rows("runs").count(), 10, "second page");
  assert.match(await page.getByTestId("runs-pager").innerText(), /51 to 60 of 60/);
  await page.reload();
  await waitForEqual(() => rows("runs").count(), 10, "a reload shows the same page");
  await page.goBack();
  await waitForEqual(() => rows("runs").count(), 50, "back");
  await page.getByTestId("runs-state").selectOption("ended");
  await page.getByText("Nothing matches.").waitFor();
});

test("plans of all scenarios are listed with links to their pages", async () => {
  await page.goto("/plans?sort=time");
  await rows("plans").first().waitFor();
  const count = await rows("plans").count();
  await page.getByTestId("plans-planner").selectOption("1f1b");
  await waitForEqual(async () => (await rows("plans").count()) < count, true, "plans of one planner");
  await page.getByTestId("plans").getByRole("link").first().click();
  await waitForPlanning(page);
  assert.match(page.url(), /#p=1f1b/);
});

test("an ambiguous link lists its scenarios for selection", async () => {
  // The test supplies the response, because no two real identifiers have the same first ten characters.
  await page.route("**/api/v1/scenarios/qqqqqqqqqq", (route) =>
    route.fulfill({
      status: 300,
      contentType: "application/problem+json",
      body: JSON.stringify({
        type: "/problems/ambiguous-prefix",
        title: "The prefix is ambiguous",
        status: 300,
        detail: "qqqqqqqqqq is the beginning of several identifiers",
        candidates: ["a", "b"].map((last) => ({ id: `${"q".repeat(15)}${last.repeat(37)}`, short: `${"q".repeat(15)}${last}`, title: `Candidate ${last} <b>`, created_at: "2026-01-01T00:00:00Z" })),
      }),
    }),
  );
  await page.goto("/s/qqqqqqqqqq");
  const candidates = page.getByTestId("candidates").getByRole("link");
  await candidates.first().waitFor();
  assert.deepEqual(await candidates.allInnerTexts(), ["Candidate a <b>", "Candidate b <b>"]);
  assert.equal(await candidates.nth(1).getAttribute("href"), `/s/${"q".repeat(15)}b`);
  await page.screenshot({ path: join(screenshots, "chooser-1440-light.png") });
  await page.unroute("**/api/v1/scenarios/qqqqqqqqqq");
});

test("unreadable parts of a view in a link are ignored with a notice", async () => {
  const stored = await storeScenario(example);
  await page.goto("about:blank");
  await page.goto(`/s/${stored.short}#i=1&t=9..1&sel=r999&future=1&p=interleaved`);
  await waitForPlanning(page);
  assert.match(await page.getByTestId("link-status").innerText(), /left out: t, sel, future/);
  assert.match(page.url(), /#i=1&p=interleaved$/);
  await page.goto("about:blank");
  await page.goto(`/s/${stored.short}#${"x".repeat(100_000)}`);
  await waitForPlanning(page);
  assert.match(await page.getByTestId("link-status").innerText(), /longer than any view/);

  await page.goto("about:blank");
  await page.goto(`/s/${stored.short}#p=1f1b&sel=r1.s1.mb0.B`);
  await waitForPlanning(page);
  assert.equal((await page.getByTestId("link-status").innerText()).trim(), "");
  await page.getByTestId("selection").getByText(/backward of microbatch 0/i).first().waitFor();
  assert.match(page.url(), /sel=r1\.s1\.mb0\.B/, "the selection is in the address");
});

for (const { form, since, link, id } of links) {
  test(`a ${form} link of ${since} opens`, async () => {
    // The identifier of the example must be the same as in that version.
    if (form === "stored") assert.equal((await storeScenario(example)).id, id, "the identifier of this scenario never changes");
    await page.goto("about:blank");
    await page.goto(link);
    // The results of the self-contained link are already stored, so they are shown without planning.
    await waitForPlanning(page);
    const short = new URL(page.url()).pathname.split("/")[2];
    assert.ok(id.startsWith(short), `${short} is not the beginning of ${id}`);
    for (const canvas of await page.locator('canvas[data-testid^="gantt-"]').all()) assert.ok((await readWindow(canvas)).spans > 0);
    expectNoFaults(page);
  });
}

test("a self-contained link works without a stored scenario and is stored on planning", async (t) => {
  const stored = await storeScenario(example);
  await page.goto(`/s/${stored.short}`);
  await waitForPlanning(page);
  await page.getByTestId("export").locator("summary").click();
  await page.getByTestId("copy-contained").click();
  await page.getByText("Self-contained link copied").waitFor();
  const url = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(url, /\/c\/#z1\.[\w-]+$/);
  assert.ok(url.length < 8300, `${url.length} characters`);

  const other = await startServer();
  t.after(() => other.stop());
  const otherPage = await openPage(fixture.browser, other);
  const sent = [];
  otherPage.on("request", (request) => {
    const path = new URL(request.url()).pathname;
    if (request.method() !== "GET" && path !== "/api/v1/scenarios/identity") sent.push(`${request.method()} ${path}`);
  });
  await otherPage.goto(url.replace(fixture.server.url, other.url));
  await otherPage.getByTestId("unsaved").waitFor();
  assert.equal(await otherPage.getByTestId("title").inputValue(), example.title);
  assert.equal(await field(otherPage, "/cluster/nodes").inputValue(), String(example.cluster.nodes));
  assert.deepEqual(sent, [], "opening a link stores nothing");
  await otherPage.getByTestId("plan-unsaved").click();
  await waitForPlanning(otherPage);
  assert.equal(new URL(otherPage.url()).pathname, `/s/${stored.short}`, "the same scenario");
  // The second visit shows the stored results without planning.
  sent.length = 0;
  await otherPage.goto("about:blank");
  await otherPage.goto(url.replace(fixture.server.url, other.url));
  await waitForPlanning(otherPage);
  assert.equal(await otherPage.getByTestId("unsaved").count(), 0);
  assert.deepEqual(sent, [], "nothing is planned");
  expectNoFaults(otherPage);
  await otherPage.context().close();
});

test("copying a link saves the scenario, and the list can undo this", async () => {
  const stored = await storeScenario({ ...example, title: "Sent to a colleague", seed: 4711 });
  await page.goto(`/s/${stored.short}`);
  await waitForPlanning(page);
  const saved = page.waitForResponse((response) => response.url().endsWith("/keep") && response.ok());
  await page.getByTestId("copy-link").click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), new RegExp(`/s/${stored.short}`));
  await saved;
  await page.getByTestId("copy-status").getByText("Saved and copied", { exact: true }).waitFor();
  await page.getByTestId("save").getByText("Saved", { exact: true }).waitFor();
  await page.goto("/scenarios");
  const row = page.locator(`tr[data-id="${stored.id}"]`);
  await row.getByText("saved by a copied link").waitFor();
  await row.getByTestId("undo-link").click();
  await row.waitFor({ state: "detached" });
  assert.equal((await send("GET", `/scenarios/${stored.id}`)).body.kept, false, "the scenario is a draft again");

  // If saving fails, an error is shown. The link is copied nevertheless.
  await page.goto(`/s/${stored.short}`);
  await waitForPlanning(page);
  await page.route("**/keep", (route) => route.abort());
  await page.getByTestId("copy-link").click();
  await page.getByTestId("copy-failure").getByText(/could not be saved/).waitFor();
  await page.unroute("**/keep");
  await page.getByTestId("copy-failure").getByRole("button", { name: "Try again" }).click();
  await page.getByTestId("copy-failure").waitFor({ state: "detached" });
  // The notice closes before the request ends.
  const source = async () => (await send("GET", `/scenarios/${stored.id}`)).body.source;
  for (let wait = 0; wait < 100 && (await source()) !== "link"; wait++) await page.waitForTimeout(50);
  assert.equal(await source(), "link");
  await send("DELETE", `/scenarios/${stored.id}/keep`);
  assert.deepEqual(page.faults.splice(0).filter((words) => !words.includes("/keep")), [], "only the aborted request is a fault");
});

test("invalid self-contained links have an error message", async () => {
  const bomb = deflateRawSync(Buffer.alloc(4 << 20, 32)).toString("base64url");
  const future = deflateRawSync('{"schema":"scenario/99"}').toString("base64url");
  for (const [fragment, words] of [
    ["", /does not begin with z1/],
    ["z1.!!!", /does not belong there/],
    ["z1.AAAA", /damaged/],
    [`z1.${bomb}`, /more than 1 MiB/],
    [`z1.${future}`, /newer version \(scenario\/99/],
    [`z1.${"a".repeat(9000)}`, /9003 characters/],
  ]) {
    await page.goto("about:blank");
    await page.goto(`/c/#${fragment}`);
    await page.getByTestId("link-error").getByText(words).waitFor();
  }
});

test("an exported scenario can be imported unchanged, and invalid files are rejected", async () => {
  const stored = await storeScenario(example);
  await page.goto(`/s/${stored.short}`);
  await waitForPlanning(page);
  await page.getByTestId("export").locator("summary").click();
  const saving = page.waitForEvent("download");
  await page.getByTestId("export-scenario").click();
  const file = await (await saving).path();
  await page.goto("/new?ready=gpt-3-175b-uniform");
  await waitForPlanning(page);
  await page.getByTestId("open-scenario").setInputFiles({ name: "notes.json", mimeType: "application/json", buffer: Buffer.from("[1]") });
  await page.getByTestId("open-error").getByText("no configuration that Planscope reads").waitFor();
  const other = page.url();
  await page.getByTestId("open-scenario").setInputFiles({ name: "scenario.json", mimeType: "application/json", buffer: readFileSync(file) });
  await page.waitForURL(`**/s/${stored.short}*`);
  await waitForPlanning(page);
  await page.getByRole("button", { name: "Undo" }).click();
  await waitForPlanning(page);
  assert.equal(page.url().split("#")[0], other.split("#")[0], "opening a file can be undone");
});

test("the configuration of a training job opens as a scenario with a report", async () => {
  await page.goto("/new");
  await waitForPlanning(page);
  const toml = `[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\nother_key = "x"\n[parallelism]\ndata_parallel_shard_degree = 8\ntensor_parallel_degree = 2\n`;
  await page.getByTestId("open-scenario").setInputFiles({ name: "job.toml", mimeType: "application/toml", buffer: Buffer.from(toml) });
  const report = page.getByTestId("job-config");
  await report.getByText("torchtitan job file").waitFor();
  await waitForPlanning(page);
  assert.match(await report.innerText(), /job\.toml[\s\S]*6 settings read[\s\S]*1 sequence times 8 data-parallel replicas, 8[\s\S]*training\.other_key/);
  assert.equal(await page.getByLabel(/^Tensor parallel/).inputValue(), "2");
  // An unreadable file removes the report of the previous file.
  await page.getByTestId("open-scenario").setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") });
  await page.getByTestId("open-error").waitFor();
  assert.equal(await report.count(), 0);
});

test("plans are exported as SVG, PNG and in formats of other programs", async () => {
  const stored = await storeScenario(example);
  await page.goto(`/s/${stored.short}`);
  await waitForPlanning(page);
  await readWindow(gantt(page, "1f1b"));
  const exportPlan = async (name) => {
    if (!(await page.getByTestId("export-1f1b").isVisible())) await page.getByTestId("export").locator("summary").click();
    const saving = page.waitForEvent("download");
    await page.getByTestId("export-1f1b").getByText(name, { exact: true }).click();
    const download = await saving;
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  };
  const svg = await exportPlan("SVG");
  assert.match(svg.name, /\.svg$/);
  assert.match(svg.bytes.toString(), /^<svg xmlns=[\s\S]*>rank 0<[\s\S]*<\/svg>\n$/);
  assert.ok(svg.bytes.length < 1 << 20, `${svg.bytes.length} bytes`);
  const png = await exportPlan("PNG");
  assert.equal(png.bytes.subarray(1, 4).toString(), "PNG");
  assert.match((await exportPlan("torch CSV")).bytes.toString(), /^0F0,/);
  assert.match((await exportPlan("Megatron-LM arguments")).bytes.toString(), /--pipeline-model-parallel-size \d+/);
  JSON.parse((await exportPlan("execution plan")).bytes);

  // The exported trace can be imported with all its slices.
  const trace = await exportPlan("Perfetto trace");
  const slices = JSON.parse(trace.bytes).traceEvents.filter((event) => event.ph === "X").length;
  const uploaded = await send("POST", "/traces?name=exported.json", trace.bytes, "application/octet-stream");
  assert.deepEqual([uploaded.status, uploaded.body.trace.slices], [201, slices]);
  assert.ok(uploaded.body.trace.actions > 0, "the import recognises the actions");
});

test("the draft survives a reload, and edits are undone and redone step by step", async () => {
  await page.goto("/new?ready=llama-2-7b-long-documents");
  await waitForPlanning(page);
  const nodes = await field(page, "/cluster/nodes").inputValue();
  await setNumber(page, "/cluster/nodes", 8);
  await waitForPlanning(page);
  for (const open of [() => page.reload(), () => page.goto("/new")]) {
    await open();
    await waitForPlanning(page);
    assert.equal(await field(page, "/cluster/nodes").inputValue(), "8", `the draft is restored after ${open}`);
  }
  await setNumber(page, "/cluster/nodes", 2);
  await waitForPlanning(page);
  await page.getByRole("button", { name: "Undo" }).click();
  await waitForPlanning(page);
  assert.equal(await field(page, "/cluster/nodes").inputValue(), "8");
  await page.getByRole("button", { name: "Redo" }).click();
  await waitForPlanning(page);
  assert.equal(await field(page, "/cluster/nodes").inputValue(), "2");
  assert.notEqual(nodes, "8");
});

test("a query of a megabyte is refused, languages and unknown words in it are ignored", async () => {
  const long = await fetch(`${fixture.server.url}/api/v1/scenarios?q=${"x".repeat(1 << 20)}`).catch(() => ({ status: 431 }));
  assert.ok([414, 431].includes(long.status), `${long.status}`);
  const odd = await fetch(`${fixture.server.url}/scenarios?lang=../../`, { headers: { "accept-language": "../../etc, x".repeat(50) } });
  assert.equal(odd.status, 200);
  assert.equal((await fetch(`${fixture.server.url}/api/v1/scenarios?lang=../../`)).status, 200);
});

for (const scheme of ["light", "dark"]) {
  test(`lists and error pages have no serious accessibility violation and no overflow, ${scheme}`, async () => {
    const deleted = await saveScenario("To be deleted", 990);
    await send("DELETE", `/scenarios/${deleted.id}`);
    await send("POST", "/datasets?name=lengths.txt", "512 1024 2048 4096 9000", "text/plain");
    const paths = [["gallery", "/"], ["scenarios", "/scenarios"], ["plans", "/plans"], ["datasets", "/datasets"], ["runs", "/runs"], ["traces", "/traces"], ["profiles", "/profiles"], ["deleted", `/s/${deleted.short}`], ["link-error", "/c/#z1.AAAA"]];
    const found = [];
    for (const width of [1440, 320]) {
      const listPage = await fixture.open({ scheme, width, height: 900, refusals: true });
      for (const [name, path] of paths) {
        await listPage.goto("about:blank");
        await listPage.goto(path);
        await listPage.locator("main h1").waitFor();
        await listPage.waitForLoadState("networkidle");
        await listPage.waitForFunction(() => !document.querySelector(".skeleton"));
        found.push(...(await findOverflow(listPage)).map((what) => `${name} at ${width} px: ${what}`));
        await listPage.screenshot({ path: join(screenshots, `${name}-browse-${width}-${scheme}.png`), fullPage: true });
        if (width === 320) continue;
        found.push(...(await findSeriousViolations(listPage)).map((text) => `${name}: ${text}`));
      }
      expectNoFaults(listPage);
      await listPage.context().close();
    }
    assert.deepEqual(found, []);
  });
}

test("a list is sorted, searched and edited, and a scenario is deleted and restored, all by keyboard", async () => {
  await page.goto("/scenarios");
  const pressEnter = async (name) => {
    await page.getByRole("button", { name }).focus();
    await page.keyboard.press("Enter");
  };
  await rows("scenarios").first().waitFor();
  await pressEnter(/^Name/);
  await waitForEqual(() => readNames("scenarios"), ["Alpha 100%", "Beta renamed", "Gamma <img src=x onerror=alert(1)>"], "by name");
  await page.getByTestId("scenarios-search").focus();
  await page.keyboard.type("Gamma");
  await waitForEqual(() => rows("scenarios").count(), 1, "one scenario matches");
  const name = page.getByLabel("Name", { exact: true });
  await pressEnter(/^Edit Gamma/);
  await name.waitFor();
  assert.ok(await name.evaluate((element) => element === document.activeElement), "the form has the focus");
  await page.keyboard.press("Escape");
  await name.waitFor({ state: "detached" });
  await pressEnter(/^Edit Gamma/);
  await name.waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("Gamma renamed");
  await page.keyboard.press("Enter");
  await waitForEqual(() => readNames("scenarios"), ["Gamma renamed"], "the new name is stored");
  const countStored = async () => (await fixture.server.get("/scenarios?q=Gamma%20renamed")).total;
  await pressEnter("Delete Gamma renamed");
  await waitForEqual(() => rows("scenarios").count(), 0, "deleted");
  await pressEnter("Undo");
  await waitForEqual(() => readNames("scenarios"), ["Gamma renamed"], "restored");
  await waitForEqual(countStored, 1, "stored");
  expectNoFaults(page);
});

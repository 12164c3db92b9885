// Accessibility: axe on each page in both themes, narrow screens, keyboard.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { findSeriousViolations } from "./axe.mjs";
import { expectNoFaults, findOverflow } from "./browser.mjs";
import { openReady, readWindow, waitForPlanning } from "./explore.mjs";
import { root } from "./server.mjs";
import { readmeScreenshots, screenshots, useFixture } from "./fixture.mjs";
import { readShifts, recordShifts } from "./layout_shifts.mjs";

const pages = [];
const fixture = useFixture(async ({ open }) => {
  // Create one object for each list.
  const page = await open();
  await openReady(page, "vlm-s-image-heavy");
  await page.getByTestId("save").click();
  const link = new URL(page.url()).pathname;
  await page.goto("/datasets");
  await page.getByTestId("upload").setInputFiles(join(root, "tests/e2e/fixtures/long_documents.csv"));
  await page.getByTestId("store-dataset").click();
  await page.getByTestId("stored-dataset").waitFor();
  await page.context().close();
  pages.push(
    ["gallery", "/"],
    ["check", "/check"],
    ["new", "/new"],
    ["explore", link],
    ["schedules", "/schedules"],
    ["scenarios", "/scenarios"],
    ["plans", "/plans"],
    ["datasets", "/datasets"],
    ["runs", "/runs"],
    ["traces", "/traces"],
    ["profiles", "/profiles"],
    ["papers", "/papers"],
    ["paper", "/papers/pipeweaver"],
    ["accuracy", "/accuracy"],
    ["access", "/access"],
  );
});

/** Opens a page and waits until all requests and charts are complete. */
async function open(page, name, path) {
  await page.goto(path);
  if (name === "explore" || name === "new") {
    await waitForPlanning(page, ["done", "infeasible"]);
    for (const canvas of await page.locator('canvas[data-testid^="gantt-"]').all()) await readWindow(canvas);
    await page.evaluate(() => scrollTo(0, 0));
  } else {
    await page.locator("main").waitFor();
  }
  await page.waitForLoadState("networkidle");
  await page.waitForFunction(() => !document.querySelector(".skeleton"));
}

for (const scheme of ["light", "dark"]) {
  test(`no page has a serious accessibility violation, ${scheme}`, async () => {
    const found = [];
    const page = await fixture.open({ scheme });
    for (const [name, path] of pages) {
      await open(page, name, path);
      found.push(...(await findSeriousViolations(page)).map((line) => `${name}: ${line}`));
    }
    expectNoFaults(page);
    await page.context().close();
    assert.deepEqual(found, []);
  });

  for (const width of [1440, 390]) {
    test(`no page overflows at ${width} px, ${scheme}`, async () => {
      const page = await fixture.open({ scheme, width, height: width > 1000 ? 1000 : 844 });
      const wide = [];
      for (const [name, path] of pages) {
        await open(page, name, path);
        wide.push(...(await findOverflow(page)).map((what) => `${name}: ${what}`));
        await page.screenshot({ path: join(screenshots, `${name}-${width}-${scheme}.png`), fullPage: width < 1000 });
        if (readmeScreenshots && width === 1440 && ["explore", "gallery"].includes(name)) {
          await page.screenshot({ path: join(readmeScreenshots, `${name}-${scheme}.png`) });
        }
      }
      expectNoFaults(page);
      await page.context().close();
      assert.deepEqual(wide, []);
    });
  }
}

test("the layout is stable while a page loads", async () => {
  const page = await fixture.open();
  await recordShifts(page);
  const jumpy = [];
  for (const [name, path] of pages) {
    await open(page, name, path);
    const { sum } = await readShifts(page);
    // Limit of a good layout shift in Lighthouse.
    if (sum > 0.1) jumpy.push(`${name}: ${sum.toFixed(3)}`);
  }
  await page.context().close();
  assert.deepEqual(jumpy, []);
});

test("pages do not overflow with forced colours and at 3,840 px, and the focus is visible with forced colours", async () => {
  for (const [look, settings] of [["forced", { forcedColors: "active", scheme: "dark" }], ["4k", { width: 3840, height: 2160 }]]) {
    const page = await fixture.open(settings);
    const wide = [];
    for (const [name, path] of pages) {
      await open(page, name, path);
      wide.push(...(await findOverflow(page)).map((what) => `${name}: ${what}`));
      await page.screenshot({ path: join(screenshots, `${name}-${look}.png`) });
    }
    assert.deepEqual(wide, []);
    if (look === "forced") {
      // With forced colours, the focus must be visible without colours of the style sheet.
      await page.goto("/");
      const link = page.getByTestId("new-scenario");
      const readOutline = () =>
        link.evaluate((element) => {
          const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(element);
          const background = getComputedStyle(document.body).backgroundColor;
          return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 && outlineColor !== background;
        });
      await link.waitFor();
      assert.ok(!(await readOutline()), "without focus, the link has no outline");
      await tabTo(page, "new-scenario");
      assert.ok(await readOutline(), "the focus has an outline");
    }
    expectNoFaults(page);
    await page.context().close();
  }
});

/** Asserts that no page overflows at this size. */
async function checkOverflow(width, height) {
  const page = await fixture.open({ width, height });
  const wide = [];
  for (const [name, path] of pages) {
    await open(page, name, path);
    wide.push(...(await findOverflow(page)).map((what) => `${name}: ${what}`));
  }
  await page.context().close();
  assert.deepEqual(wide, []);
}

test("usable at 320 px", () => checkOverflow(320, 640));
test("usable at 600 px", () => checkOverflow(600, 800));
test("usable at 768 px", () => checkOverflow(768, 1024));
test("usable at 1024 px", () => checkOverflow(1024, 768));

test("the charts are reachable by keyboard", async () => {
  const page = await fixture.open();
  await page.goto("/");
  await page.getByTestId("gallery-llama-2-7b-long-documents").waitFor();
  await page.keyboard.press("Tab");
  assert.match(await page.evaluate(() => document.activeElement.textContent), /skip/i, "the first Tab stop skips the header");
  await tabTo(page, "gallery-llama-2-7b-long-documents");
  await page.keyboard.press("Enter");
  await waitForPlanning(page);
  await tabTo(page, "gantt-1f1b");
  const outline = await page.evaluate(() => {
    const style = getComputedStyle(document.activeElement);
    return style.outlineStyle !== "none" || style.boxShadow !== "none";
  });
  assert.ok(outline, "the focus is visible");
  await page.keyboard.press("ArrowRight");
  await page.getByTestId("selection").getByText(/rank \d+/i).first().waitFor();
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  expectNoFaults(page);
  await page.context().close();
});

/** Presses Tab until the element with this test id has the focus. */
async function tabTo(page, id) {
  for (let presses = 0; presses < 250; presses += 1) {
    if ((await page.evaluate(() => document.activeElement?.dataset?.testid)) === id) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`${id} is not reached with 250 presses of Tab`);
}

test("the theme is stored", async () => {
  const page = await fixture.open();
  await page.goto("/");
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const first = await theme();
  for (let presses = 0; presses < 3 && (await theme()) === first; presses += 1) await page.getByTestId("theme").click();
  const chosen = await theme();
  assert.notEqual(chosen, first);
  await page.reload();
  await page.locator("main").waitFor();
  assert.equal(await theme(), chosen);
  expectNoFaults(page);
  await page.context().close();
});

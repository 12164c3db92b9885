// Helpers for the explore page: edit fields, wait for the outcome, read table and charts.
import assert from "node:assert/strict";

const PLANNING_TIMEOUT_MS = 120_000;
/** An answer counts when nothing has been under way for this long: edits are sent after a pause. */
const STABLE_MS = 700;

export const status = (page) => page.getByTestId("plan-status");
export const field = (page, pointer) => page.locator(`[data-pointer="${pointer}"]`);
export const gantt = (page, planner) => page.getByTestId(`gantt-${planner}`);
export const errorAt = (page, pointer) => page.locator(`[data-error-for="${pointer}"]`);

/** Waits until planning has ended in one of `states`, and stays there. */
export async function waitForPlanning(page, states = ["done"]) {
  await status(page).waitFor();
  const end = Date.now() + PLANNING_TIMEOUT_MS;
  let since = Date.now();
  let state;
  while (Date.now() < end) {
    const now = await status(page).getAttribute("data-state");
    if (now !== state || now === "planning") since = Date.now();
    state = now;
    if (Date.now() - since >= STABLE_MS) {
      if (states.includes(state)) return state;
      if (state !== "idle") break;
    }
    await page.waitForTimeout(50);
  }
  throw new Error(`planning is "${state}", expected ${states.join(" or ")}: ${await status(page).innerText()}`);
}

/** Opens a ready scenario by its link, with the layout that it fixes, and waits for its answer. */
export async function openReady(page, slug) {
  await page.goto(`/new?ready=${slug}`);
  await waitForPlanning(page);
}

/** Opens whatever hides a field: the editor on narrow screens, a folded group. */
export async function reveal(page, pointer) {
  await field(page, pointer).first().evaluate((element) => {
    for (let box = element.closest("details"); box; box = box.parentElement?.closest("details")) box.open = true;
  });
}

export async function setNumber(page, pointer, value) {
  await reveal(page, pointer);
  await field(page, pointer).fill(String(value));
}

/** Ticks exactly these planners. */
export async function choosePlanners(page, planners) {
  const all = ["gpipe", "1f1b", "interleaved", "wait_free_cyclic"];
  for (const planner of planners) await field(page, `/planners/${planner}`).setChecked(true);
  for (const planner of all.filter((name) => !planners.includes(name))) {
    await field(page, `/planners/${planner}`).setChecked(false);
  }
}

/** The ranking table as { planner: { metric: raw text } }. */
export function readRanking(page) {
  return page.getByTestId("ranking").evaluate((table) => {
    const rows = {};
    for (const row of table.querySelectorAll("tr[data-planner]")) {
      const cells = {};
      for (const cell of row.querySelectorAll("[data-metric]")) {
        cells[cell.dataset.metric] = cell.dataset.value ?? cell.textContent.trim();
      }
      rows[row.dataset.planner] = cells;
    }
    return rows;
  });
}

/** The stored scenario that the address bar names, and its outcome. */
export async function fetchScenario(page, server) {
  const short = /^\/s\/([a-z2-7]{10,52})$/.exec(new URL(page.url()).pathname)?.[1];
  assert.ok(short, `${page.url()} is not the link of a scenario`);
  const scenario = await server.get(`/scenarios/${short}`);
  return { short, scenario: scenario.scenario, outcome: (await server.get(`/scenarios/${scenario.id}/outcome`)).outcome };
}

/** What a chart shows, once it has painted. */
export async function readWindow(canvas) {
  await canvas.scrollIntoViewIfNeeded();
  const page = canvas.page();
  const end = Date.now() + 15_000;
  for (;;) {
    const spans = await canvas.getAttribute("data-painted-spans");
    if (spans !== null && Number(spans) > 0) break;
    assert.ok(Date.now() < end, `nothing painted: data-painted-spans is ${spans}`);
    await page.waitForTimeout(50);
  }
  return canvas.evaluate((element) => ({
    start: Number(element.dataset.startNs),
    end: Number(element.dataset.endNs),
    spans: Number(element.dataset.paintedSpans),
  }));
}

/** What a chart shows once its window differs from `before`. */
export async function readChangedWindow(canvas, before) {
  const page = canvas.page();
  const end = Date.now() + 5_000;
  for (;;) {
    const now = await readWindow(canvas);
    if (now.start !== before.start || now.end !== before.end) return now;
    assert.ok(Date.now() < end, `the window stays at ${before.start} to ${before.end} ns`);
    await page.waitForTimeout(50);
  }
}

/** Moves the pointer along the rows until a span lies under it, and answers where. */
export async function findSpan(canvas) {
  const page = canvas.page();
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  for (let share = 0.3; share < 0.9; share += 0.03) {
    for (const y of [9, 30]) {
      const at = { x: box.x + box.width * share, y: box.y + y };
      await page.mouse.move(at.x, at.y);
      await page.waitForTimeout(40);
      if (await page.locator(".gantt-tooltip").first().isVisible()) return at;
    }
  }
  assert.fail("no span under the pointer anywhere along the first two rows");
}

// Helpers for the explore page: edit fields, wait for the outcome, read the table and the charts.
import assert from "node:assert/strict";

const PLANNING_TIMEOUT_MS = 120_000;
/** Time for which the state must not change. The page sends an edit only after a pause. */
const STABLE_MS = 700;
/** A page opens its scenario within this time. */
const IDLE_TIMEOUT_MS = 15_000;

export const status = (page) => page.getByTestId("plan-status");
export const field = (page, pointer) => page.locator(`[data-pointer="${pointer}"]`);
export const gantt = (page, planner) => page.getByTestId(`gantt-${planner}`);
export const errorAt = (page, pointer) => page.locator(`[data-error-for="${pointer}"]`);

/** Waits until planning ends in one of `states` and the state is stable. Returns the state. */
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
      if (state !== "idle" || Date.now() - since >= IDLE_TIMEOUT_MS) break;
    }
    await page.waitForTimeout(50);
  }
  const what = state === "idle" ? "nothing is being planned" : `planning is "${state}"`;
  throw new Error(`${what}, expected ${states.join(" or ")}: ${await status(page).innerText()}`);
}

/** Opens a ready scenario by its link and waits for its outcome. */
export async function openReady(page, slug) {
  await page.goto(`/new?ready=${slug}`);
  await waitForPlanning(page);
}

/** Opens all `details` elements that contain a field: the editor on narrow screens, collapsed groups. */
export async function reveal(page, pointer) {
  await field(page, pointer).first().evaluate((element) => {
    for (let box = element.closest("details"); box; box = box.parentElement?.closest("details")) box.open = true;
  });
}

export async function setNumber(page, pointer, value) {
  await reveal(page, pointer);
  await field(page, pointer).fill(String(value));
}

/** Selects these planners, and deselects the other planners of `all`. */
export async function choosePlanners(page, planners) {
  const all = ["gpipe", "1f1b", "interleaved", "wait_free_cyclic"];
  for (const planner of planners) await field(page, `/planners/${planner}`).setChecked(true);
  for (const planner of all.filter((name) => !planners.includes(name))) {
    await field(page, `/planners/${planner}`).setChecked(false);
  }
}

/** Returns the table of plans as { planner: { metric: value as text } }. */
export function readRanking(page) {
  return page.getByTestId("ranking").evaluate((table) => {
    const rows = {};
    for (const row of table.querySelectorAll("tr[data-planner]")) {
      const cells = {};
      const details = row.nextElementSibling?.matches(".plan-details") ? row.nextElementSibling : null;
      for (const cell of [row, details].flatMap((part) => [...(part?.querySelectorAll("[data-metric]") ?? [])])) {
        cells[cell.dataset.metric] = cell.dataset.value ?? cell.textContent.trim();
      }
      rows[row.dataset.planner] = cells;
    }
    return rows;
  });
}

/** Fetches the stored scenario of the address bar and its outcome. */
export async function fetchScenario(page, server) {
  const short = /^\/s\/([a-z2-7]{10,52})$/.exec(new URL(page.url()).pathname)?.[1];
  assert.ok(short, `${page.url()} is not the link of a scenario`);
  const scenario = await server.get(`/scenarios/${short}`);
  return { short, scenario: scenario.scenario, outcome: (await server.get(`/scenarios/${scenario.id}/outcome`)).outcome };
}

/** Waits until a chart is painted. Returns its time window in ns and the number of painted spans. */
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

/** Waits until the time window of a chart differs from `before`, and returns it. */
export async function readChangedWindow(canvas, before) {
  const page = canvas.page();
  const end = Date.now() + 5_000;
  for (;;) {
    const now = await readWindow(canvas);
    if (now.start !== before.start || now.end !== before.end) return now;
    assert.ok(Date.now() < end, `the window is unchanged: ${before.start} to ${before.end} ns`);
    await page.waitForTimeout(50);
  }
}

/** Moves the pointer along the first two rows until it is over a span. Returns the position. */
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
  assert.fail("no span in the first two rows");
}

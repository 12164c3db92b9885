// Helpers for runs: shell commands, points, charts, selection of a scenario.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";

/** Starts a command in a folder. `kill` ends it with its child processes. */
export function startShell(command, folder) {
  const child = spawn("sh", ["-c", command], { cwd: folder, detached: true, stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  return {
    async kill() {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch (error) {
        if (error.code !== "ESRCH") throw error;
      }
      await ended;
    },
  };
}

/** Runs a command in a folder and returns its output. */
export const runShell = (command, folder) => execFileSync("sh", ["-c", command], { cwd: folder, encoding: "utf8" });

/** Fetches all points of a run. */
export async function fetchPoints(server, run) {
  const points = [];
  let after = 0;
  while (after !== undefined) {
    const page = await server.get(`/runs/${run}/points?after=${after}&limit=5000`);
    points.push(...page.points);
    after = page.next;
  }
  return points;
}

/** Reads a value until `isGood` accepts it, and returns it. */
export async function waitForValue(read, isGood, what, timeoutMs = 30_000) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const found = await read();
    if (isGood(found)) return found;
    assert.ok(Date.now() < end, `${what}: still ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Returns the number of points in a chart of the run page. */
export async function countDrawnPoints(page, metric) {
  const chart = page.getByTestId(`chart-${metric}`);
  if ((await chart.count()) === 0) return 0;
  return Number(await chart.getAttribute("data-points"));
}

/** Selects a stored scenario for a run, in the search field. */
export async function chooseScenario(page, id, query = "") {
  const field = page.getByTestId("choose-scenario");
  await field.click();
  if (query) await field.fill(query);
  await page.locator(`[data-testid="scenario-offers"] [data-offer="${id}"]`).click();
  await page.locator(`[data-testid="choose-scenario"][data-scenario="${id}"]`).waitFor();
}

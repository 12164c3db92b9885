// Time from a change of a slider to the painted charts: with 64 devices, and with a planner whose search takes seconds.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openPage } from "../browser.mjs";
import { root } from "../server.mjs";

/** 64 devices and three planners, one of them dynamic. */
const SCENARIO = {
  schema: "scenario/1",
  title: "What if, 64 devices",
  model: { preset: "llama-2-7b" },
  cluster: { preset: "a100-80gb", nodes: 8 },
  workload: {
    samples: {
      kind: "drawn",
      text_tokens: { kind: "log_normal", median: 3200, sigma: 0.75, min: 64, max: 65536 },
      images: { kind: "constant", value: 0 },
    },
    global_batch: 256,
    context_length: 32768,
    packing: "single",
  },
  layout: { tensor: 4, pipeline: 4 },
  planners: ["1f1b", "interleaved", "wait_free_cyclic"],
  seed: 11,
  iterations: 4,
};

/** Ready scenario on 16 devices. PipeWeaver plans without its search while the number of images changes. */
const IMAGES = JSON.parse(readFileSync(join(root, "examples/vlm-s-image-heavy.json"), "utf8"));

/** Scenario, changed field, steps that are repeated in order, and number of changes. */
const MOVEMENTS = {
  /** A slider alternates between two positions. The outcome of one is stored, the other, with half of the samples, is planned each time. */
  alternating: { scenario: SCENARIO, field: '[data-slider-for="/workload/global_batch"]', steps: [-1, 1], moves: 60 },
  /** A number increases, so every value is planned for the first time. */
  increasing: { scenario: SCENARIO, field: '[data-pointer="/workload/samples/text_tokens/median"]', steps: [16], moves: 60 },
  /** The number of images decreases. */
  images: { scenario: IMAGES, field: '[data-slider-for="/workload/samples/images/max"]', steps: [-1], moves: 24 },
};

/** Changes a field repeatedly. Returns median, 95th percentile and maximum of the time in ms from the event to the painted result. */
export async function measureWhatIf(server, browser, name) {
  const movement = MOVEMENTS[name];
  const headers = { origin: server.url, "content-type": "application/json" };
  const stored = await fetch(`${server.url}/api/v1/scenarios`, { method: "PUT", headers, body: JSON.stringify(movement.scenario) });
  const { id } = await stored.json();
  const page = await openPage(browser, server);
  await page.goto(`/s/${id}`);
  await page.waitForFunction(
    (planners) => planners.every((id) => Number(document.querySelector(`[data-testid="gantt-${id}"]`)?.dataset.paintedSpans) > 0),
    movement.scenario.planners,
    { timeout: 120_000 },
  );
  await page.waitForTimeout(1500);
  const times = await page.evaluate(async ({ field: name, steps, moves, scenario }) => {
    const field = document.querySelector(name);
    for (let box = field.closest("details"); box; box = box.parentElement?.closest("details")) box.open = true;
    const charts = scenario.planners.map((id) => document.querySelector(`[data-testid="gantt-${id}"]`));
    const times = [];
    for (let move = 0; move < moves; move += 1) {
      const before = charts.map((chart) => chart.dataset.endNs + chart.dataset.paintedSpans);
      const moved = Number(field.value) + steps[move % steps.length];
      const start = performance.now();
      field.value = String(moved);
      field.dispatchEvent(new Event("input", { bubbles: true }));
      const changed = () => charts.every((chart, index) => chart.dataset.endNs + chart.dataset.paintedSpans !== before[index]);
      while (!changed()) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        if (performance.now() - start > 10_000) throw new Error("the charts did not change within 10 s");
      }
      times.push(performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    return times.sort((a, b) => a - b);
  }, movement);
  await page.context().close();
  const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
  return { median: at(0.5), p95: at(0.95), worst: at(1) };
}

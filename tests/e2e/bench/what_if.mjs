// From the movement of a slider to the painted chart, with 64 devices.
import { openPage } from "../browser.mjs";

/** 64 devices, three planners, one of them dynamic. */
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

/** The field that moves, and by how much, in turn. */
const WAYS = {
  /** A slider to and fro between two positions: one is stored already, the other, of half the size, is planned each time. */
  toAndFro: { field: '[data-slider-for="/workload/global_batch"]', steps: [-1, 1] },
  /** A number drawn on and on: every value is planned for the first time. */
  onAndOn: { field: '[data-pointer="/workload/samples/text_tokens/median"]', steps: [16] },
};

/** Moves a field; times in ms from the event to the paint that follows its answer. */
export async function measureWhatIf(server, browser, way, moves = 60) {
  const headers = { origin: server.url, "content-type": "application/json" };
  const stored = await fetch(`${server.url}/api/v1/scenarios`, { method: "PUT", headers, body: JSON.stringify(SCENARIO) });
  const { id } = await stored.json();
  const page = await openPage(browser, server);
  await page.goto(`/s/${id}`);
  await page.waitForFunction(
    () => Number(document.querySelector('[data-testid="gantt-wait_free_cyclic"]')?.dataset.paintedSpans) > 0,
    undefined,
    { timeout: 120_000 },
  );
  await page.waitForTimeout(1500);
  const times = await page.evaluate(async ([moves, way]) => {
    const field = document.querySelector(way.field);
    for (let box = field.closest("details"); box; box = box.parentElement?.closest("details")) box.open = true;
    const charts = ["1f1b", "interleaved", "wait_free_cyclic"].map((id) => document.querySelector(`[data-testid="gantt-${id}"]`));
    const times = [];
    for (let move = 0; move < moves; move += 1) {
      const before = charts.map((chart) => chart.dataset.endNs + chart.dataset.paintedSpans);
      const moved = Number(field.value) + way.steps[move % way.steps.length];
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
  }, [moves, WAYS[way]]);
  await page.context().close();
  const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
  return { median: at(0.5), p95: at(0.95), worst: at(1) };
}

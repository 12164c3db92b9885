// Speed of large charts in Chromium without a GPU: first paint, and frames during panning and zooming.
import { openPage } from "../browser.mjs";

/** Creates a scenario with one plan of about 256 spans per sample: 64 stages, forward, backward and a send after each. */
function createScenario(samples) {
  return {
    schema: "scenario/1",
    title: `Chart of ${samples} microbatches in 64 stages`,
    model: { preset: "gpt-3-1t" },
    cluster: { preset: "a100-80gb", nodes: 64 },
    workload: {
      samples: {
        kind: "drawn",
        text_tokens: { kind: "log_normal", median: 1500, sigma: 0.5, min: 64, max: 2048 },
        images: { kind: "constant", value: 0 },
      },
      global_batch: samples,
      context_length: 2048,
      packing: "single",
    },
    training: { recompute: "full" },
    layout: { tensor: 8, pipeline: 64, microbatch: 1 },
    planners: ["1f1b"],
    seed: 1,
    iterations: 1,
  };
}

/** Plans a scenario over HTTP, so that the page loads a stored outcome. Returns the identifier. */
async function planScenario(server, definition) {
  const headers = { origin: server.url, "content-type": "application/json" };
  const stored = await fetch(`${server.url}/api/v1/scenarios`, { method: "PUT", headers, body: JSON.stringify(definition) });
  const scenario = await stored.json();
  if (!stored.ok) throw new Error(`the scenario was rejected: ${JSON.stringify(scenario)}`);
  const started = await fetch(`${server.url}/api/v1/scenarios/${scenario.id}/plan`, { method: "POST", headers });
  if (!started.ok) throw new Error(`planning was rejected: ${await started.text()}`);
  const { id: job } = await started.json();
  for (;;) {
    const { state } = await server.get(`/jobs/${job}`);
    if (state.state === "done") return scenario.id;
    if (["failed", "cancelled"].includes(state.state)) throw new Error(`planning ended without an outcome: ${JSON.stringify(state)}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Presses keys for two seconds. Returns frames per second, and median and 95th percentile of the time between frames in ms. */
async function measureFrames(page, chart, keys) {
  await chart.focus();
  return page.evaluate(async ({ keys, chart }) => {
    const canvas = document.querySelector(chart);
    const times = [];
    let last = performance.now();
    const end = last + 2000;
    let step = 0;
    while (last < end) {
      canvas.dispatchEvent(new KeyboardEvent("keydown", { key: keys[step % keys.length], bubbles: true }));
      step += 1;
      const now = await new Promise((resolve) => requestAnimationFrame(resolve));
      times.push(now - last);
      last = now;
    }
    times.sort((a, b) => a - b);
    const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
    return { frames: times.length / 2, median: at(0.5), p95: at(0.95) };
  }, { keys, chart: '[data-testid="gantt-1f1b"]' });
}

/** Measures the chart of a plan with this number of samples. */
export async function measureGantt(server, browser, samples) {
  const id = await planScenario(server, createScenario(samples));
  const page = await openPage(browser, server);
  // Load the modules first, as for a user who comes from the gallery.
  await page.goto("/");
  await page.getByTestId("gallery-llama-2-7b-long-documents").waitFor();
  const before = Date.now();
  await page.goto(`/s/${id}`, { waitUntil: "commit" });
  const chart = page.getByTestId("gantt-1f1b");
  const waitForPaint = async (what) => {
    await page.waitForFunction(
      (what) => {
        const canvas = document.querySelector('[data-testid="gantt-1f1b"]');
        return canvas && Number(canvas.dataset.paintedSpans) > 0 && (what === undefined || canvas.dataset.painted === what);
      },
      what,
      { polling: "raf", timeout: 120_000 },
    );
    return Date.now() - before;
  };
  const first = await waitForPaint();
  const whole = await waitForPaint("spans");
  await page.waitForTimeout(1500);
  const label = await chart.getAttribute("aria-label");
  const spans = Number(/and ([\d,\s\u202f]+) spans/.exec(label)?.[1].replace(/\D/g, ""));
  const panned = await (async () => {
    for (let press = 0; press < 6; press += 1) await page.keyboard.press("w");
    return measureFrames(page, chart, ["d", "d", "d", "a", "a", "a"]);
  })();
  await page.keyboard.press("f");
  const zoomed = await measureFrames(page, chart, ["w", "w", "w", "w", "s", "s", "s", "s"]);
  await page.keyboard.press("f");
  const far = await measureFrames(page, chart, ["w", "s"]);
  await page.context().close();
  return { spans, first, whole, panned, zoomed, far };
}

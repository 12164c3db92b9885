// First visit of the gallery, with an empty cache.
import { openPage } from "../browser.mjs";

/** Returns the median time in ms from navigation to the first card, and the largest layout shift and transferred kB of five loads. */
export async function measureGallery(server, browser) {
  const loads = [];
  for (let load = 0; load < 5; load += 1) {
    const page = await openPage(browser, server);
    await page.addInitScript(() => {
      window.shift = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    const network = await page.context().newCDPSession(page);
    await network.send("Network.enable");
    let wire = 0;
    network.on("Network.loadingFinished", ({ encodedDataLength }) => (wire += encodedDataLength / 1000));
    await page.goto("/", { waitUntil: "commit" });
    await page.waitForFunction(() => document.querySelector('[data-testid^="gallery-"]')?.getBoundingClientRect().height > 0, undefined, {
      polling: "raf",
    });
    const painted = await page.evaluate(() => performance.now());
    await page.waitForLoadState("networkidle");
    await page.waitForTimeout(1000);
    loads.push({ painted, wire, shift: await page.evaluate(() => window.shift) });
    await page.context().close();
  }
  loads.sort((a, b) => a.painted - b.painted);
  const largest = (name) => Math.max(...loads.map((load) => load[name]));
  return { painted: loads[2].painted, shift: largest("shift"), wire: largest("wire") };
}

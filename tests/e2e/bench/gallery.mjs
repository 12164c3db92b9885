// The gallery as a first visitor sees it: nothing in the cache.
import { openPage } from "../browser.mjs";

/** Time from the navigation to the first card on screen, in ms, and the layout shift until everything is quiet. */
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
    await page.goto("/", { waitUntil: "commit" });
    await page.waitForFunction(() => document.querySelector('[data-testid^="gallery-"]')?.getBoundingClientRect().height > 0, undefined, {
      polling: "raf",
    });
    const painted = await page.evaluate(() => performance.now());
    await page.waitForTimeout(1000);
    loads.push({ painted, shift: await page.evaluate(() => window.shift) });
    await page.context().close();
  }
  loads.sort((a, b) => a.painted - b.painted);
  return { painted: loads[2].painted, shift: Math.max(...loads.map((load) => load.shift)) };
}

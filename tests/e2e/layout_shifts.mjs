// Layout shifts while a page loads.

/** Records the layout shifts without recent input, from the start of the page. */
export const recordShifts = (page) =>
  page.addInitScript(() => {
    globalThis.shifts = [];
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries()) {
        if (!hadRecentInput) globalThis.shifts.push([value, sources.map(({ node }) => node?.className || node?.nodeName).join(" ")]);
      }
    }).observe({ type: "layout-shift", buffered: true });
  });

/** Waits until the page is at rest. Returns the sum of its layout shifts, and each shift with the elements that moved. */
export async function readShifts(page) {
  await waitForRest(page);
  const shifts = await page.evaluate(() => globalThis.shifts);
  return { sum: shifts.reduce((all, [value]) => all + value, 0), shifts };
}

/** Waits until no request runs, no placeholder is left, and no element changes for 300 ms. */
async function waitForRest(page) {
  await page.waitForLoadState("networkidle");
  await page.waitForFunction(() => !document.querySelector(".skeleton"));
  await page.evaluate(
    () =>
      new Promise((resolve, reject) => {
        let timer;
        const wait = () => {
          clearTimeout(timer);
          timer = setTimeout(resolve, 300);
        };
        new MutationObserver(wait).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
        wait();
        setTimeout(() => reject(new Error("the page changes all the time")), 15_000);
      }),
  );
}

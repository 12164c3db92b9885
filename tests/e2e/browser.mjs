// Starts Chromium and opens pages that record faults.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const CHROMIUM_PATHS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

export async function startBrowser() {
  const executablePath = process.env.CHROMIUM ?? CHROMIUM_PATHS.find((place) => existsSync(place));
  if (!executablePath) throw new Error("no Chromium found: set CHROMIUM to its path, or run `cargo xtask setup`");
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}

/**
 * Opens a page in a new context. `page.faults` lists console errors, uncaught exceptions, violations of the content
 * security policy, requests to other origins, and responses with status 500 and above. `expectNoFaults` asserts that it is empty.
 */
export async function openPage(browser, server, { scheme = "light", width = 1440, height = 1000, refusals = false, forcedColors = "none" } = {}) {
  const context = await browser.newContext({
    baseURL: server.url,
    colorScheme: scheme,
    viewport: { width, height },
    reducedMotion: "reduce",
    forcedColors,
  });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: server.url });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  page.faults = [];
  page.on("console", (message) => {
    // The browser reports each rejected request as an error. Only tests with `refusals` expect rejected requests.
    const isExpectedRefusal = refusals && /status of 4\d\d/.test(message.text());
    if (message.type() === "error" && !isExpectedRefusal) page.faults.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => page.faults.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (to.protocol.startsWith("http") && to.origin !== server.url) page.faults.push(`request to ${to.origin}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 500) page.faults.push(`${response.status()} from ${response.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  return page;
}

/** Returns one line for each overflow at the right edge of the window: the page, or a control in the header. */
export async function findOverflow(page) {
  return page.evaluate(() => {
    const edge = document.documentElement.clientWidth;
    const found = [["the page", document.documentElement.scrollWidth]];
    for (const control of document.querySelectorAll("header a, header button, header summary")) {
      found.push([control.textContent.trim() || control.ariaLabel, control.getBoundingClientRect().right]);
    }
    return found.filter(([, right]) => right > edge + 0.5).map(([what, right]) => `${what} by ${Math.round(right - edge)} px`);
  });
}

export function expectNoFaults(page) {
  assert.deepEqual(page.faults, []);
}

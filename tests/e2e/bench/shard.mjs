// Preview of a large local Parquet file on the page of datasets: time and memory.
import { readdirSync, readFileSync } from "node:fs";
import { openPage } from "../browser.mjs";

const field = (status, name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) / 1024;

/** Returns the memory of Chromium and the server in MiB, without mapped files. */
function measureMemoryMib(server) {
  let mib = 0;
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, "latin1");
      if (Number(entry) !== server.pid && !command.includes("chrom")) continue;
      const status = readFileSync(`/proc/${entry}/status`, "latin1");
      mib += field(status, "RssAnon") + field(status, "RssShmem");
    } catch {
      // The process has ended.
    }
  }
  return mib;
}

/** Returns the seconds from selection of the file to its preview, and the largest increase of memory in MiB, sampled every 50 ms. */
export async function measureShard(server, browser, file) {
  const page = await openPage(browser, server);
  await page.goto("/datasets");
  await page.getByTestId("upload").waitFor({ state: "attached" });
  await page.waitForTimeout(1000);
  const before = measureMemoryMib(server);
  let peak = before;
  const sampling = setInterval(() => (peak = Math.max(peak, measureMemoryMib(server))), 50);
  const start = performance.now();
  await page.getByTestId("upload").setInputFiles(file);
  await page.getByTestId("preview-figures").waitFor({ timeout: 120_000 });
  const seconds = (performance.now() - start) / 1000;
  clearInterval(sampling);
  const figures = await page.getByTestId("preview-figures").innerText();
  await page.context().close();
  return { seconds, mib: peak - before, figures };
}

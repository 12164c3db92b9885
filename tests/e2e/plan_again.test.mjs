// Planning again after a failure or a cancellation.
import assert from "node:assert/strict";
import { test } from "node:test";
import { field, gantt, readWindow, setNumber, status, waitForPlanning } from "./explore.mjs";
import { useFixture } from "./fixture.mjs";

const fixture = useFixture();

test("failed timelines are fetched again on retry", async () => {
  const page = await fixture.open();
  await page.route("**/timelines/**", (route) => route.abort());
  await page.goto("/new?ready=llama-2-7b-long-documents");
  await waitForPlanning(page, ["error"]);
  await page.unroute("**/timelines/**");
  await page.locator(".middle").getByRole("button", { name: "Try again" }).first().click();
  await waitForPlanning(page);
  assert.ok((await readWindow(gantt(page, "1f1b"))).spans > 0);
  await page.context().close();
});

test("a cancelled request can be planned again", async () => {
  const page = await fixture.open();
  await page.goto("/new?ready=llama-2-7b-long-documents");
  await waitForPlanning(page);
  // The request gets no response, so that it can be cancelled.
  await page.route("**/api/v1/scenarios/*/plan", () => {});
  await setNumber(page, "/workload/global_batch", 24);
  await page.locator(".status").getByRole("button", { name: "Cancel" }).click();
  await page.getByTestId("plan-cancelled").waitFor();
  assert.match(await status(page).innerText(), /^Cancelled; the last answer is shown/);
  await page.unroute("**/api/v1/scenarios/*/plan");
  await page.getByTestId("plan-cancelled").click();
  await waitForPlanning(page);
  assert.equal(await page.getByTestId("plan-cancelled").count(), 0);
  assert.equal(await field(page, "/workload/global_batch").inputValue(), "24");
  await page.context().close();
});

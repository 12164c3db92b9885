// Reporter: one line per failed test, for the summary.

/** What went wrong, down to its cause; `node:test` wraps errors of tests in one of its own. */
const describe = (error) => {
  const own = error?.cause ?? error;
  const text = own?.message ?? String(own);
  return text.replace(/\x1b\[[0-9;]*m/g, "").replace(/\s+/g, " ").slice(0, 600);
};

/** The place in the test where it failed, not in a helper or a library. */
const findPlace = (error) => /\((?:file:\/\/)?[^()]*?(\w+\.test\.mjs:\d+):\d+\)/.exec((error?.cause ?? error)?.stack ?? "")?.[1];

export default async function* failures(events) {
  for await (const { type, data } of events) {
    const error = data?.details?.error;
    // A file fails with its tests, which say more.
    if (type !== "test:fail" || error?.failureType === "subtestsFailed") continue;
    yield `${[data.name, findPlace(error), describe(error)].filter(Boolean).join(" | ")}\n`;
  }
}

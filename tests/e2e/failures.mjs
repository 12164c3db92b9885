// Reporter of node:test that prints one line per failed test, for the summary. It begins with the test file.

/** Returns the message of the original error. `node:test` wraps the errors of tests. */
const describe = (error) => {
  const own = error?.cause ?? error;
  const text = own?.message ?? String(own);
  return text.replace(/\x1b\[[0-9;]*m/g, "").replace(/\s+/g, " ").slice(0, 600);
};

/** Returns file and line in the test, not in a helper or a library. */
const findPlace = (error) => /\((?:file:\/\/)?[^()]*?(\w+\.test\.mjs:\d+):\d+\)/.exec((error?.cause ?? error)?.stack ?? "")?.[1];

export default async function* failures(events) {
  for await (const { type, data } of events) {
    const error = data?.details?.error;
    // If a test fails, its file fails too. The error of the file has no details.
    if (type !== "test:fail" || error?.failureType === "subtestsFailed") continue;
    yield `${[data.file, data.name, findPlace(error), describe(error)].filter(Boolean).join(" | ")}\n`;
  }
}

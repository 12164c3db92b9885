// Sizes of the wasm modules: the main module, the modules of each page, all modules.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Returns sizes in kB as [raw, brotli]: `first` of the gallery, `pages` of the first load of each page, `largest` of one file, `all` of all files. */
export async function measureSize(assets) {
  const files = readdirSync(assets);
  const named = (start, end) => files.find((name) => name.startsWith(start) && name.endsWith(end));
  const size = (name) => [name, `${name}.br`].map((file) => statSync(join(assets, file)).size / 1e3);
  const sum = (names) => names.map(size).reduce(([raw, brotli], [a, b]) => [raw + a, brotli + b], [0, 0]);
  const main = named("planscope_bg.", ".wasm");
  const { pageFiles } = await import(pathToFileURL(join(assets, named("page_files.", ".js"))));
  const parts = files.filter((name) => name.endsWith(".wasm"));
  const first = Object.entries(pageFiles).map(([page, needed]) => {
    const names = needed.map((name) => name.replace("./", ""));
    return { page, files: names.length + 1, size: sum([main, ...names]) };
  });
  return {
    first: size(main),
    pages: first.sort((a, b) => b.size[0] - a.size[0]),
    largest: parts.map(size).sort(([a], [b]) => b - a)[0],
    all: sum(parts),
    parts: parts.length,
  };
}

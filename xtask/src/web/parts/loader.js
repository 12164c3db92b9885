// Fetches the modules of lazily loaded pages. The main module calls a loader, which calls back through the function table that all modules share.
import { initSync } from "./planscope.js";
import { pageFiles } from "./page_files.js";

const parts = new Map();

/** Instantiates a module once. A module that failed to load is fetched again at the next call. */
function load(file) {
  let part = parts.get(file);
  if (!part) {
    // Without an argument, this returns the exports of the main module.
    part = WebAssembly.instantiateStreaming(fetch(new URL(file, import.meta.url)), { __wasm_split: initSync() });
    part.catch(() => parts.delete(file));
    parts.set(file, part);
  }
  return part;
}

const loadPage = (page) => async (callback, data) => {
  let isLoaded = true;
  try {
    await Promise.all(pageFiles[page].map(load));
  } catch (error) {
    console.error(error);
    isLoaded = false;
  }
  initSync().__indirect_function_table.get(callback)(data, isLoaded);
};


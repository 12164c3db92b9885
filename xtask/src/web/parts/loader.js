// Fetches the parts of rooms. The main part calls a door, which answers through the table of functions that all parts share.
import { initSync } from "./planscope.js";
import { rooms } from "./rooms.js";

const parts = new Map();

/** Starts a part beside the program, once; one that failed is asked for again at the next call. */
function load(file) {
  let part = parts.get(file);
  if (!part) {
    // Without a module to start, this answers what the main part exports.
    part = WebAssembly.instantiateStreaming(fetch(new URL(file, import.meta.url)), { __wasm_split: initSync() });
    part.catch(() => parts.delete(file));
    parts.set(file, part);
  }
  return part;
}

const door = (room) => async (callback, data) => {
  let there = true;
  try {
    await Promise.all(rooms[room].map(load));
  } catch (error) {
    console.error(error);
    there = false;
  }
  initSync().__indirect_function_table.get(callback)(data, there);
};


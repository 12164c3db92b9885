// Writes FILE.gz and FILE.br beside every compressible FILE of a folder: compress.mjs FOLDER BROTLI_QUALITY
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const [folder, quality] = process.argv.slice(2);
const compressible = /\.(html|css|js|wasm|svg|json|txt|webmanifest)$/;

for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !compressible.test(entry.name)) continue;
  const path = join(entry.parentPath ?? entry.path, entry.name);
  const content = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
  writeFileSync(
    `${path}.br`,
    brotliCompressSync(content, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: Number(quality),
        [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
      },
    }),
  );
}

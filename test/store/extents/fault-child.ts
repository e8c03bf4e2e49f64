/**
 * A process that writes to a content cache despite failures: `bun fault-child.ts <folder> <roots>`. Prints
 * the number of each flushed root.
 * @module
 */
import { writeSync } from "node:fs";
import { madeBytes } from "../../chain/data-node.ts";
import { killedRoot, killedRootBytes, openKilledExtents } from "./killed-roots.ts";

const [folder = "", roots = "0"] = process.argv.slice(2);

/** A cache that cannot be opened is reported to every caller. */
function opened() {
  try {
    return openKilledExtents(folder);
  } catch {
    writeSync(1, "not opened\n");
    process.exit(0);
  }
}

const extents = opened();
for (let number = 0; number < Number(roots); number += 1) {
  const bytes = madeBytes(number, killedRootBytes);
  let isWhole = true;
  for (let at = 0; at < bytes.length; at += 650_000)
    await extents.write(killedRoot(number), at, bytes.subarray(at, at + 650_000)).catch(() => {
      isWhole = false;
    });
  const isPresent = extents.present(killedRoot(number), { start: 0, end: killedRootBytes });
  if ((await extents.flush().catch(() => false)) && isWhole && isPresent) writeSync(1, `${number}\n`);
}
await extents.close().catch(() => "nothing more was written down");
process.exit(0);

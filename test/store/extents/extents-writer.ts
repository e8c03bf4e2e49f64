/**
 * A process that writes to a content cache until it is killed, and prints the number of each flushed root.
 * Arguments: folder, first root's number.
 * @module
 */
import { madeBytes } from "../../chain/data-node.ts";
import { killedRoot, killedRootBytes, openKilledExtents } from "./killed-roots.ts";

const [folder = "", first = "0"] = process.argv.slice(2);
const extents = openKilledExtents(folder, 24 * 2 ** 20);
for (let number = Number(first); ; number++) {
  const bytes = madeBytes(number, killedRootBytes);
  for (let at = 0; at < bytes.length; at += 250_000) {
    await extents.write(killedRoot(number), at, bytes.subarray(at, at + 250_000));
  }
  if (number % 4 === 3 && (await extents.flush())) process.stdout.write(`${number}\n`);
}

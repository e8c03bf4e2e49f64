/**
 * A process that indexes until it is killed: `bun kill-child.ts <folder> <node URL>`. Prints a line when it
 * has begun.
 * @module
 */
import { openWhole } from "../indexing/indexing-fixture.ts";

const [folder = "", url = ""] = process.argv.slice(2);
await openWhole({ folder, nodeUrls: [url] });
console.log("begun");

/**
 * A process whose disk fails: replaces a file, or makes a database, and prints how that ended.
 * @module
 */
import { writeIdentity } from "../../src/store/database-identity.ts";
import { replaceFile } from "../../src/store/durable-file.ts";

const [what = "", path = ""] = process.argv.slice(2);
try {
  if (what === "replace") replaceFile(path, "new");
  else writeIdentity(path, { id: "one", generation: 1 }, { pageBytes: 8_192 });
  process.stdout.write("done");
} catch (error) {
  process.stdout.write(error instanceof Error && "code" in error ? String(error.code) : String(error));
}

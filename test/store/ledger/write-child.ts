/**
 * A process that writes some transactions, one after another: `bun write-child.ts <file> <count>`. Prints a line
 * each: done, or the failure.
 * @module
 */
import { Failure } from "../../../src/failures.ts";
import { openSqliteLedger } from "../../../src/store/ledger/sqlite-ledger.ts";

const [path = "", count = "0"] = process.argv.slice(2);
const ledger = await openSqliteLedger({ path });
for (let index = 0; index < Number(count); index += 1) {
  const said = await ledger
    .write((tx) => tx.run("INSERT INTO events (source, event_id, at) VALUES ('child', ?, 1)", `${index}`))
    .then(
      () => "done",
      (error) => (error instanceof Failure ? error.code : String(error)),
    );
  console.log(said);
}
process.exit(0);

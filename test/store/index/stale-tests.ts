/**
 * A writer whose items were tested in the filters of an index as it was some calls ago, as those are that a thread has
 * verified.
 * @module
 */
import { createFilterKeys, filterSecretOf } from "../../../src/store/index/filter-key.ts";
import type { IndexWriter } from "../../../src/store/index/index-writer.ts";
import { createPartReads } from "../../../src/store/index/parts/part-reads.ts";
import { encodeItems, serializeBatch, withTestedIds } from "../../../src/store/index/rows/row-batch.ts";
import { closeDatabase, openForReading } from "../../../src/store/sqlite.ts";
import type { Random } from "../../support/random.ts";

export function createStaleTests(
  writer: IndexWriter,
  path: string,
  random: Random,
): Readonly<{ writer: IndexWriter; close: () => void }> {
  const db = openForReading(path, 2 ** 18);
  const keys = createFilterKeys(filterSecretOf(db, path));
  const parts = createPartReads(db);
  /** The index is seen as it is now until the next call. */
  const renew = (): void => {
    if (db.inTransaction) db.run("COMMIT");
    db.run("BEGIN");
    parts.list();
  };
  renew();
  return {
    writer: {
      ...writer,
      addItems: (batch) => {
        if (random.chance(0.3)) renew();
        if (!Array.isArray(batch.rows)) return writer.addItems(batch);
        return writer.addItems({
          ...batch,
          rows: serializeBatch(withTestedIds(encodeItems(batch.rows, keys), parts.testIds)),
        });
      },
    },
    close: () => {
      db.run("COMMIT");
      closeDatabase(db);
    },
  };
}

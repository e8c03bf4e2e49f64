/**
 * A data folder with an index of an earlier release: the program starts with it, and serves all of its rows.
 * @module
 */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { noColumns } from "../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { temporaryFolder } from "../store/folder.ts";
import { copyOldIndex, type OldIndex } from "../store/index/old-index.ts";
import { firstLine, repositoryRoot } from "../support/program.ts";

/** The ids of an index's rows, read from a copy that was migrated here. */
function idsOf(kind: OldIndex): readonly string[] {
  using folder = temporaryFolder();
  const path = copyOldIndex(folder.path, kind);
  openIndexWriter(path, { clock: () => 0 }).close();
  const reader = openIndexReader(path);
  const { rows } = reader.page({ order: "asc", limit: 1_000, columns: noColumns });
  reader.close();
  return rows.map(({ id }) => id);
}

test.each(["postings", "among-keys"] as const)(
  "an index with ids %s is opened by the program, which finds each of its rows",
  async (kind) => {
    const ids = idsOf(kind);
    expect(ids).toHaveLength(179);
    using folder = temporaryFolder();
    copyOldIndex(folder.path, kind);
    const child = Bun.spawn(
      [process.execPath, resolve(repositoryRoot, "src/main.ts"), "serve", "--port", "0", "--json"],
      {
        // No node listens there: the rows are those of the index.
        env: { ...process.env, DATA_DIR: folder.path, TRUSTED_NODE_URL: "http://127.0.0.1:9" },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "ignore",
      },
    );
    try {
      const { gateway } = JSON.parse(await firstLine(child.stdout));
      const query = `query($ids: [ID!]) { transactions(ids: $ids, first: 1000) { edges { node { id } } } }`;
      const found: string[] = [];
      for (const id of ids) {
        const response = await fetch(`${gateway}/graphql`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ query, variables: { ids: [id] } }),
        });
        for (const { node } of (await response.json()).data.transactions.edges) found.push(node.id);
      }
      expect(found).toEqual([...ids]);
    } finally {
      child.kill("SIGTERM");
    }
    expect(await child.exited).toBe(0);
  },
  120_000,
);

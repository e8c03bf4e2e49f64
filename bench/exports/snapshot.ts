/**
 * `cairn snapshot fetch`: the time from an empty folder to the first page of a query, from a gateway on this machine.
 *
 * The rows are generated, so that no block has them: the proofs of a sample are measured with real items, and added.
 * @module
 */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { stableDepth } from "../../src/store/index/index-types.ts";
import { type DevLine, repositoryRoot, startDev } from "../../test/support/program.ts";
import { eventually } from "../../test/support/until.ts";
import type { Bench } from "../harness.ts";
import { writeGenerated } from "./columnar.ts";

const sizes = { small: { items: 4_000, proofs: 10 }, large: { items: 1_000_000, proofs: 1_000 } } as const;

const program = resolve(repositoryRoot, "src/main.ts");

export const snapshotBench: Bench = {
  name: "snapshot",
  measure: async (size) => {
    const { items, proofs } = sizes[size];
    const work = mkdtempSync(join(tmpdir(), "cairn-bench-snapshot-"));
    const dev = await startDev();
    try {
      const { line } = dev;
      const history = join(work, "history");
      await writeGenerated(history, items);
      const generated = await publish(dev.folder, history, line);
      const fetched = join(work, "fetched");
      const files = await timeOf(() => fetchSnapshot(fetched, generated, 0, line));
      const start = await timeOf(() => firstPage(fetched, line));

      const uploaded = join(work, "uploaded");
      mkdirSync(uploaded);
      for (let item = 0; item < proofs; item += 1) writeFileSync(join(uploaded, `${item}.txt`), `item ${item}`);
      await cairn(dev.folder, "upload", uploaded, "--to", line.upload, "--yes");
      const exported = join(work, "exported");
      await exportUploaded(dev.folder, exported, proofs, line);
      const real = await publish(dev.folder, exported, line);
      const withoutProofs = await timeOf(() => fetchSnapshot(join(work, "without"), real, 0, line));
      const withProofs = await timeOf(() => fetchSnapshot(join(work, "with"), real, proofs, line));
      const proving = Math.max(0, withProofs - withoutProofs);

      const parts = [
        `files ${files.toFixed(1)} s`,
        `${proofs.toLocaleString("en")} proofs ${proving.toFixed(1)} s`,
        `start to the first page ${start.toFixed(1)} s`,
      ];
      return [
        {
          name: `snapshot fetch to the first page, ${items.toLocaleString("en")} items, local gateway`,
          metric: `${(files + proving + start).toFixed(1)} s (${parts.join(", ")})`,
          target: "≤ 30 s",
        },
      ];
    } finally {
      await dev.remove();
      removeFolder(work);
    }
  },
};

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = Bun.nanoseconds();
  await work();
  return (Bun.nanoseconds() - start) / 1e9;
}

function spawn(dataDir: string, words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return Bun.spawn([process.execPath, program, ...words], {
    env: { PATH: process.env["PATH"] ?? "", HOME: dataDir, DATA_DIR: dataDir, ...environment },
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Runs a command. @returns Its output. @throws Error with its messages when it fails. */
async function cairn(dataDir: string, ...words: string[]): Promise<string> {
  mkdirSync(dataDir, { recursive: true });
  const child = spawn(dataDir, words);
  const [text, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`cairn ${words.join(" ")}: ${errors}`);
  return text;
}

/** Publishes a folder of exports, and mines until its manifest is proven. @returns The id of the manifest. */
async function publish(dataDir: string, folder: string, { upload, node, gateway }: DevLine): Promise<string> {
  const published = await cairn(dataDir, "snapshot", "publish", folder, "--to", upload, "--yes", "--json");
  const { id } = JSON.parse(published).manifest;
  await eventually(
    async () => {
      await fetch(`${node}/mine`, { method: "POST" });
      return (await fetch(`${gateway}/svc/proof/${id}`)).json();
    },
    ({ block }) => block !== undefined && block !== null,
  );
  return id;
}

async function fetchSnapshot(dataDir: string, id: string, sample: number, { gateway }: DevLine): Promise<void> {
  await cairn(dataDir, "snapshot", "fetch", id, "--gateway", gateway, "--sample", String(sample));
}

/** Mines and exports until the export has the uploaded items. */
async function exportUploaded(dataDir: string, folder: string, items: number, { node }: DevLine): Promise<void> {
  // Blocks that may be rolled back are not exported.
  await fetch(`${node}/mine/${stableDepth}`, { method: "POST" });
  const countItems = async (): Promise<number> => {
    await fetch(`${node}/mine/10`, { method: "POST" });
    removeFolder(folder);
    await cairn(dataDir, "export", folder, "--items-only");
    const count = "SELECT count(*) AS items FROM transactions WHERE is_data_item";
    return JSON.parse(await cairn(dataDir, "sql", count, "--folder", folder, "--json"))[0].items;
  };
  await eventually(countItems, (count) => count >= items);
}

/** Starts a gateway and waits for the first page of GraphQL with a row. */
async function firstPage(dataDir: string, { node }: DevLine): Promise<void> {
  const environment = { TRUSTED_NODE_URL: node, COLUMNAR_STORE: "duckdb", LOG_LEVEL: "error" };
  const child = spawn(dataDir, ["serve", "--port", "0", "--json"], environment);
  try {
    const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("\n")) {
      const { value, done } = await lines.read();
      if (done) throw new Error(`the gateway ended: ${await new Response(child.stderr).text()}`);
      text += value;
    }
    const { gateway } = JSON.parse(text.slice(0, text.indexOf("\n")));
    const tags = `[{ name: "App-Name", values: ["bench"] }]`;
    const query = `{ transactions(first: 100, tags: ${tags}) { edges { node { id } } } }`;
    await eventually(
      async () => {
        const headers = { "content-type": "application/json" };
        const response = await fetch(`${gateway}/graphql`, {
          method: "POST",
          headers,
          body: JSON.stringify({ query }),
        });
        return response.json();
      },
      ({ data }) => data?.transactions.edges.length === 100,
    );
  } finally {
    child.kill();
    await child.exited;
  }
}

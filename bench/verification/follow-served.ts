/**
 * The node that follow.ts follows, in a process of its own: a chain made before it listens, with one RSA-signed
 * transaction in every block.
 * @module
 */
import type { Block } from "../../src/arweave/block.ts";
import { treeRootOf } from "../../src/arweave/transaction.ts";
import { signTransaction } from "../../src/arweave/transaction-sign.ts";
import { buildTxTree } from "../../src/arweave/tx-root.ts";
import { readWallet } from "../../src/arweave/wallet.ts";
import { makeBlock } from "../../src/dev/devnet/block-making.ts";
import { minerWallet } from "../../src/dev/devnet/wallets.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { writeJson } from "../../src/lib/json.ts";
import { rsaKeys } from "../../test/support/rsa-keys.ts";

const count = Number(process.argv[2]);
const wallet = readWallet(rsaKeys["4096"]);
const miner = minerWallet("bench");
const dataSize = 256 * 1024;
const blocks: string[] = [];
const transactions = new Map<string, string>();

let previous: Block | undefined;
for (let height = 0; height < count; height += 1) {
  const transaction = signTransaction(
    {
      format: 2,
      lastTx: encodeBase64url(sha256(Buffer.from(`anchor ${height}`))),
      reward: 1_000_000n,
      tags: [
        { name: "Content-Type", value: "application/octet-stream" },
        { name: "App-Name", value: "bench" },
        { name: "Height", value: String(height) },
      ],
      stated: { dataSize, dataRoot: sha256(Buffer.from(`data ${height}`)) },
    },
    wallet,
  );
  const { id, format } = transaction;
  const tree = buildTxTree([{ id, format, dataSize, dataRoot: treeRootOf(transaction) }], "padded");
  const block: Block = makeBlock(
    {
      previous,
      timestamp: 1_700_000_000 + height * 120,
      txs: [id],
      txRoot: tree.root,
      size: tree.size,
      accountsRoot: new Uint8Array(32),
      endowment: 0n,
      reward: 0n,
      recall: undefined,
    },
    miner,
    "bench",
  );
  transactions.set(id, transaction.text);
  blocks.push(writeJson(block.fields));
  previous = block;
}

const info = JSON.stringify({ network: "arweave.N.1", height: count - 1, current: previous?.hash, blocks: count });

function bodyOf(path: string): string | undefined {
  if (path === "/info") return info;
  if (path === "/height") return String(count - 1);
  if (path === "/block/current") return blocks.at(-1);
  if (path.startsWith("/block/height/")) return blocks[Number(path.slice("/block/height/".length))];
  return path.startsWith("/tx/") ? transactions.get(path.slice("/tx/".length)) : undefined;
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ url }) => {
    const body = bodyOf(new URL(url).pathname);
    return body === undefined ? new Response("Not Found.", { status: 404 }) : new Response(body);
  },
});
process.stdout.write(`${server.port}\n`);

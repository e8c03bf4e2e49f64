/**
 * Puts data on a chain as a client does: a signed transaction, then its chunks with their proofs.
 * @module
 */
import { chunkSpans, createDataRoot } from "../../arweave/merkle.ts";
import type { Id } from "../../arweave/id.ts";
import type { Tag } from "../../arweave/tags.ts";
import { signTransaction } from "../../arweave/transaction-sign.ts";
import type { Wallet } from "../../arweave/wallet.ts";
import type { Node, NodeResponse } from "../../chain/node.ts";
import { Failure } from "../../failures.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { utf8Bytes } from "../../lib/bytes.ts";

/** Bytes that are hashed before other work runs. */
const sliceBytes = 2 ** 20;

/**
 * Posts one format-2 transaction and all of its chunks.
 *
 * @throws Failure `source_failed` with what the node said.
 */
export async function postData(
  node: Node,
  wallet: Wallet,
  content: Readonly<{ data: Uint8Array; tags: readonly Tag[] }>,
  signal: AbortSignal,
): Promise<Id> {
  const { data, tags } = content;
  const root = createDataRoot(data.length, "halved");
  for (let at = 0; at < data.length; at += sliceBytes) {
    root.update(data.subarray(at, at + sliceBytes));
    await Bun.sleep(0);
  }
  const tree = root.finish();
  const transaction = signTransaction(
    {
      format: 2,
      lastTx: taken("anchor", await node.anchor(signal)),
      reward: taken("price", await node.price(data.length, undefined, signal)),
      tags,
      stated: { dataSize: data.length, dataRoot: tree.root },
    },
    wallet,
  );
  taken("transaction", await node.postTx(utf8Bytes(transaction.text), signal));
  for (const [index, { start, end }] of chunkSpans(data.length, "halved").entries()) {
    if (start === end) continue;
    const chunk = {
      data_root: encodeBase64url(tree.root),
      data_size: String(data.length),
      data_path: encodeBase64url(tree.path(index)),
      offset: String(end - 1),
      chunk: encodeBase64url(data.subarray(start, end)),
    };
    taken("chunk", await node.postChunk(utf8Bytes(JSON.stringify(chunk)), signal));
  }
  return transaction.id;
}

function taken<Value>(what: string, response: NodeResponse<Value>): Value {
  if (response.kind === "ok") return response.value;
  throw new Failure("source_failed", { reason: `the node did not take the ${what}`, response });
}

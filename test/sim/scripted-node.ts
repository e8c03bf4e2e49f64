/**
 * A node that serves a scripted chain over a real socket, and fails as the script says.
 * @module
 */
import { createServer } from "node:http";
import type { Id } from "../../src/arweave/id.ts";
import { chunkSpans, dataTreeOf } from "../../src/arweave/merkle.ts";
import { buildTxTree } from "../../src/arweave/tx-root.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { chainTo, rootOf, type ScriptedBlock, type ScriptedTransaction } from "./scripted-chain.ts";

/** What a request meets instead of its response; undefined: its response. */
export type Fault =
  | Readonly<{ kind: "status"; status: number; body?: string }>
  | Readonly<{ kind: "delay"; ms: number }>
  | Readonly<{ kind: "truncate" }>
  | Readonly<{ kind: "cut" }>
  | Readonly<{ kind: "spoil"; at: number }>
  | undefined;

/** A node under the script's control. */
export type ScriptedNode = Readonly<{
  url: string;
  /** Makes a block the tip; the chain is what leads to it. */
  setTip: (tip: ScriptedBlock) => void;
  /** Ids that the node does not have, and ids that it has only in its mempool, though blocks name them. */
  missing: Set<Id>;
  pendingOnly: Set<Id>;
  /** Transactions of the mempool. */
  mempool: Map<Id, ScriptedTransaction>;
  /** Asked of every request. */
  setFault: (fault: (path: string) => Fault) => void;
  /** Requests so far, by path. */
  requests: () => ReadonlyMap<string, number>;
  stop: () => Promise<void>;
}>;

/** Opens a node on a free port of this machine. */
export async function openScriptedNode(tip: ScriptedBlock): Promise<ScriptedNode> {
  let blocks: readonly ScriptedBlock[] = [];
  let byHash = new Map<string, ScriptedBlock>();
  let transactions = new Map<string, ScriptedTransaction>();
  let faultOf: (path: string) => Fault = () => undefined;
  const missing = new Set<Id>();
  const pendingOnly = new Set<Id>();
  const mempool = new Map<Id, ScriptedTransaction>();
  const counts = new Map<string, number>();

  const setTip = (block: ScriptedBlock) => {
    blocks = chainTo(block);
    byHash = new Map(blocks.map((one) => [one.hash, one]));
    transactions = new Map(
      blocks.flatMap((one) => one.transactions.map((each) => [each.transaction.id as string, each] as const)),
    );
  };
  setTip(tip);

  const blockResponse = (block: ScriptedBlock | undefined) =>
    block === undefined ? say("Block not found.", 404) : say(block.text);

  const transactionResponse = (id: string, isMempoolShown: boolean) => {
    const waiting = mempool.get(id as Id);
    if (waiting !== undefined) return isMempoolShown ? say(waiting.text) : say("Pending", 202);
    if (pendingOnly.has(id as Id)) return say("Pending", 202);
    const found = missing.has(id as Id) ? undefined : transactions.get(id);
    return found === undefined ? say("Not Found.", 404) : say(found.text);
  };

  const reply = (path: string): Said => {
    const [, first = "", second = "", third = ""] = path.split("/");
    const top = blocks.at(-1);
    switch (first) {
      case "info":
        return json({
          network: "scripted.1",
          height: top?.height ?? -1,
          current: top?.hash ?? "",
          blocks: blocks.length,
        });
      case "height":
        return say(String(top?.height ?? -1));
      case "block":
        return blockResponse(second === "height" ? blocks[Number(third)] : byHash.get(third));
      case "unconfirmed_tx":
        return transactionResponse(second, true);
      case "tx":
        return second === "pending" ? json([...mempool.keys()]) : transactionResponse(second, false);
      case "chunk":
        return chunkResponse(blocks, second);
      default:
        return say("Request type not found.", 400);
    }
  };

  const server = createServer(async (request, response) => {
    const path = request.url ?? "/";
    counts.set(path, (counts.get(path) ?? 0) + 1);
    const fault = faultOf(path);
    if (fault?.kind === "delay") await Bun.sleep(fault.ms);
    const said = fault?.kind === "status" ? say(fault.body ?? "", fault.status) : spoiled(reply(path), fault);
    response.writeHead(said.status, { "content-length": said.body.length });
    if (fault?.kind !== "cut") response.end(said.body);
    else response.write(said.body.subarray(0, said.body.length / 2), () => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the node has a port");

  return {
    url: `http://127.0.0.1:${address.port}`,
    setTip,
    missing,
    pendingOnly,
    mempool,
    setFault: (fault) => {
      faultOf = fault;
    },
    requests: () => counts,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** The chunk that covers a byte of the weave, requested by its 1-based offset, with both of its proofs. */
function chunkResponse(blocks: readonly ScriptedBlock[], offset: string): Said {
  const at = BigInt(offset) - 1n;
  const block = blocks.find(({ weaveSize }) => at < weaveSize);
  if (block === undefined) return say("", 404);
  const start = block.weaveSize - block.blockSize;
  const placed = block.transactions.map(({ transaction: { id, format, dataSize, ...rest } }, index) => {
    return {
      id,
      format,
      dataSize,
      dataRoot: format === 1 ? rootOf(block.transactions[index]!.data) : rest.dataRoot,
    };
  });
  const place = buildTxTree(placed, "padded").places.find((one) => start + one.start <= at && at < start + one.end);
  const data = block.transactions.find(({ transaction }) => transaction.id === place?.id)?.data;
  if (place === undefined || data === undefined) return say("", 404);
  const byte = Number(at - start - place.start);
  const spans = chunkSpans(data.length, "plain");
  const index = spans.findIndex((span) => span.start <= byte && byte < span.end);
  const span = spans[index]!;
  return json({
    chunk: encodeBase64url(data.subarray(span.start, span.end)),
    data_path: encodeBase64url(dataTreeOf(data, "plain").path(index)),
    tx_path: encodeBase64url(place.path()),
    packing: "unpacked",
  });
}

type Said = Readonly<{ status: number; body: Uint8Array }>;

function say(text: string, status = 200): Said {
  return { status, body: new TextEncoder().encode(text) };
}

function json(value: unknown): Said {
  return say(JSON.stringify(value));
}

/** Characters of a signature's text, from its end, in which one byte is spoiled; the last one may carry stray bits. */
const signatureTail = 80;

/**
 * Which byte is spoiled. The transactions here are signed by ECDSA keys, which are recovered from the signature: a
 * change of any other field cannot be proven (docs/reference/threats.md#what-nothing-here-can-prove).
 */
function spoiledByte(body: Uint8Array, at: number): number {
  const isTransaction = new TextDecoder().decode(body.subarray(0, 24)).startsWith('{"format":');
  return isTransaction ? body.length - '_"}'.length - 1 - (at % signatureTail) : at % body.length;
}

function spoiled(said: Said, fault: Fault): Said {
  const { status, body } = said;
  if (fault?.kind === "truncate") return { status, body: body.subarray(0, body.length / 2) };
  if (fault?.kind !== "spoil") return said;
  const at = spoiledByte(body, fault.at);
  return { status, body: body.with(at, (body[at] ?? 0) ^ 1) };
}

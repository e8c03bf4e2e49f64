/**
 * The combined response of several nodes to a post, over real sockets: one acceptance is enough, and a rejection differs
 * from a fault.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { openBundleChain } from "../../../src/app/bundle-chain.ts";
import type { Id } from "../../../src/arweave/id.ts";
import { openNode } from "../../../src/chain/node.ts";
import { createNodes } from "../../../src/chain/nodes.ts";
import { silentLog } from "../../../src/lib/log.ts";
import type { Posted } from "../../../src/upload/pipeline/pipeline-context.ts";

const never = new AbortController().signal;
const someId = "A".repeat(43) as Id;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** The response of a node to every request; `undefined`: no node listens there. */
type Result = Readonly<{ status: number; body?: string }> | undefined;

function chainOf(responses: readonly Result[], missing: readonly string[] = []) {
  const nodes = createNodes(
    responses.map((response) => openNode(`http://127.0.0.1:${portOf(response)}`)),
    { clock: Date.now, random: () => 0.5, log: silentLog },
  );
  cleanups.push(nodes.close);
  return openBundleChain({
    nodes,
    reader: {
      tip: () => undefined,
      block: () => undefined,
      transactionStatus: () => undefined,
      bundleStatus: () => undefined,
      dueMissing: () =>
        missing.map((id) => ({ id: id as Id, place: { height: 1, txIndex: 0, offset: -1 }, attempts: 1 })),
    },
    index: { removePending: async () => 0 },
    address: "wallet",
    wantBundle: async () => undefined,
  });
}

function portOf(response: Result): number {
  const server = Bun.serve({
    port: 0,
    fetch: () => new Response(response?.body ?? "", { status: response?.status ?? 200 }),
  });
  const port = server.port ?? 0;
  if (response === undefined) server.stop(true);
  else cleanups.push(() => server.stop(true));
  return port;
}

const unknownRoot = { status: 400, body: '{"error":"data_root_not_found"}' };
const wrongProof = { status: 400, body: '{"error":"invalid_proof"}' };
const posts: readonly (readonly [what: string, responses: readonly Result[], posted: Partial<Posted>])[] = [
  ["taken", [{ status: 200 }], { kind: "taken" }],
  ["known already", [{ status: 208, body: "Transaction already processed." }], { kind: "taken" }],
  ["stored for a time", [{ status: 303 }], { kind: "taken" }],
  ["taken by one, unknown to another", [unknownRoot, { status: 200 }], { kind: "taken" }],
  ["taken by one node, rejected by another", [wrongProof, { status: 303 }], { kind: "taken" }],
  ["taken by one while another is away", [undefined, { status: 200 }], { kind: "taken" }],
  [
    "rejected by all nodes",
    [wrongProof, wrongProof],
    { kind: "rejected", word: "invalid_proof", isByAll: true, reason: '400 {"error":"invalid_proof"}' },
  ],
  [
    "rejected with a text",
    [{ status: 400, body: "Invalid anchor (last_tx)." }],
    { kind: "rejected", word: "", isByAll: true, reason: "400 Invalid anchor (last_tx)." },
  ],
  ["rejected by one node while another is away", [unknownRoot, undefined], { kind: "rejected", isByAll: false }],
  ["rejected by one node while another fails", [unknownRoot, { status: 500 }], { kind: "rejected", isByAll: false }],
  ["too many", [{ status: 429 }], { kind: "fault" }],
  ["busy", [{ status: 503 }], { kind: "fault" }],
  ["no node reachable", [undefined, undefined], { kind: "fault" }],
];

describe("a post to several nodes", () => {
  test.each(posts)("is seen as it is: %s", async (_, responses, posted) => {
    const chain = chainOf(responses);
    expect(await chain.post("/chunk", new TextEncoder().encode("{}"), never)).toMatchObject(posted);
  });
});

const knowing: readonly (readonly [what: string, responses: readonly Result[], isUnknown: boolean])[] = [
  ["all say that they do not have it", [{ status: 404 }, { status: 404 }], true],
  ["one has it waiting", [{ status: 404 }, { status: 202, body: "Pending" }], false],
  [
    "one has it in a block",
    [{ status: 404 }, { status: 200, body: '{"block_height":5,"block_indep_hash":"x","number_of_confirmations":1}' }],
    false,
  ],
  ["one is away", [{ status: 404 }, undefined], false],
  ["one fails", [{ status: 404 }, { status: 500 }], false],
  ["one rejects the question", [{ status: 404 }, { status: 400 }], false],
];

describe("a transaction is unknown", () => {
  test.each(knowing)("or not, when %s", async (_, responses, isUnknown) => {
    expect(await chainOf(responses).isUnknown(someId, never)).toBe(isUnknown);
  });

  test("not if a followed block names it, even without its header", async () => {
    expect(await chainOf([{ status: 404 }], [someId]).isUnknown(someId, never)).toBe(false);
  });
});

/**
 * A Solana node on a socket, true to the protocol where we speak it: commitments, `jsonParsed` transactions with their
 * balances, pages of signatures from the newest on, token accounts, and the server's errors.
 *
 * test/clients/solana-node.test.ts shows that the published client reads its responses.
 * Source: https://solana.com/docs/rpc.
 * @module
 */
import { ed25519 } from "@noble/curves/ed25519.js";
import { encodeBase58 } from "../../../src/lib/base-encodings.ts";
import { createRandom } from "../../support/random.ts";
import { readSignedSolana } from "./solana-wire.ts";

/** A transfer within a transaction. */
export type SolanaMove = Readonly<{
  from: string;
  to: string;
  /** Lamports, or the token's smallest unit. */
  amount: bigint;
  /** A token: accounts are those of `from` and `to`, made when they are missing. */
  mint?: string;
  /** Called by another program. */
  isInner?: boolean;
}>;

/** A transaction. */
export type SolanaPlan = Readonly<{
  /** Pays the fee; the first sender by default. */
  payer?: string;
  moves: readonly SolanaMove[];
  memo?: string;
  fails?: boolean;
  /** Signatures behind the first; this node finds the transaction by each of them. */
  otherSignatures?: readonly string[];
  /** Lamports that an account gains in a way that no transfer shows. */
  gains?: Readonly<Record<string, bigint>>;
}>;

/** The node and its strings. */
export type SolanaNode = Readonly<{
  url: string;
  genesisHash: string;
  /** Puts a transaction into the newest slot. @returns its signature. */
  send: (plan: SolanaPlan) => string;
  /** So many slots later. */
  advance: (slots: number) => void;
  slot: () => number;
  /** The account that holds an owner's tokens. */
  tokenAccount: (owner: string, mint: string) => string;
  /** Counts of calls, by method. */
  calls: Map<string, number>;
  /** Responses these methods with a server's error. */
  rejected: Set<string>;
  close: () => Promise<void>;
}>;

/** Slots after which a confirmed one is final. */
const slotsToFinality = 32;

const systemProgram = "11111111111111111111111111111111";
const tokenProgram = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const memoProgram = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
const fee = 5_000n;
const accountRent = 2_039_280n;

/** An address with a key, from a number. */
export function solanaAddress(number: number): string {
  const seed = new Uint8Array(32);
  new DataView(seed.buffer).setUint32(0, number);
  return encodeBase58(ed25519.getPublicKey(seed));
}

/** An address off the curve, as programs have. */
export function programAddress(number: number): string {
  for (let attempt = 0; ; attempt += 1) {
    const bytes = Bun.CryptoHasher.hash("sha256", `${number} ${attempt}`) as Uint8Array;
    try {
      ed25519.Point.fromBytes(bytes);
    } catch {
      return encodeBase58(bytes); // no point of the curve, as is wanted
    }
  }
}

type Sent = Readonly<{
  signature: string;
  otherSignatures: readonly string[];
  slot: number;
  keys: readonly string[];
  err: unknown;
  response: object;
}>;
type Params = readonly [unknown?, Record<string, unknown>?, Record<string, unknown>?];
type Fixture = {
  readonly lamports: Map<string, bigint>;
  readonly tokens: Map<string, { owner: string; mint: string; amount: bigint }>;
  readonly sent: Sent[];
  slot: number;
};

/** Opens a node on a free port. */
export function openSolanaNode(seed = 1): SolanaNode {
  const random = createRandom(seed);
  const genesisHash = encodeBase58(random.bytes(32));
  const fixture: Fixture = { lamports: new Map(), tokens: new Map(), sent: [], slot: 1_000 };
  const calls = new Map<string, number>();
  const rejected = new Set<string>();
  const tokenAccount = (owner: string, mint: string) => {
    const account = programAddress(Number(Bun.hash.crc32(`${owner}/${mint}`)));
    if (!fixture.tokens.has(account)) fixture.tokens.set(account, { owner, mint, amount: 10n ** 18n });
    return account;
  };

  /** A client sends a signed transaction. */
  const take = (params: Params): object => {
    const signed = readSignedSolana(Uint8Array.fromBase64(String(params[0])));
    if (typeof signed === "string") return { error: { code: -32_003, message: signed } };
    if (signed.blockhash !== genesisHash) return { error: { code: -32_002, message: "Blockhash not found" } };
    const { payer, moves, memo } = signed;
    const plan = memo === undefined ? { payer, moves } : { payer, moves, memo };
    fixture.sent.push(carryOut(plan, signed.signature, fixture, tokenAccount));
    return { result: signed.signature };
  };
  const fetch = async (request: Request): Promise<Response> => {
    const { id, method, params = [] } = await request.json();
    calls.set(method, (calls.get(method) ?? 0) + 1);
    const response = rejected.has(method)
      ? { error: { code: -32_005, message: "Node is behind by 150 slots", data: { numSlotsBehind: 150 } } }
      : method === "sendTransaction"
        ? take(params)
        : responseTo(method, params, fixture, genesisHash);
    // Integers beyond 2^53 are bare in the response, as the server writes them.
    const text = JSON.stringify({ jsonrpc: "2.0", id, ...response }).replace(/"u64:(\d+)"/g, "$1");
    return new Response(text, { headers: { "content-type": "application/json" } });
  };
  const { watchers, server } = openBoth(fixture, fetch);
  return {
    url: `http://127.0.0.1:${server.port}`,
    genesisHash,
    send: (plan) => {
      const signature = encodeBase58(random.bytes(64));
      fixture.sent.push(carryOut(plan, signature, fixture, tokenAccount));
      return signature;
    },
    advance: (slots) => {
      fixture.slot += slots;
      watchers.tell();
    },
    slot: () => fixture.slot,
    tokenAccount,
    calls,
    rejected,
    close: async () => {
      await watchers.close();
      await server.stop(true);
    },
  };
}

function responseTo(method: string, params: Params, fixture: Fixture, genesisHash: string): object {
  const [first, options = {}] = params;
  const upTo = (commitment: unknown) => (commitment === "confirmed" ? fixture.slot : fixture.slot - slotsToFinality);
  switch (method) {
    case "getGenesisHash":
      return { result: genesisHash };
    case "getSlot":
      return { result: upTo((first as Record<string, unknown> | undefined)?.["commitment"]) };
    case "getTransaction": {
      if (options["encoding"] !== "jsonParsed") return invalidParams("this node gives jsonParsed only");
      if (options["maxSupportedTransactionVersion"] !== 0)
        return { error: { code: -32_015, message: "Transaction version (0) is not supported" } };
      const found = fixture.sent.find(({ signature, otherSignatures }) =>
        [signature, ...otherSignatures].some((each) => each === first),
      );
      return {
        result: found !== undefined && found.slot <= upTo(options["commitment"]) ? found.response : null,
      };
    }
    case "getSignaturesForAddress":
      return signaturesOf(String(first), options, fixture, upTo(options["commitment"]));
    case "getLatestBlockhash":
      return {
        result: {
          context: { apiVersion: "2.1.0", slot: fixture.slot },
          value: { blockhash: genesisHash, lastValidBlockHeight: fixture.slot + 150 },
        },
      };
    case "getBlockHeight":
      return { result: fixture.slot };
    case "getSignatureStatuses":
      return {
        result: {
          context: { apiVersion: "2.1.0", slot: fixture.slot },
          value: (first as unknown as readonly string[]).map((each) => statusOf(each, fixture)),
        },
      };
    case "getTokenAccountsByOwner": {
      const accounts = [...fixture.tokens].filter(
        ([, token]) => token.owner === first && token.mint === options["mint"],
      );
      return {
        result: {
          context: { apiVersion: "2.1.0", slot: fixture.slot },
          value: accounts.map(([pubkey, token]) => ({ pubkey, account: tokenAccountResponse(token) })),
        },
      };
    }
    default:
      return { error: { code: -32_601, message: "Method not found" } };
  }
}

function statusOf(signature: string, fixture: Fixture): object | null {
  const found = fixture.sent.find((each) => each.signature === signature);
  if (found === undefined) return null;
  const isFinal = found.slot <= fixture.slot - slotsToFinality;
  return {
    slot: found.slot,
    confirmations: isFinal ? null : fixture.slot - found.slot,
    err: found.err,
    status: { Ok: null },
    confirmationStatus: isFinal ? "finalized" : "confirmed",
  };
}

type Watch = Readonly<{ id: number; signature: string; send: (text: string) => void }>;

/** Clients that wait for a signature to be final, over a socket of their own: they look for it one port above. */
function openSignatureWatchers(fixture: Fixture) {
  let watches: readonly Watch[] = [];
  let last = 0;
  const tell = () => {
    const isFinal = ({ signature }: Watch) =>
      fixture.sent.some((each) => each.signature === signature && each.slot <= fixture.slot - slotsToFinality);
    for (const { id: subscription, send } of watches.filter(isFinal)) {
      const result = { context: { slot: fixture.slot }, value: { err: null } };
      send(JSON.stringify({ jsonrpc: "2.0", method: "signatureNotification", params: { subscription, result } }));
    }
    watches = watches.filter((watch) => !isFinal(watch));
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request, own) => (own.upgrade(request) ? undefined : new Response("a socket is wanted", { status: 400 })),
    websocket: {
      message: (socket, text) => {
        const { id, method, params = [] } = JSON.parse(String(text));
        last += 1;
        const result = method === "signatureSubscribe" ? last : true;
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, result }));
        if (method !== "signatureSubscribe") return;
        watches = [...watches, { id: last, signature: params[0], send: (said) => socket.send(said) }];
        tell();
      },
    },
  });
  return { port: server.port ?? 0, tell, close: () => server.stop(true) };
}

/** Serves both where published clients suppose them to be: the socket one port above. */
function openBoth(fixture: Fixture, fetch: (request: Request) => Promise<Response>) {
  for (;;) {
    const watchers = openSignatureWatchers(fixture);
    try {
      return { watchers, server: Bun.serve({ hostname: "127.0.0.1", port: watchers.port - 1, fetch }) };
    } catch {
      // The port below is another party's: another pair.
      watchers.close();
    }
  }
}

function signaturesOf(address: string, options: Record<string, unknown>, fixture: Fixture, slotMax: number): object {
  const { limit = 1_000, before, until } = options;
  if (typeof limit !== "number" || limit < 1 || limit > 1_000) return invalidParams("Invalid limit; max 1000");
  const all = fixture.sent.filter(({ keys, slot }) => keys.includes(address) && slot <= slotMax).reverse();
  const start = before === undefined ? 0 : all.findIndex(({ signature }) => signature === before) + 1;
  const end = all.findIndex(({ signature }) => signature === until);
  const page = all.slice(start, end === -1 ? undefined : end).slice(0, limit);
  return {
    result: page.map(({ signature, slot, err }) => {
      const status = slot <= fixture.slot - slotsToFinality ? "finalized" : "confirmed";
      return { signature, slot, err, memo: null, blockTime: 1_800_000_000, confirmationStatus: status };
    }),
  };
}

function carryOut(
  plan: SolanaPlan,
  signature: string,
  fixture: Fixture,
  tokenAccount: (owner: string, mint: string) => string,
): Sent {
  const { moves, memo, fails = false, gains = {}, otherSignatures = [] } = plan;
  const payer = plan.payer ?? moves[0]?.from ?? "";
  const ends = moves.flatMap(({ from, to, mint }) =>
    mint === undefined ? [from, to] : [tokenAccount(from, mint), tokenAccount(to, mint), from, mint],
  );
  const programs = [systemProgram, ...(memo === undefined ? [] : [memoProgram]), tokenProgram];
  const keys = [...new Set([payer, ...ends, ...Object.keys(gains), ...programs])];
  const lamportsOf = (key: string) => fixture.lamports.get(key) ?? 10n ** 12n;
  const balances = () => keys.map((key) => `u64:${lamportsOf(key)}`);
  const tokenBalances = () => keys.flatMap((key, index) => tokenBalance(fixture, key, index));
  const before = { preBalances: balances(), preTokenBalances: tokenBalances() };
  fixture.lamports.set(payer, lamportsOf(payer) - fee);
  if (!fails) {
    for (const { from, to, amount, mint } of moves) {
      if (mint === undefined) {
        fixture.lamports.set(from, lamportsOf(from) - amount);
        fixture.lamports.set(to, lamportsOf(to) + amount);
      } else {
        addTokens(fixture, tokenAccount(from, mint), -amount);
        addTokens(fixture, tokenAccount(to, mint), amount);
      }
    }
    for (const [key, amount] of Object.entries(gains)) fixture.lamports.set(key, lamportsOf(key) + amount);
  }
  const err = fails ? { InstructionError: [0, { Custom: 1 }] } : null;
  const instructions = (isInner: boolean) =>
    moves.filter((move) => (move.isInner ?? false) === isInner).map((move) => instructionOf(move, tokenAccount));
  const memos =
    memo === undefined ? [] : [{ parsed: memo, program: "spl-memo", programId: memoProgram, stackHeight: null }];
  const inner = instructions(true);
  const response = {
    blockTime: 1_800_000_000,
    meta: {
      computeUnitsConsumed: 150,
      err,
      fee: Number(fee),
      innerInstructions: inner.length === 0 ? [] : [{ index: 0, instructions: inner }],
      logMessages: [],
      ...before,
      postBalances: balances(),
      postTokenBalances: tokenBalances(),
      rewards: [],
      status: fails ? { Err: err } : { Ok: null },
    },
    slot: fixture.slot,
    transaction: {
      message: {
        accountKeys: keys.map((pubkey) => {
          const isSigner = pubkey === payer || moves.some(({ from }) => from === pubkey);
          return { pubkey, signer: isSigner, source: "transaction", writable: !programs.includes(pubkey) };
        }),
        instructions: [...instructions(false), ...memos],
        recentBlockhash: encodeBase58(Bun.CryptoHasher.hash("sha256", signature) as Uint8Array),
      },
      signatures: [signature, ...otherSignatures],
    },
    version: "legacy",
  };
  return { signature, otherSignatures, slot: fixture.slot, keys, err, response };
}

function instructionOf(
  { from, to, amount, mint, isInner = false }: SolanaMove,
  tokenAccount: (owner: string, mint: string) => string,
): object {
  const stackHeight = isInner ? 2 : null;
  if (mint === undefined) {
    const info = { destination: to, lamports: `u64:${amount}`, source: from };
    return { parsed: { info, type: "transfer" }, program: "system", programId: systemProgram, stackHeight };
  }
  const info = {
    authority: from,
    destination: tokenAccount(to, mint),
    mint,
    source: tokenAccount(from, mint),
    tokenAmount: uiAmount(amount),
  };
  return {
    parsed: { info, type: "transferChecked" },
    program: "spl-token",
    programId: tokenProgram,
    stackHeight,
  };
}

function tokenBalance(fixture: Fixture, key: string, accountIndex: number): object[] {
  const token = fixture.tokens.get(key);
  if (token === undefined) return [];
  const { owner, mint, amount } = token;
  return [{ accountIndex, mint, owner, programId: tokenProgram, uiTokenAmount: uiAmount(amount) }];
}

function tokenAccountResponse({ owner, mint, amount }: { owner: string; mint: string; amount: bigint }): object {
  const info = { isNative: false, mint, owner, state: "initialized", tokenAmount: uiAmount(amount) };
  return {
    data: { parsed: { info, type: "account" }, program: "spl-token", space: 165 },
    executable: false,
    lamports: Number(accountRent),
    owner: tokenProgram,
    rentEpoch: "u64:18446744073709551615",
    space: 165,
  };
}

function uiAmount(amount: bigint): object {
  const digits = amount.toString().padStart(7, "0");
  const whole = `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, "");
  return { amount: amount.toString(), decimals: 6, uiAmount: Number(whole), uiAmountString: whole };
}

function addTokens(fixture: Fixture, account: string, amount: bigint): void {
  const token = fixture.tokens.get(account);
  if (token !== undefined) token.amount += amount;
}

function invalidParams(message: string): object {
  return { error: { code: -32_602, message } };
}

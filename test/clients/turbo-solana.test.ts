/**
 * The published SDK pays in coins of Solana: a whole program, with the tests' node as the cluster. The SDK signs with
 * its own key, and the node rejects what is not signed.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ed25519 } from "@noble/curves/ed25519.js";
import { encodeBase58 } from "../../src/lib/base-encodings.ts";
import { openSolanaNode, type SolanaNode, solanaAddress } from "../payment/tokens/solana-node.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { arweaveKey } from "./turbo.ts";

const payee = solanaAddress(1);
const seed = new Uint8Array(32).fill(7);
const address = encodeBase58(ed25519.getPublicKey(seed));
const privateKey = encodeBase58(Uint8Array.of(...seed, ...ed25519.getPublicKey(seed)));
/** Slots until nothing takes a transaction back. */
const enough = 33;

describeWith(clientLibraries, "the published SDK, paying on Solana", () => {
  let node: SolanaNode;
  let program: RunningProgram;

  beforeAll(async () => {
    node = openSolanaNode();
    program = await startDev({
      environment: {
        PAYMENT_ADDRESS_SOLANA: payee,
        SOLANA_RPC_URL: node.url,
        TOKEN_WATCH_MS: "100",
        SOLANA_GENESIS_HASH: node.genesisHash,
      },
    });
  }, 120_000);

  afterAll(async () => {
    await program?.remove();
    await node?.close();
  });

  async function open() {
    const { TurboFactory } = await import("@ardrive/turbo-sdk");
    return TurboFactory.authenticated({
      privateKey,
      token: "solana",
      gatewayUrl: node.url,
      paymentServiceConfig: { url: program.line.payment },
      uploadServiceConfig: { url: program.line.upload },
    });
  }

  /** Lets the cluster go on once the SDK has sent what it signed. */
  async function goOnAfter<Result>(sending: Promise<Result>): Promise<Result> {
    const before = node.calls.get("sendTransaction") ?? 0;
    await eventually(
      async () => node.calls.get("sendTransaction") ?? 0,
      (count) => count > before,
    );
    node.advance(enough);
    return await sending;
  }

  test("in lamports: signed, final, credited to the sender", async () => {
    const turbo = await open();
    expect((await turbo.getBalance()).winc).toBe("0");
    const sent = await goOnAfter(turbo.topUpWithTokens({ tokenAmount: 10_000_000 as never }));
    expect(sent).toMatchObject({ status: "confirmed", target: payee, owner: address });
    const { winc } = await turbo.getBalance();
    expect([BigInt(winc) > 0n, winc]).toEqual([true, sent.winc]);
    expect(await turbo.submitFundTransaction({ txId: sent.id })).toMatchObject({ status: "confirmed" });
    expect((await turbo.getBalance()).winc).toBe(winc);
  }, 120_000);

  test("for an account of another chain, which it names in a memo", async () => {
    const turbo = await open();
    const { address: other } = arweaveKey(program);
    const balance = async () => {
      const response = await fetch(`${program.line.payment}/v1/account/balance/arweave?address=${other}`);
      return response.status === 404 ? 0n : BigInt((await response.json()).winc);
    };
    const before = await balance();
    const sent = await goOnAfter(
      turbo.topUpWithTokens({ tokenAmount: 20_000_000 as never, turboCreditDestinationAddress: other }),
    );
    const after = await eventually(balance, (now) => now > before);
    expect(after - before).toBe(BigInt(sent.winc));
  }, 120_000);
});

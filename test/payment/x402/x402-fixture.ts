/**
 * x402 for tests: a ledger, a clock, a node with a dollar coin, a facilitator that does as it is notified, and the route.
 * @module
 */
import { winc } from "../../../src/arweave/winston.ts";
import { createX402Routes } from "../../../src/http/payment/x402-top-up-routes.ts";
import type { Authorization } from "../../../src/payment/evm/authorization.ts";
import { createEvmChain, createEvmClient } from "../../../src/payment/evm/evm-chain.ts";
import { openJsonRpc } from "../../../src/payment/evm/json-rpc.ts";
import { type OpenX402, openX402, type X402Options } from "../../../src/payment/x402/open-x402.ts";
import type { X402Terms } from "../../../src/payment/x402/x402.ts";
import { readX402Network } from "../../../src/payment/x402/x402-networks.ts";
import { openFacilitator } from "../../../src/payment/x402/x402-settlers.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import { user } from "../../../src/store/ledger/transfers.ts";
import type { LedgerKind } from "../../support/ledger-databases.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";
import { createRecordingLog } from "../../support/recording-log.ts";
import { type EvmNode, openEvmNode } from "./evm-node.ts";
import { type FakeFacilitator, openFakeFacilitator } from "./facilitators.ts";
import { authorizationRecord, headerOf, nonce, type Payer, payer, payTo, sign } from "./payers.ts";

export const never = new AbortController().signal;

/** Prices that tests can move: winc for a unit of the coin, and for a byte. */
export type TestPrices = { wincEach: bigint; wincPerByte: bigint };

/** What a payment is made of; the rest is what an honest payer writes. */
export type PaymentChanges = Partial<Authorization> & Readonly<{ key?: Uint8Array }>;

/** Everything that a test of x402 needs. */
export type X402Fixture = Readonly<{
  payment: TestPayment;
  node: EvmNode;
  facilitator: FakeFacilitator;
  terms: X402Terms;
  x402: OpenX402;
  server: PaymentServer;
  prices: TestPrices;
  logs: Record<string, unknown>[];
  /** An authorization that an honest payer would sign now. */
  authorize: (from: Payer, value: bigint, changes?: PaymentChanges) => Authorization;
  /** The header of a payment. */
  header: (authorization: Authorization, from: Payer, version?: 1 | 2) => string;
  /** Asks for a top-up. @param query - without the question mark. */
  ask: (query: string, headers?: Readonly<Record<string, string>>) => Promise<Asked>;
  /** Sends a payment for bytes. */
  pay: (authorization: Authorization, from: Payer, version?: 1 | 2) => Promise<Asked>;
  /** Moves time on and lets the watch look, again and again. */
  pass: (seconds: number) => Promise<void>;
  balance: (of: Payer) => Promise<bigint>;
  /** Where a payment is. */
  row: (authorization: Authorization) => Promise<X402RowSeen | undefined>;
  /** Another process on the same ledger. */
  openAnother: (database: LedgerDatabase, changes?: Partial<X402Options>) => OpenX402;
  close: () => Promise<void>;
}>;

export type Asked = Readonly<{
  status: number;
  headers: Headers;
  body: unknown;
}>;

export type X402RowSeen = Readonly<{
  state: string;
  attempts: bigint;
  transaction_hash: string | null;
  due_at: bigint | null;
  reason: string | null;
  winc: bigint;
}>;

/** What payers ask for in tests: so many bytes cost so much. */
export const bytesAsked = 1_000_000n;
export const bytesCost = 2_000n;

const quick = { sentMs: 30, unknownMs: 30, pauseMs: 5 };

/** Longer than any test: the watch looks when it is notified to. Milliseconds. */
const noWatchMs = 2 ** 31 - 1;

/** Opens a fixture. */
export async function openX402Fixture(
  options: Readonly<{ kind?: LedgerKind; seed?: number; settle?: X402Options["settle"] }> = {},
): Promise<X402Fixture> {
  const payment = await openTestPayment(options);
  const { clock } = payment;
  const node = openEvmNode(clock.now);
  const facilitator = await openFakeFacilitator(node);
  const network = readX402Network("base", { address: undefined, name: undefined, version: undefined });
  if ("fault" in network) throw new Error(network.fault);
  const terms: X402Terms = { network, payTo, timeoutSeconds: 300 };
  const prices: TestPrices = { wincEach: 1_000_000n, wincPerByte: 2_000n };
  const { log, lines: logs } = createRecordingLog(clock.now);
  const rpc = openJsonRpc(node.url, { timeouts: { firstByteMs: 2_000, stallMs: 2_000, totalMs: 4_000 } });
  const client = createEvmClient(rpc, node.chainId);
  const { url } = facilitator;
  const patient = openFacilitator({
    url,
    terms,
    timeouts: { firstByteMs: 20_000, stallMs: 20_000, totalMs: 20_000 },
  });
  const hasty = openFacilitator({ url, terms, timeouts: { firstByteMs: 60, stallMs: 40, totalMs: 100 } });
  /** Only what never comes is not waited for: with anything else a busy machine would decide the outcome. */
  const settle: X402Options["settle"] = (...order) => (facilitator.isLate() ? hasty : patient).settle(...order);

  const openAnother = (database: LedgerDatabase, changes: Partial<X402Options> = {}): OpenX402 =>
    openX402({
      terms,
      ledger: database,
      prices: pricesOf(prices),
      client,
      settle: options.settle ?? settle,
      evm: createEvmChain(rpc, node.chainId),
      finalConfirmations: 20,
      excluded: new Set<string>(),
      clock: clock.now,
      makeId: payment.makeId,
      log,
      patience: quick,
      watchMs: noWatchMs,
      ...changes,
    });

  const x402 = openAnother(payment.database);
  const publicUrl = () => "http://localhost:3001";
  const server = openPaymentServer(() => [createX402Routes({ x402, publicUrl })]);

  const ask: X402Fixture["ask"] = async (query, headers = {}) => {
    const response = await fetch(`${server.url}/v1/x402/top-up?${query}`, { headers });
    const body = await response.json();
    return { status: response.status, headers: response.headers, body };
  };
  const header: X402Fixture["header"] = (authorization, from, version = 1) => {
    const signature = `0x${sign(node.domain, authorization, from.key).toHex()}`;
    return paymentHeader(terms, authorization, signature, version);
  };
  let nonces = 0;
  return {
    payment,
    node,
    facilitator,
    terms,
    x402,
    server,
    prices,
    logs,
    ask,
    header,
    openAnother,
    authorize: (from, value, changes = {}) => {
      nonces += 1;
      const now = BigInt(Math.floor(clock.now() / 1_000));
      return {
        from: from.address,
        to: payTo,
        value,
        validAfter: now - 600n,
        validBefore: now + 300n,
        nonce: nonce(nonces),
        ...changes,
      };
    },
    pay: (authorization, from, version = 1) =>
      ask(`type=bytes&qty=${bytesAsked}`, {
        [version === 1 ? "x-payment" : "payment-signature"]: header(authorization, from, version),
      }),
    pass: async (seconds) => {
      const steps = 24;
      for (let step = 0; step < steps; step += 1) {
        clock.advance(Math.floor((seconds * 1_000) / steps));
        await x402.look(never);
      }
    },
    balance: (of) => payment.held(user(of.address)),
    row: ({ from, nonce: used }) =>
      payment.database.read((tx) =>
        tx.get<X402RowSeen>("SELECT * FROM x402_payments WHERE payer = ? AND nonce = ?", from, used),
      ),
    close: async () => {
      await server.close();
      await x402.close();
      patient.close();
      hasty.close();
      rpc.close();
      await facilitator.close();
      await node.close();
      await payment.close();
    },
  };
}

/** A payer who holds dollars. */
export function funded(fixture: Pick<X402Fixture, "node">, number: number, value = 1_000_000_000n): Payer {
  const anyPayer = payer(number);
  fixture.node.mint(anyPayer.address, value);
  return anyPayer;
}

/** A payment as a client writes it. */
export function paymentHeader(
  { network, timeoutSeconds }: X402Terms,
  authorization: Authorization,
  signature: string,
  version: 1 | 2,
): string {
  const payload = { signature, authorization: authorizationRecord(authorization) };
  if (version === 1) return headerOf({ x402Version: 1, scheme: "exact", network: network.nameV1, payload });
  const accepted = {
    scheme: "exact",
    network: network.name,
    amount: authorization.value.toString(),
    asset: network.asset.address,
    payTo,
    maxTimeoutSeconds: timeoutSeconds,
    extra: { name: network.asset.name, version: network.asset.version },
  };
  return headerOf({ x402Version: 2, accepted, payload });
}

function pricesOf(prices: TestPrices): X402Options["prices"] {
  const rest = (amount: bigint) => ({
    adjustments: [],
    fees: [],
    actualPaymentAmount: amount,
    quotedPaymentAmount: amount,
  });
  return {
    bytes: async (size) => {
      const cost = winc(size * prices.wincPerByte);
      return { winc: cost, networkWinc: cost, adjustments: [] };
    },
    token: async (_token, amount) => ({ winc: winc(amount * prices.wincEach), ...rest(amount) }),
    tokenFor: async (_token, wanted) => (wanted + prices.wincEach - 1n) / prices.wincEach,
  };
}

/**
 * A facilitator behind a socket, honest or not: it carries payments out on a node, or says that it does.
 * Source: docs/reference/threats.md (L4).
 * @module
 */
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Authorization } from "../../../src/payment/evm/authorization.ts";
import type { EvmNode } from "./evm-node.ts";
import { evmAddress } from "./payers.ts";

/** What a facilitator may do with a payment. */
export type Behaviour =
  | "settles"
  | "settles twice, and reports both in one body"
  | "settles after a while"
  | "is silent, and settles nothing"
  | "is silent after it has sent"
  | "cuts the connection after it has sent"
  | "reports a settlement that did not happen"
  | "names the transaction of another payment"
  | "responses 500, and settles nothing"
  | "responses 500 after it has sent"
  | "responses junk, and settles nothing"
  | "responses junk after it has sent"
  | "responses without end"
  | "rejects"
  | "rejects with a NUL in its reason"
  | "rejects what it has sent"
  | "rejects with the hash of what it has sent"
  | "says 401";

/** A facilitator at work. */
export type FakeFacilitator = Readonly<{
  url: string;
  behave: (behaviour: Behaviour) => void;
  /** Settles what waits to be settled after a while; so does another behaviour. */
  letGo: () => void;
  /** Whether it behaves so that its response does not come in time. */
  isLate: () => boolean;
  /** Is called with every order before anything is done with it, and after something was sent. */
  hook: (hook: ((moment: "asked" | "sent") => void) | undefined) => void;
  /** Bodies of `POST /settle` so far. */
  orders: readonly Order[];
  close: () => Promise<void>;
}>;

/** What it is asked. */
export type Order = Readonly<{
  x402Version: number;
  paymentPayload: Readonly<{
    x402Version?: number;
    scheme?: string;
    network?: string;
    resource?: unknown;
    accepted?: unknown;
    payload: Readonly<{ signature: string; authorization: Readonly<Record<string, string>> }>;
  }>;
  paymentRequirements: Readonly<Record<string, unknown>>;
}>;

type Reply = Readonly<{ status?: number; body: string }>;

const late: ReadonlySet<Behaviour> = new Set([
  "settles after a while",
  "is silent, and settles nothing",
  "is silent after it has sent",
  "responses without end",
]);

const otherHash = `0x${"ab".repeat(32)}`;

/** Starts one. */
export async function openFakeFacilitator(node: EvmNode): Promise<FakeFacilitator> {
  let behaviour: Behaviour = "settles";
  const orders: Order[] = [];
  let last = otherHash;
  let held = Promise.withResolvers<void>();
  let onMoment: ((moment: "asked" | "sent") => void) | undefined;

  function carryOut({ paymentPayload }: Order): string {
    const { authorization, signature } = paymentPayload.payload;
    last = node.send({
      kind: "authorized",
      authorization: readAuthorization(authorization),
      signature: Uint8Array.fromHex(signature.slice(2)),
    });
    onMoment?.("sent");
    return last;
  }

  /** @returns What to response; `undefined` when the connection was dealt with. */
  async function replyTo(order: Order, connection: ServerResponse): Promise<Reply | undefined> {
    const before = last;
    const network = String(order.paymentRequirements["network"]);
    const payer = order.paymentPayload.payload.authorization["from"];
    const success = (transaction: string) => JSON.stringify({ success: true, transaction, network, payer });
    const failure = (transaction = "") =>
      JSON.stringify({ success: false, errorReason: "insufficient_funds", transaction, network, payer });
    switch (behaviour) {
      case "settles":
        return { body: success(carryOut(order)) };
      case "settles twice, and reports both in one body":
        return { body: success(carryOut(order)) + success(carryOut(order)) };
      case "settles after a while":
        await held.promise;
        return { body: success(carryOut(order)) };
      case "is silent, and settles nothing":
        return undefined;
      case "is silent after it has sent":
        carryOut(order);
        return undefined;
      case "cuts the connection after it has sent":
        carryOut(order);
        connection.writeHead(200, { "content-length": "1000" });
        connection.write('{"success":');
        setTimeout(() => connection.destroy(), 5);
        return undefined;
      case "reports a settlement that did not happen":
        return { body: success(otherHash) };
      case "names the transaction of another payment":
        return { body: success(before) };
      case "responses 500, and settles nothing":
        return { status: 500, body: '{"error":"internal"}' };
      case "responses 500 after it has sent":
        carryOut(order);
        return { status: 500, body: '{"error":"internal"}' };
      case "responses junk, and settles nothing":
        return { body: "<html>" };
      case "responses junk after it has sent":
        carryOut(order);
        return { body: "<html>" };
      case "responses without end":
        while (!connection.destroyed) {
          connection.write(" ".repeat(16_384));
          await Bun.sleep(1);
        }
        return undefined;
      case "rejects":
        return { body: failure() };
      case "rejects with a NUL in its reason":
        return { body: JSON.stringify({ ...JSON.parse(failure()), errorReason: "no\0funds" }) };
      case "rejects what it has sent":
        carryOut(order);
        return { body: failure() };
      case "rejects with the hash of what it has sent":
        return { status: 400, body: failure(carryOut(order)) };
      case "says 401":
        return { status: 401, body: '{"error":"unauthorized"}' };
    }
  }

  const server = createServer(async (request, connection) => {
    const order: Order = JSON.parse(await text(request));
    orders.push(order);
    onMoment?.("asked");
    const reply = await replyTo(order, connection);
    if (reply === undefined) return;
    connection.writeHead(reply.status ?? 200, { "content-type": "application/json" });
    connection.end(reply.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the facilitator has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    behave: (next) => {
      held.resolve();
      held = Promise.withResolvers<void>();
      behaviour = next;
    },
    letGo: () => held.resolve(),
    isLate: () => late.has(behaviour),
    hook: (hook) => {
      onMoment = hook;
    },
    orders,
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function readAuthorization(record: Readonly<Record<string, string>>): Authorization {
  const { from = "", to = "", value = "", validAfter = "", validBefore = "", nonce = "" } = record;
  return {
    from: evmAddress(from),
    to: evmAddress(to),
    value: BigInt(value),
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore),
    nonce,
  };
}

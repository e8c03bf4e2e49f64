/**
 * What sending a transaction may cost: an account that pays for the gas of others is not emptied by them.
 * @module
 */
import { expect, test } from "bun:test";
import { readAddress } from "../../../src/payment/addresses.ts";
import type { EvmClient } from "../../../src/payment/evm/evm-chain.ts";
import { createEvmSender } from "../../../src/payment/evm/evm-sender.ts";

const to = readAddress("0x2222222222222222222222222222222222222222")?.address ?? expect.unreachable();
const call = { to, data: new Uint8Array(4) };
const never = new AbortController().signal;

/** A chain whose block costs so many wei a unit of gas, and whose calls take 80,000 units. */
function chainAt(feeOf: () => bigint) {
  const sent: unknown[] = [];
  const hex = (value: bigint) => `0x${value.toString(16)}`;
  const responses: Readonly<Record<string, () => string | Readonly<Record<string, string>>>> = {
    eth_estimateGas: () => hex(80_000n),
    eth_getBlockByNumber: () => ({ baseFeePerGas: hex(feeOf()) }),
    eth_maxPriorityFeePerGas: () => hex(0n),
    eth_getTransactionCount: () => hex(0n),
  };
  const responseTo = (method: string) => responses[method]?.() ?? expect.unreachable(method);
  const client: EvmClient = {
    ask: async (method, _, read) => {
      const value = read(responseTo(method));
      return value === undefined ? expect.unreachable() : { kind: "ok", value };
    },
    find: () => expect.unreachable(),
    call: async (method, params) => {
      if (method !== "eth_sendRawTransaction") return { kind: "ok", value: responseTo(method) };
      sent.push(params[0]);
      return { kind: "ok", value: "0x" };
    },
  };
  return { client, sent };
}

/** 80,000 units and a quarter, at twice the fee of a block. */
const costAt = (fee: bigint) => 100_000n * 2n * fee;

test.each([
  ["no limit", undefined, 10n ** 12n, true],
  ["just enough", costAt(50n), 50n, true],
  ["a wei too little", costAt(50n) - 1n, 50n, false],
  ["nothing", 0n, 1n, false],
])("with %s it is sent or not, and no callback runs for one that is not", async (_, costMax, fee, isSent) => {
  const { client, sent } = chainAt(() => fee);
  const privateKey = new Uint8Array(32).fill(7);
  const sender = createEvmSender({ client, chainId: 1n, privateKey, costMax, clock: Date.now });
  const reported: string[] = [];
  const outcome = await sender.send(
    call,
    async (hash) => {
      reported.push(hash);
      return true;
    },
    never,
  );
  expect([outcome.kind, sent.length, reported.length]).toEqual(isSent ? ["sent", 1, 1] : ["fault", 0, 0]);
});

test("a call above the cost limit is sent when its cost falls below it, with the same nonce", async () => {
  let fee = 100n;
  const { client, sent } = chainAt(() => fee);
  const privateKey = new Uint8Array(32).fill(7);
  const sender = createEvmSender({ client, chainId: 1n, privateKey, costMax: costAt(60n), clock: Date.now });
  const send = () => sender.send(call, async () => true, never);
  expect(await send()).toMatchObject({
    kind: "fault",
    detail: `gas costs up to ${costAt(100n)} wei, above the limit of ${costAt(60n)}`,
  });
  fee = 60n;
  expect((await send()).kind).toBe("sent");
  expect(sent).toHaveLength(1);
});

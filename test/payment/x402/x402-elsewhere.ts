/**
 * x402 in a process that may be killed: on a ledger, a node and a facilitator that another process has. A byte costs one
 * winc, which costs one unit of the coin.
 * @module
 */
import { winc } from "../../../src/arweave/winston.ts";
import type { Clock } from "../../../src/lib/clock.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { createEvmChain, createEvmClient } from "../../../src/payment/evm/evm-chain.ts";
import { openJsonRpc } from "../../../src/payment/evm/json-rpc.ts";
import { type OpenX402, openX402 } from "../../../src/payment/x402/open-x402.ts";
import { readX402Network } from "../../../src/payment/x402/x402-networks.ts";
import { openFacilitator } from "../../../src/payment/x402/x402-settlers.ts";
import type { LedgerDatabase } from "../../../src/store/ledger/ledger-database.ts";
import type { MakeId } from "../../../src/store/ledger/transfers.ts";
import { payTo } from "./payers.ts";

/** Where what it works with is. */
export type X402ElsewhereOptions = Readonly<{
  ledger: LedgerDatabase;
  nodeUrl: string;
  facilitatorUrl: string;
  clock: Clock;
  makeId: MakeId;
}>;

const rest = { adjustments: [], fees: [], actualPaymentAmount: 0n, quotedPaymentAmount: 0n };

/** Opens it. It is never closed: its process is killed. */
export function openX402Elsewhere(options: X402ElsewhereOptions): OpenX402 {
  const { ledger, nodeUrl, facilitatorUrl, clock, makeId } = options;
  const network = readX402Network("base", { address: undefined, name: undefined, version: undefined });
  if ("fault" in network) throw new Error(network.fault);
  const terms = { network, payTo, timeoutSeconds: 300 };
  const rpc = openJsonRpc(nodeUrl);
  return openX402({
    terms,
    clock,
    ledger,
    makeId,
    client: createEvmClient(rpc, network.chainId),
    prices: {
      bytes: async (size) => ({ winc: winc(size), networkWinc: winc(size), adjustments: [] }),
      token: async (_token, amount) => ({ winc: winc(amount), ...rest }),
      tokenFor: async (_token, wanted) => wanted,
    },
    evm: createEvmChain(rpc, network.chainId),
    settle: openFacilitator({ url: facilitatorUrl, terms }).settle,
    finalConfirmations: 20,
    excluded: new Set<string>(),
    log: silentLog,
    watchMs: 5,
    patience: { sentMs: 200, unknownMs: 200, pauseMs: 5 },
  });
}

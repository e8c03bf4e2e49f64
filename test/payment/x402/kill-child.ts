/**
 * A process to be killed: takes x402 payments over HTTP for a ledger, a node and a facilitator of its parent's.
 *
 * Arguments: the ledger's place, the node's URL, the facilitator's URL, milliseconds that its clock is ahead. Writes the
 * URL that it listens at.
 * @module
 */
import { winc } from "../../../src/arweave/winston.ts";
import { createX402Routes } from "../../../src/http/payment/x402-routes.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { createAsking } from "../../../src/payment/evm/asking.ts";
import { createEvmChain } from "../../../src/payment/evm/chain.ts";
import { openJsonRpc } from "../../../src/payment/evm/json-rpc.ts";
import { openFacilitator } from "../../../src/payment/x402/facilitator.ts";
import { readX402Network } from "../../../src/payment/x402/networks.ts";
import { openX402 } from "../../../src/payment/x402/open-x402.ts";
import { createTransferIds } from "../../../src/store/ledger/transfer-ids.ts";
import { openPlace } from "../../support/ledger-place.ts";
import { openPaymentServer } from "../../support/payment-server.ts";
import { payTo } from "./payers.ts";

const [place = "", nodeUrl = "", facilitatorUrl = "", ahead = "0"] = process.argv.slice(2);
const clock = () => Date.now() + Number(ahead);
const network = readX402Network("base", { address: undefined, name: undefined, version: undefined });
if ("fault" in network) throw new Error(network.fault);
const terms = { network, payTo, timeoutSeconds: 300 };
const rpc = openJsonRpc(nodeUrl);
const rest = { adjustments: [], fees: [], actualPaymentAmount: 0n, quotedPaymentAmount: 0n };
const x402 = openX402({
  ...{ terms, clock, ledger: await openPlace(place), asking: createAsking(rpc, network.chainId) },
  prices: {
    bytes: async (size) => ({ winc: winc(size), networkWinc: winc(size), adjustments: [] }),
    token: async (_token, amount) => ({ winc: winc(amount), ...rest }),
    tokenFor: async (_token, wanted) => wanted,
  },
  evm: createEvmChain(rpc, network.chainId),
  settle: openFacilitator({ url: facilitatorUrl, terms }).settle,
  ...{ finalConfirmations: 20, excluded: new Set<string>(), log: silentLog, watchMs: 5 },
  makeId: createTransferIds(clock, Math.random),
  patience: { sentMs: 200, unknownMs: 200, pauseMs: 5 },
});
const server = openPaymentServer(() => [
  createX402Routes({ x402, publicUrl: () => "http://localhost:3001" }),
]);
process.stdout.write(`${server.url}\n`);
// Whoever is to kill it may have ended itself.
await Bun.sleep(120_000);
process.exit(1);

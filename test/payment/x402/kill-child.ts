/**
 * A process to be killed: takes x402 payments over HTTP for a ledger, a node and a facilitator of its parent's.
 *
 * Arguments: the ledger's place, the node's URL, the facilitator's URL, milliseconds that its clock is ahead. Writes
 * the URL that it listens at.
 * @module
 */
import { createX402Routes } from "../../../src/http/payment/x402-top-up-routes.ts";
import { createTransferIds } from "../../../src/store/ledger/transfers.ts";
import { openPlace } from "../../support/ledger-place.ts";
import { openPaymentServer } from "../../support/payment-server.ts";
import { openX402Elsewhere } from "./x402-elsewhere.ts";

const [place = "", nodeUrl = "", facilitatorUrl = "", ahead = "0"] = process.argv.slice(2);
const clock = () => Date.now() + Number(ahead);
const makeId = createTransferIds(clock, Math.random);
const x402 = openX402Elsewhere({ ledger: await openPlace(place), nodeUrl, facilitatorUrl, clock, makeId });
const server = openPaymentServer(() => [createX402Routes({ x402, publicUrl: () => "http://localhost:3001" })]);
process.stdout.write(`${server.url}\n`);
// The process that kills it may have ended.
await Bun.sleep(120_000);
process.exit(1);

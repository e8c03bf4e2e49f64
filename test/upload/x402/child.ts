/**
 * A process that takes uploads with their payment until it is killed: `bun child.ts <ledger> <folder of uploads>
 * <key file> <the key's modulus> <the node's URL> <the facilitator's URL> <milliseconds that its clock is ahead>
 * <steps>`. Prints the URL that it listens at. It ends itself by SIGKILL before or after its so many-th lasting step; 0
 * is never.
 * @module
 */
import { writeSync } from "node:fs";
import { createCredits } from "../../../src/payment/credits/credits.ts";
import { createTransferIds } from "../../../src/store/ledger/transfers.ts";
import { openX402Elsewhere } from "../../payment/x402/x402-elsewhere.ts";
import { openPlace } from "../../support/ledger-place.ts";
import { openMultipartFixture, stepped } from "../multipart/multipart-fixture.ts";
import { openX402UploadServer } from "./upload-server.ts";

const [place = "", folder = "", file = "", modulus = "", nodeUrl = "", facilitatorUrl = "", ahead = "0", steps = "0"] =
  process.argv.slice(2);
const clock = () => Date.now() + Number(ahead);
const database = await openPlace(place);
const makeId = createTransferIds(clock, Math.random);

let left = Number.POSITIVE_INFINITY;
const step = () => {
  left -= 1;
  if (left === 0) process.kill(process.pid, "SIGKILL");
};

const rules = { itemBytesMax: 2 ** 20, freeBytesMax: 0, blocked: new Set<string>() };
const fixture = await openMultipartFixture({ database, folder, makeId, clock, rules, step });
const observed = stepped(database, step);
const credits = createCredits({ database: observed, clock, makeId });
while ((await credits.expire(new AbortController().signal)) > 0);
const x402 = openX402Elsewhere({ ledger: observed, nodeUrl, facilitatorUrl, clock, makeId });
const key = { file, modulus };
const { server } = openX402UploadServer({ x402, fixture, folder, key, credits, rules, clock });
if (steps !== "0") left = Number(steps);
writeSync(1, `${server.url}\n`);
// The process that kills it may have ended.
await Bun.sleep(300_000);
process.exit(1);

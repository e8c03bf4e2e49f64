/**
 * The simulated Stripe in its own process, as `cairn dev` has it in its process: a listener, a file, faults.
 *
 * Argument: JSON of {path, port, seed, faults, secretKey}. Prints {url}; each line of its input is a target of deliveries.
 */
import { openStripeSandbox } from "../../../src/dev/sandbox/stripe.ts";
import { createSandboxRoutes } from "../../../src/dev/sandbox-routes/sandbox-routes.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { createRandom } from "../../support/random.ts";

const { path, port, seed, faults, secretKey } = JSON.parse(process.argv[2] ?? "{}");
const random = createRandom(seed);
const sandbox = openStripeSandbox({
  path,
  clock: systemClock,
  random: () => random.below(2 ** 32) / 2 ** 32,
  faults,
  log: silentLog,
});
let url = "";
const server = Bun.serve({
  hostname: "127.0.0.1",
  port,
  fetch: createSandboxRoutes({
    sandbox,
    secretKey,
    pageUrl: () => url,
    priceFeed: () => undefined,
    log: silentLog,
  }),
});
url = `http://127.0.0.1:${server.port}`;
console.log(JSON.stringify({ url }));
for await (const line of console) if (line !== "") sandbox.deliverTo(JSON.parse(line));

/**
 * A service that responds something else: a command says so, and shows no amount or height that was not sent.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { signedWincText } from "../../src/cli/operator-client.ts";
import { runCairn } from "./command.ts";

let response: (path: string) => Response = () => Response.json({});
const service = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: ({ url }) => response(new URL(url).pathname) });
const url = `http://127.0.0.1:${service.port}`;
const address = "A".repeat(43);

afterAll(() => service.stop(true));

const without = (name: string) => `${url} responded without an amount "${name}"`;
const noAmount = without("winc");
const noChain = `${url} did not respond as a development chain does`;

/** A service that sells credits, with a quote. */
function shop(path: string, quote: Readonly<Record<string, string>>): Response {
  if (path === "/v1/currencies") return Response.json({ limits: { usd: {} } });
  if (path === "/v1/account/balance") return Response.json({ winc: "-1234" });
  return Response.json({ topUpQuote: quote, paymentSession: { url: "https://shop.example/pay" } });
}

test.each([
  ["a price without an amount", ["price", "1GiB", "--to", url], () => Response.json({ fees: [] }), noAmount],
  ["a price in words", ["price", "1GiB", "--to", url], () => Response.json({ winc: "free" }), noAmount],
  ["a price as a number", ["price", "1GiB", "--to", url, "--json"], () => Response.json({ winc: 5 }), noAmount],
  ["a balance without an amount", ["balance", address, "--to", url], () => Response.json({}), noAmount],
  ["a negative price", ["price", "1GiB", "--to", url], () => Response.json({ winc: "-1" }), noAmount],
  ["two signs", ["balance", address, "--to", url, "--json"], () => Response.json({ winc: "--1" }), noAmount],
  [
    "a sum in words",
    ["balance", address, "--to", url],
    () => Response.json({ winc: "5", effectiveBalance: "much" }),
    without("effectiveBalance"),
  ],
  [
    "an approval without its used part",
    ["balance", address, "--to", url],
    () => Response.json({ winc: "5", givenApprovals: [{ approvedWincAmount: "5" }] }),
    without("usedWincAmount"),
  ],
  [
    "a quote without credits",
    ["topup", "10", "usd", address, "--to", url],
    (path: string) => shop(path, {}),
    without("winstonCreditAmount"),
  ],
  ["a height in words", ["mine", "--node", url], () => Response.json({ height: "none" }), noChain],
  ["no height", ["mine", "2", "--node", url], () => new Response("OK"), noChain],
  ["a page in place of a balance", ["mint", address, "1AR", "--node", url], () => new Response("<html>"), noChain],
] as const)("%s", async (_, words, responds, message) => {
  response = responds;
  const { code, out, err } = await runCairn(words);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(message);
});

test("shows the debt of an account, and sells it credits", async () => {
  response = (path) => Response.json({ winc: path.startsWith("/v1/price") ? "1000" : "-1234" });
  const shown = await runCairn(["balance", address, "--to", url]);
  expect([shown.code, shown.out, shown.err]).toEqual([0, `  account   ${address}\n  balance   -1,234 winc\n`, ""]);
  response = (path) => shop(path, { topUpQuoteId: "1", winstonCreditAmount: "5000" });
  const bought = await runCairn(["topup", "10", "usd", address, "--to", url, "--wait", "0"]);
  expect([bought.code, bought.out]).toEqual([0, expect.stringContaining("10 usd buy 5,000 winc for")]);
});

test("shows the balance at a service without approvals as what can be spent", async () => {
  response = (path) => Response.json({ winc: path.startsWith("/v1/price") ? "1000" : "5000" });
  const { out } = await runCairn(["balance", address, "--to", url]);
  expect(out).toBe(`  account   ${address}\n  balance   5,000 winc  (about 5.0 GiB of storage)\n`);
});

test("shows an amount that the gateway of an operator did not send as unknown", async () => {
  response = () => Response.json({ winc: "-1234", controlledWinc: "many", history: [{ kind: "refund", at: 0 }] });
  const { code, out } = await runCairn(["accounts", "show", address, "--gateway", url, "--admin-key", "a-key"]);
  expect(code).toBe(0);
  expect(out).toContain("balance                  -1,234 winc");
  expect(out).toContain("with given approvals     an unknown amount");
  expect(out).toContain("an unknown amount  refund");
  expect(out).not.toContain(" 0 winc");
});

test.each([
  [2n ** 255n - 1n, 77],
  [-(10n ** 20n), 21],
])("shows all digits of a sum of balances: %p", (sum, digits) => {
  expect(signedWincText(sum).replace(/\D/g, "")).toBe(String(sum).replace("-", ""));
  expect(signedWincText(sum).replace(/\D/g, "")).toHaveLength(digits);
});

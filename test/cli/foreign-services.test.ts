/**
 * A service that responds something else: a command says so, and shows no amount or height that was not sent.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { runCairn } from "./command.ts";

let response: () => Response = () => Response.json({});
const service = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => response() });
const url = `http://127.0.0.1:${service.port}`;
const address = "A".repeat(43);

afterAll(() => service.stop(true));

const noAmount = `${url} responded without an amount "winc"`;
const noChain = `${url} did not respond as a development chain does`;

test.each([
  ["a price without an amount", ["price", "1GiB", "--to", url], () => Response.json({ fees: [] }), noAmount],
  ["a price in words", ["price", "1GiB", "--to", url], () => Response.json({ winc: "free" }), noAmount],
  ["a price as a number", ["price", "1GiB", "--to", url, "--json"], () => Response.json({ winc: 5 }), noAmount],
  ["a balance without an amount", ["balance", address, "--to", url], () => Response.json({}), noAmount],
  ["a negative balance", ["balance", address, "--to", url, "--json"], () => Response.json({ winc: "-1" }), noAmount],
  ["a height in words", ["mine", "--node", url], () => Response.json({ height: "none" }), noChain],
  ["no height", ["mine", "2", "--node", url], () => new Response("OK"), noChain],
  ["a page in place of a balance", ["mint", address, "1AR", "--node", url], () => new Response("<html>"), noChain],
] as const)("%s", async (_, words, responds, message) => {
  response = responds;
  const { code, out, err } = await runCairn(words);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(message);
});

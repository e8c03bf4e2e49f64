/**
 * The services of one program: each on a port of its own, and below a prefix of the gateway's.
 * Source: docs/reference/gateway.md#which-route-serves-a-request; docs/reference/gateway.md#information-and-health.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningProgram, startDev } from "../support/program.ts";

let program: RunningProgram;

beforeAll(async () => {
  program = await startDev();
}, 120_000);
afterAll(() => program.remove());

async function json(url: string): Promise<Record<string, unknown>> {
  const response = await fetch(url);
  expect([url, response.status]).toEqual([url, 200]);
  return await response.json();
}

describe("one program", () => {
  test("names the wallet that pays for bundles, and where its services are", async () => {
    const info = await json(`${program.line.gateway}/svc/info`);
    expect(info["wallet"]).toMatch(/^[\w-]{43}$/);
    expect(info["services"]).toEqual({ upload: "/upload", payment: "/payment" });
    const payment = await json(`${program.line.payment}/v1/info`);
    expect(payment["addresses"]).toMatchObject({ native: info["wallet"], arweave: info["wallet"] });
  });

  test.each(["payment", "upload"] as const)("serves %s on its own port and on the gateway's", async (name) => {
    const own = program.line[name];
    const mounted = `${program.line.gateway}/${name}`;
    for (const base of [own, `${own}/v1`, mounted, `${mounted}/v1`]) {
      expect(await json(`${base}/info`)).toEqual(await json(`${own}/info`));
      expect(await json(base)).toEqual(await json(`${own}/info`));
    }
    expect((await fetch(`${mounted}/api-docs`)).status).toBe(200);
  });

  test("keeps the services off hosts that belong to content", async () => {
    const { port } = new URL(program.line.gateway);
    const headers = { Host: `${"a".repeat(52)}.localhost:${port}` };
    expect((await fetch(`http://127.0.0.1:${port}/payment/v1/info`, { headers })).status).toBe(404);
  });
});

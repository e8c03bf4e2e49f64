/**
 * Limits of clients over the whole program: one budget, whichever of its listeners is asked.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

let program: RunningProgram;

beforeAll(async () => {
  const environment = {
    HOST: "127.0.0.1",
    ENABLE_RATE_LIMITER: "true",
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: "200",
    RATE_LIMITER_IP_REFILL_PER_SEC: "1",
  };
  program = await startDev({ environment });
}, 120_000);
afterAll(() => program.remove());

test("Q: who has asked the payment service for too much has no more of it, of uploads, nor of the gateway", async () => {
  const { payment, upload, gateway } = program.line;
  const status = async (url: string) => (await fetch(url)).status;
  const spend = async () => {
    const seen = new Set<number>();
    for (let asked = 0; asked < 1_000 && !seen.has(429); asked += 1) seen.add(await status(`${payment}/v1/rates`));
    return [...seen];
  };
  expect(await spend()).toEqual([200, 429]);
  const response = await eventually(
    () => fetch(`${payment}/v1/rates`),
    ({ status }) => status === 429,
  );
  expect(await response.json()).toEqual({ error: "Too Many Requests", message: "IP rate limit exceeded" });
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
  const places = [`${payment}/rates`, `${upload}/v1/info`, `${gateway}/payment/v1/rates`, `${gateway}/info`];
  for (const place of places) {
    // A token comes back each second, so a place may have one; a budget of its own would have 200.
    const found = new Set<number>();
    for (let round = 0; round < 5 && !found.has(429); round += 1) {
      await spend();
      found.add(await status(place));
    }
    expect([place, found.has(429)]).toEqual([place, true]);
  }
  const watched = [`${payment}/health`, `${upload}/health`, `${gateway}/ready`];
  expect(await Promise.all(watched.map(status))).toEqual([200, 200, 200]);
}, 120_000);

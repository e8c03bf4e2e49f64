/**
 * Gateways with priorities: the lower number is asked first, the next after an absence or a fault.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { openGateways } from "../../src/chain/gateways.ts";
import { silentLog } from "../../src/lib/log.ts";

const asked: string[] = [];
let preferredStatus = 200;

const serve = (name: string, status: () => number) =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => {
      asked.push(name);
      return new Response(null, { status: status(), headers: { "Content-Length": "7" } });
    },
  });
const preferred = serve("preferred", () => preferredStatus);
const second = serve("second", () => 200);
afterAll(() => Promise.all([preferred.stop(true), second.stop(true)]));

const addressOf = (server: typeof preferred, priority: number, trusted: boolean) => ({
  url: `http://127.0.0.1:${server.port}`,
  priority,
  trusted,
});

test("gateways are asked in order of priority, and each response says whether its gateway is trusted", async () => {
  for (const random of [() => 0, () => 0.999, Math.random]) {
    let now = 0;
    const gateways = openGateways([addressOf(second, 2, true), addressOf(preferred, 1, false)], {
      clock: () => now,
      random,
      log: silentLog,
    });
    const find = async () => {
      asked.length = 0;
      const signal = AbortSignal.timeout(20_000);
      const found = await gateways.find("id", async (value) => ({ kind: "ok", value }) as const, signal);
      // On a slow machine the other one is asked meanwhile, and may be sooner: each says its own of itself.
      if (found.kind !== "ok") throw new Error(`not found: ${Bun.inspect(found)}`);
      expect(found.value.trusted).toBe(found.value.gateway.endsWith(`:${second.port}`));
      return asked[0];
    };
    preferredStatus = 200;
    for (let round = 0; round < 10; round++) expect(await find()).toBe("preferred");
    // A gateway that failed backs off: the other one is asked first until the backoff ends.
    preferredStatus = 503;
    expect(await find()).toBe("preferred");
    preferredStatus = 200;
    expect(await find()).toBe("second");
    now += 3_600_000;
    expect(await find()).toBe("preferred");
    gateways.close();
  }
});

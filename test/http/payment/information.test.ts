/**
 * What the payment service says of itself.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { createHealth } from "../../../src/gateway/health.ts";
import { createPaymentInformationRoutes } from "../../../src/http/service-information.ts";
import { createMetrics } from "../../../src/lib/metrics.ts";
import type { Token } from "../../../src/payment/addresses.ts";
import { openPaymentServer } from "../../support/payment-server.ts";

const addresses = new Map<Token, string>([
  ["native", "1seRanklLU_1VTGkEk7P0xAwMJfA7owA1JHW5KyZKlY"],
  ["matic", "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"],
  ["polygon-usdc", "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"],
]);

const metrics = createMetrics();
metrics.gaugeOf({ name: "sample_figure", help: "A sample.", read: () => 3 });

const server = openPaymentServer(() => [
  createPaymentInformationRoutes({
    release: "1.2.3",
    gatewayUrl: (request) => new URL(request.url).origin,
    addresses,
    freeBytesMax: 100,
    health: createHealth({ clock: Date.now, checks: [() => ["A reason."]], notes: [], readiness: [] }),
    metrics,
  }),
]);

afterAll(() => server.close());

describe("the payment service's word on itself", () => {
  test.each(["/", "/info", "/v1/info"])("at %s names its addresses by every word that clients know", async (path) => {
    const response = await fetch(`${server.url}${path}`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.json()).toEqual({
      version: "1.2.3",
      gateway: server.url,
      freeUploadLimitBytes: 100,
      addresses: {
        native: addresses.get("native"),
        arweave: addresses.get("native"),
        matic: addresses.get("matic"),
        pol: addresses.get("matic"),
        "polygon-usdc": addresses.get("polygon-usdc"),
      },
    });
  });

  test("names at least 190 countries, the most usual first, each once, those under embargo not at all", async () => {
    const response = await fetch(`${server.url}/v1/countries`);
    expect(response.headers.get("cache-control")).toBe("public, max-age=3600");
    const countries: string[] = await response.json();
    expect(countries.length).toBeGreaterThanOrEqual(190);
    expect(countries.slice(0, 2)).toEqual(["United States", "United Kingdom"]);
    const rest = countries.slice(2);
    expect(rest).toEqual([...rest].sort((left, right) => left.localeCompare(right, "en")));
    expect(new Set(countries).size).toBe(countries.length);
    for (const name of ["North Korea", "Iran", "Syria", "Cuba"]) expect(countries).not.toContain(name);
    for (const name of countries) expect(name).toMatch(/^[\p{L}][\p{L}' -]+$/u);
  });

  test("says how it is, and why", async () => {
    const response = await fetch(`${server.url}/health`);
    expect(response.status).toBe(200);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(await response.json()).toMatchObject({ status: "unhealthy", reasons: ["A reason."] });
  });

  test("has metrics", async () => {
    const response = await fetch(`${server.url}/metrics`);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await response.text()).toContain("sample_figure 3");
  });
});

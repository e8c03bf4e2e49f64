/**
 * Pages of metrics: fresh for collectors, shared by those who ask for more, and counted in the memory of bodies.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createBodyMemory } from "../../src/http/body-memory.ts";
import { createMetricsRoutes } from "../../src/http/metrics-routes.ts";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import { createMetrics, type Metrics } from "../../src/lib/metrics.ts";
import { openServer } from "../support/http-server.ts";
import { createRecordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";

/** Metrics of so many series, each page of which is counted. */
function largeMetrics(series: number): Readonly<{ metrics: Metrics; pages: () => number }> {
  const metrics = createMetrics();
  const values = Array.from({ length: series }, (_, index) => `value-${index}`);
  const counter = metrics.counter({ name: "numbers_total", help: "Numbers.", labels: { number: values } });
  const sizes = metrics.histogram({ name: "sizes", help: "Sizes.", labels: ["number"], buckets: [1, 10] });
  for (const number of values) {
    counter.inc({ number });
    sizes.series({ number }).observe(2);
  }
  let pages = 0;
  metrics.countOf({ name: "pages_total", help: "Pages.", read: () => ++pages });
  return { metrics, pages: () => pages };
}

const ask = (app: ReturnType<typeof createMetricsRoutes>) => app.handle(new Request("http://localhost/metrics"));

describe("N6: metrics pages", () => {
  test("are written a few at once and then some a second, and are the same for all others", async () => {
    const { metrics, pages } = largeMetrics(2_000);
    let now = 0;
    const app = createMetricsRoutes(metrics, ["/metrics"], () => now);
    const first = await (await ask(app)).text();
    const size = first.length;
    expect(size).toBeGreaterThan(2 ** 18);
    const texts = await Promise.all(Array.from({ length: 1_000 }, async () => (await ask(app)).text()));
    const atOnce = 1 + Math.ceil((4 * 2 ** 20 - 2 ** 16) / size);
    expect(pages()).toBe(atOnce);
    expect(new Set(texts).size).toBe(atOnce - 1);
    now += 8_000; // as many as at first
    for (let index = 0; index < 100; index++) await ask(app);
    expect(pages() - atOnce).toBeWithin(atOnce - 3, atOnce + 2);
    now += 1_000;
    const before = pages();
    expect(await (await ask(app)).text()).toContain(`\npages_total ${before + 1}\n`);
  });

  test("are written anew for each of a hundred who ask when they are small", async () => {
    const { metrics, pages } = largeMetrics(10);
    const app = createMetricsRoutes(metrics, ["/metrics"], () => 0);
    for (let index = 1; index <= 100; index++) {
      await ask(app);
      expect(pages()).toBe(index);
    }
  });

  test("have every series once, and others are served while a page is written", async () => {
    const { metrics } = largeMetrics(1_000);
    let semaphore = 0;
    let isWritten = false;
    const count = () => {
      semaphore += 1;
      if (!isWritten) setImmediate(count);
    };
    setImmediate(count);
    const text = await metrics.text();
    isWritten = true;
    const lines = text.split("\n").filter((line) => line.startsWith("sizes_count{"));
    expect(lines).toEqual(Array.from({ length: 1_000 }, (_, index) => `sizes_count{number="value-${index}"} 1`));
    expect(semaphore).toBeGreaterThan(10);
  });

  test("that are not read hold the memory of the pages, not of the readers", async () => {
    const { metrics } = largeMetrics(8_000);
    const { log } = createRecordingLog(Date.now);
    const memory = createBodyMemory({
      responseBytesMax: 256 * 2 ** 20,
      requestBytesMax: 2 ** 20,
      metrics,
    });
    const server = openServer({
      hostname: "127.0.0.1",
      port: 0,
      app: createMetricsRoutes(metrics, ["/metrics"], () => 0),
      bodyBytesMax: 1,
      memory,
      log,
      stats: createRequestMetrics(metrics, log),
    });
    const size = (await (await fetch(`${server.url}/metrics`)).bytes()).length;
    expect(size).toBeGreaterThan(2 ** 20);
    let begun = 0;
    const clients = await Promise.all(
      Array.from({ length: 60 }, () =>
        Bun.connect({
          hostname: "127.0.0.1",
          port: server.port,
          socket: {
            open: (socket) => void socket.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            data: (socket) => {
              begun += 1;
              socket.pause();
            },
          },
        }),
      ),
    );
    await until(() => begun >= clients.length);
    const pages = 1 + Math.ceil((4 * 2 ** 20) / size); // the first is taken for less than it is
    expect(memory.responseBytes()).toBeLessThan((pages + 1) * size);
    for (const client of clients) client.terminate();
    await until(() => memory.responseBytes() === 0);
    await server.close(0);
  }, 60_000);
});

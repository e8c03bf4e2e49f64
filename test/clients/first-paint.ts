/**
 * Measures the first paint of each page in Chromium with a processor that is slowed down four times, and the script
 * that it loads. Run: `bun test/clients/first-paint.ts`. It needs the packages of test/clients.
 * @module
 */
import { startDev } from "../support/program.ts";
import { openBrowser } from "./browser.ts";

const paths = ["/", "/svc/explorer", "/svc/upload", "/svc/account", "/svc/console"];
const rounds = 5;
const slowdown = 4;

/** Fields of the browser's own measurements. */
const measures = `({
  paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1,
  script: performance.getEntriesByType("resource").filter(({ name }) => name.includes(".js"))
    .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
})`;

type Measured = Readonly<{ paint: number; script: number }>;

const program = await startDev();
const chromium = await openBrowser();
for (const path of paths) {
  const measured: Measured[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // A new context has an empty cache.
    const context = await chromium.newContext({ viewport: { width: 1_440, height: 900 } });
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
    await page.goto(`${program.line.gateway}${path}`, { waitUntil: "networkidle" });
    measured.push((await page.evaluate(measures)) as Measured);
    await context.close();
  }
  const paints = measured.map(({ paint }) => Math.round(paint)).toSorted((a, b) => a - b);
  process.stdout.write(`${path}: first paint ${paints.join(", ")} ms; ${measured[0]?.script ?? 0} bytes of script\n`);
}
await chromium.close();
await program.remove();
process.exit(0);

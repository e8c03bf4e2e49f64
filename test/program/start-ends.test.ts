/**
 * Starts of `cairn dev` that settings, resets and signals cut into: none waits for what is excluded, every one can be
 * ended at once, and no control ends the program.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { createServer } from "node:net";
import { runCairn } from "../cli/command.ts";
import { temporaryFolder } from "../store/folder.ts";
import { programPorts, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

const never = '{"never":true}';

describe("a start does not wait for a sample that a setting excludes", () => {
  test.each([
    ["a filter of bundles", { ANS104_UNBUNDLE_FILTER: never }],
    ["a filter of items", { ANS104_INDEX_FILTER: never }],
    ["a first block beyond it", { START_HEIGHT: "1000" }],
    ["a last block before it", { STOP_HEIGHT: "0" }],
  ])("%s", async (_what, environment) => {
    const program = await startDev({ environment });
    try {
      expect(program.line["sample"]).toBeUndefined();
      expect(await program.stop()).toBe(0);
      expect(program.errors()).toContain("the settings exclude it from the index");
    } finally {
      await program.remove();
    }
  });

  test("also when the chain has it already; one that was indexed before is shown", async () => {
    const environment = { STOP_HEIGHT: "0" };
    const excluded = await startDev({ environment });
    const { folder } = excluded;
    try {
      expect(await excluded.stop()).toBe(0);
      const rows = [
        [environment, false],
        [{}, true],
        [environment, true],
      ] as const;
      for (const [settings, isShown] of rows) {
        const again = await startDev({ folder, environment: settings });
        await eventually(
          () => fetch(`${again.line["gateway"]}/ready`).then(({ status }) => status),
          (status) => status === 200,
        );
        expect(again.line["sample"] !== undefined).toBe(isShown);
        if (isShown) {
          const { manifest } = again.line["sample"] as { manifest: string };
          const ask = () => fetch(`${again.line["gateway"]}/raw/${manifest}`).then(({ status }) => status);
          expect(await eventually(ask, (status) => status === 200)).toBe(200);
        }
        expect(await again.stop()).toBe(0);
      }
    } finally {
      await excluded.remove();
    }
  });
});

describe("the development chain's controls during the start", () => {
  test("/ready is 200 when the start is over, and resets before and after it do not end the program", async () => {
    const ports = programPorts();
    const node = `http://127.0.0.1:${ports["DEVNET_PORT"]}`;
    const gateway = `http://127.0.0.1:${ports["GATEWAY_PORT"]}`;
    let isReady = false;
    let resets = 0;
    const ask = (url: string) =>
      fetch(url).then(
        ({ status }) => status,
        () => 0,
      );
    const watch = (async () => {
      // Two resets while the sample is planted, then one at the first 200 of /ready.
      while (!isReady) {
        isReady = (await ask(`${gateway}/ready`)) === 200;
        if ((isReady || resets < 2) && (await ask(`${node}/reset`)) === 200) resets += 1;
        await Bun.sleep(100);
      }
    })();
    const program = await startDev({ ports });
    try {
      await watch;
      expect(resets).toBe(3);
      expect(await ask(`${node}/height`)).toBe(200);
      expect(await ask(`${gateway}/ready`)).toBe(200);
      expect(await program.stop()).toBe(0);
    } finally {
      await program.remove();
    }
  });
});

describe("a start that receives a stop signal", () => {
  test.each(["SIGTERM", "SIGHUP"])(
    "%s ends with exit code 0 and without its folder, whatever it waits for",
    async (name) => {
      using place = temporaryFolder();
      // A database server that takes the connection and says nothing.
      const silent = createServer(() => requested.resolve());
      const requested = Promise.withResolvers<void>();
      await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
      const address = silent.address();
      const port = typeof address === "object" ? address?.port : undefined;
      const ledger = { LEDGER_URL: `postgres://u:p@127.0.0.1:${port}/x` };
      const environment = { ...ledger, LOG_FORMAT: "json", TMPDIR: place.path };
      try {
        const { code, out, err } = await runCairn(["dev", "--ephemeral", "--port", "0", "--json"], {
          environment,
          onStart: ({ kill }) => void requested.promise.then(() => kill(name)),
        });
        expect([code, out]).toEqual([0, ""]);
        expect(err).toContain("stopping during the start");
        expect(err).not.toContain("    at ");
        expect(readdirSync(place.path)).toEqual([]);
      } finally {
        silent.close();
      }
    },
  );
});

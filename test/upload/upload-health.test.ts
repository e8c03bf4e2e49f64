/**
 * The health of the upload service says why every upload is rejected with status 503.
 * @module
 */
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";
import { openUploadStack, type UploadStack, type UploadStackOptions } from "../support/upload-stack.ts";

const noNode = { before: () => "http://127.0.0.1:1", waitsForTip: false };

/** A fault, the response to an upload, and the report of health. */
const rows: readonly (readonly [
  name: string,
  options: UploadStackOptions,
  spoil: (stack: UploadStack) => void,
  message: string,
  reason: RegExp,
])[] = [
  [
    "no wallet is set",
    { hasWallet: false },
    () => undefined,
    "Uploads are switched off: no wallet is set",
    /WALLET_FILE/,
  ],
  ["no block was followed", noNode, () => undefined, "Chain state not available yet", /no block has been followed/],
  [
    "no price is known, and nothing is free",
    { ...noNode, environment: { FREE_UPLOAD_BYTES: "0" } },
    () => undefined,
    "Pricing Oracle Unavailable",
    /above 0 bytes are rejected: the network's price/,
  ],
  [
    "there is no free space",
    { environment: { UPLOAD_DISK_BYTES_MAX: "10" } },
    () => undefined,
    "No space for uploads",
    /UPLOAD_DISK_BYTES_MAX|Uploads take/,
  ],
  [
    "the folder of uploads is gone",
    {},
    ({ folder }) => rmSync(join(folder, "uploads"), { recursive: true }),
    "Storage of uploads failed",
    /folder of uploads cannot be examined|could not be written/,
  ],
];

test.each(rows)(
  "uploads are rejected and health says why: %s",
  async (_, options, spoil, message, reason) => {
    const stack = await openUploadStack(options);
    try {
      spoil(stack);
      const { bytes } = testItem(new Uint8Array(100));
      const response = await eventually(
        () => fetch(`${stack.uploads}/tx`, { method: "POST", body: bytes }),
        ({ status }) => status === 503,
        20_000,
      );
      expect(await response.json()).toBe(message);
      const health = await (await fetch(`${stack.uploads}/health`)).json();
      expect(health.status).toBe("unhealthy");
      expect(health.reasons.join(" ")).toMatch(reason);
    } finally {
      await stack.close();
    }
  },
  60_000,
);

test("where uploads are taken health is ok, also again", async () => {
  const stack = await openUploadStack();
  try {
    const health = await eventually(
      async () => await (await fetch(`${stack.uploads}/health`)).json(),
      ({ status }) => status === "ok",
      20_000,
    );
    expect(health.reasons).toEqual([]);
  } finally {
    await stack.close();
  }
}, 60_000);

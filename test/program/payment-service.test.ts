/**
 * What running a payment service takes: one program and a folder. The peer's takes a database with a second one to read
 * from, two stores of secrets, a queue and a sender of mail, and its other services spend credits over HTTP.
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ledgerSchema } from "../../src/store/ledger/ledger-schema.ts";
import { openSqliteLedger } from "../../src/store/ledger/sqlite-ledger.ts";
import { type RunningProgram, startDev } from "../support/program.ts";

describe("O: a payment service", () => {
  let program: RunningProgram;

  beforeAll(async () => {
    program = await startDev({ environment: { HOST: "127.0.0.1" } });
  }, 120_000);
  afterAll(() => program.remove());

  test("creates its tables before its first response", async () => {
    const path = join(program.folder, "ledger.sqlite");
    expect(existsSync(path)).toBe(true);
    const ledger = await openSqliteLedger({ path });
    const row = await ledger.read((tx) => tx.get("SELECT version FROM ledger_version"));
    await ledger.close();
    expect(row).toEqual({ version: BigInt(ledgerSchema.length) });
  });

  const inside = [
    "/reserve-balance/arweave/x?byteCount=1&dataItemId=x",
    "/refund-balance/arweave/x?winstonCredits=1&dataItemId=x",
    "/check-balance/arweave/x?byteCount=1",
    "/account/approvals/create?payingAddress=x&approvedAddress=y&winc=1&dataItemId=z",
    "/account/approvals/revoke?payingAddress=x&approvedAddress=y&dataItemId=z",
  ];
  test.each(inside)("has no door for other services to spend by: %s", async (path) => {
    const { payment, gateway } = program.line;
    for (const origin of [payment, `${payment}/v1`, `${gateway}/payment`, `${gateway}/payment/v1`]) {
      for (const method of ["GET", "POST"]) {
        // The peer takes any token that is signed with a word which its source has for a default.
        const headers = { authorization: `Bearer ${tokenSignedWith("test-secret")}` };
        const response = await fetch(`${origin}${path}`, { method, headers });
        expect([path, method, response.status, await response.json()]).toEqual([path, method, 404, "Not Found"]);
      }
    }
  });
});

function tokenSignedWith(secret: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part({})}`;
  return `${signed}.${new Bun.CryptoHasher("sha256", secret).update(signed).digest("base64url")}`;
}

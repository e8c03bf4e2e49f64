/**
 * A program that publishes its root of solvency by SOLVENCY_PUBLISH_MS: as an upload that costs nothing, once over a
 * kill, with proofs for the operator and for the owner of an account.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { dataFolderAt } from "../../src/app/data-folder.ts";
import { storedAdminKey } from "../../src/app/keys.ts";
import { readAddress } from "../../src/payment/addresses.ts";
import { verifySolvency } from "../../src/payment/operator/solvency.ts";
import { openLedger } from "../../src/store/ledger/open-ledger.ts";
import { createTransferIds, provider, transfer, user } from "../../src/store/ledger/transfers.ts";
import { runCairn } from "../cli/command.ts";
import { newFolder, type RunningProgram, startDev } from "../support/program.ts";
import { ethereumWallet, signedHeaders } from "../support/signed-headers.ts";
import { eventually } from "../support/until.ts";

const weekMs = 604_800_000;
const environment = { SOLVENCY_PUBLISH_MS: String(weekMs), FREE_UPLOAD_BYTES: "0" };
const owner = ethereumWallet(new Uint8Array(32).fill(5));
const other = ethereumWallet(new Uint8Array(32).fill(6));
const folder = newFolder();
let program: RunningProgram;
let key = "";

/** Credits that the account has had for two weeks. */
async function giveCredits(): Promise<void> {
  const path = dataFolderAt(folder).ledger;
  mkdirSync(dirname(path), { recursive: true });
  const ledger = await openLedger({ url: undefined, path });
  const address = readAddress(owner.address)?.address;
  if (address === undefined) throw new Error("the wallet has an address");
  const at = Date.now() - 2 * weekMs;
  const legs = [
    { account: provider("stripe"), amount: -1_234n },
    { account: user(address), amount: 1_234n },
  ];
  const id = createTransferIds(
    () => at,
    () => 0.5,
  )();
  await ledger.write((tx) => transfer(tx, { id, kind: "payment", at, legs }));
  await ledger.close();
}

beforeAll(async () => {
  await giveCredits();
  program = await startDev({ folder, environment });
  key = storedAdminKey(dataFolderAt(folder).keys) ?? "";
}, 120_000);
afterAll(() => program?.remove());

type Solvency = Readonly<{
  everyMs: number;
  current: Readonly<{ winc: string }>;
  roots: readonly Readonly<{ id: string; at: number; winc: string; accounts: number; publishedAt: number | null }>[];
}>;

async function admin(path: string): Promise<Response> {
  return await fetch(`${program.line.gateway}/svc/admin${path}`, { headers: { authorization: `Bearer ${key}` } });
}

async function readSolvency(): Promise<Solvency> {
  const response = await admin("/solvency");
  expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
  return await response.json();
}

const published = () =>
  eventually(readSolvency, ({ roots }) => roots.length > 0 && roots.every(({ publishedAt }) => publishedAt !== null));
const metrics = async () => await (await fetch(`${program.line.gateway}/metrics`)).text();

test("publishes the root of its clients' balances, proves them, and publishes nothing again after a kill", async () => {
  const { everyMs, roots } = await published();
  expect([everyMs, roots.length]).toEqual([weekMs, 1]);
  const [root] = roots;
  expect(root).toMatchObject({ accounts: 1, winc: "1234" });
  expect(root === undefined ? 1 : root.at % weekMs).toBe(0);
  const raw = await fetch(`${program.line.gateway}/raw/${root?.id}`);
  expect(await raw.json()).toMatchObject({ version: 1, at: root?.at, winc: "1234", accounts: 1 });
  const status = await (await fetch(`${program.line.upload}/tx/${root?.id}/status`)).json();
  expect(status).toMatchObject({ winc: "0" });
  expect(await metrics()).toContain('solvency_publications_total{result="published"} 1');

  const included = { account: `user:${readAddress(owner.address)?.address}`, winc: 1_234n };
  const proof = await admin(`/solvency/proof?account=${owner.address}`);
  expect(verifySolvency(await proof.json())).toMatchObject({ fault: undefined, root: { id: root?.id }, included });
  const own = await fetch(`${program.line.payment}/v1/svc/account/solvency-proof`, {
    headers: signedHeaders(owner, "a nonce"),
  });
  expect([own.status, own.headers.get("cache-control")]).toEqual([200, "no-store"]);
  const record = await own.json();
  expect(verifySolvency(record)).toMatchObject({ fault: undefined, root: { id: root?.id }, included });
  const stranger = await fetch(`${program.line.payment}/v1/svc/account/solvency-proof`, {
    headers: signedHeaders(other, "a nonce"),
  });
  expect(stranger.status).toBe(404);
  expect((await fetch(`${program.line.payment}/v1/svc/account/solvency-proof`)).status).toBe(403);

  const file = join(folder, "proof.json");
  const proved = await runCairn(["solvency", "prove", owner.address, "-o", file], {
    environment: { DATA_DIR: folder },
  });
  expect([proved.code, proved.err]).toEqual([0, ""]);
  expect((await runCairn(["solvency", "verify", file, "--json"])).out).toContain('"balance":"1234"');
  writeFileSync(file, JSON.stringify({ ...record, winc: "1235" }));
  expect((await runCairn(["solvency", "verify", file])).code).toBe(1);

  await program.kill();
  program = await startDev({ folder, environment });
  await eventually(metrics, (text) => text.includes("solvency_root_age_seconds "));
  const after = await readSolvency();
  // A week may have begun meanwhile.
  const later = after.roots.filter(({ at }) => at > (root?.at ?? 0));
  expect(after.roots).toEqual([...later, ...roots]);
  expect(later.length).toBe(Math.floor((Date.now() - 300_000) / weekMs) * weekMs > (root?.at ?? 0) ? 1 : 0);
}, 180_000);

test("the statement of a month is a CSV file for the owner of the key", async () => {
  const month = new Date(Date.now() - 2 * weekMs).toISOString().slice(0, 7);
  const response = await admin(`/statement?month=${month}`);
  const headers = ["content-type", "content-disposition", "cache-control"].map((name) => response.headers.get(name));
  expect(headers).toEqual(["text/csv; charset=utf-8", `attachment; filename="statement-${month}.csv"`, "no-store"]);
  const text = await response.text();
  expect(text).toContain(`${month},users,payment,1,1234\r\n`);
  const command = await runCairn(["statement", "--month", month], { environment: { DATA_DIR: folder } });
  // Dev's own wallets may get credits between the two.
  if (month !== new Date().toISOString().slice(0, 7)) expect(command.out).toBe(text);
  expect((await fetch(`${program.line.gateway}/svc/admin/statement?month=${month}`)).status).toBe(401);
});

test.each([
  ["/statement", 400],
  ["/statement?month=november", 400],
  ["/statement?month=2099-01", 400],
  ["/solvency/proof", 400],
  ["/solvency/proof?account=no-address", 400],
  ["/solvency/proof?account=0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A", 404],
] as const)("%s is %p", async (path, status) => {
  expect((await admin(path)).status).toBe(status);
});

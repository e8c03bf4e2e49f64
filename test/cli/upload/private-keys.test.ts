/**
 * Private keys in an uploaded folder: keys of every form are left out, and files that only look similar are not.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { join } from "node:path";
import { ed25519KeyPair } from "../../../src/arweave/signers/ed25519.ts";
import { createKeyTest } from "../../../src/cli/upload/private-keys.ts";
import { encodeBase58 } from "../../../src/lib/base-encodings.ts";
import { rsaKeys } from "../../support/rsa-keys.ts";
import { rsaKey, testKey } from "../../support/signers.ts";
import { runCairn } from "../command.ts";
import { openUploadFolder } from "./upload-folder.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const ed = generateKeyPairSync("ed25519");
const jwk = (key: KeyObject) => key.export({ format: "jwk" });
const pem = (key: KeyObject, type: "pkcs8" | "pkcs1" | "sec1") => String(key.export({ format: "pem", type }));
const der = (key: KeyObject, type: "pkcs8" | "pkcs1" | "sec1") => key.export({ format: "der", type });
const sealed = { format: "pem", type: "pkcs8", cipher: "aes-256-cbc", passphrase: "word" } as const;
const lines = (label: string, body = randomBytes(300).toString("base64").replace(/.{64}/g, "$&\n")) =>
  `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`;
const solana = Buffer.concat([testKey(4), ed25519KeyPair(testKey(4)).publicKey]);
const json = (value: unknown) => JSON.stringify(value, null, 2);
const hex = Buffer.from(testKey(9)).toString("hex");
const { d, n } = rsaKeys.other;
const openSsh = lines("OPENSSH PRIVATE KEY", `${Buffer.from("openssh-key-v1\0").toString("base64")}${"A".repeat(200)}`);
const legacy = lines(
  "RSA PRIVATE KEY",
  `Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n${"Ab0+".repeat(40)}`,
);

const keys: readonly (readonly [string, string, string | Uint8Array])[] = [
  ["an RSA JSON Web Key", "a.json", json(jwk(rsa.privateKey))],
  ["an EC JSON Web Key", "b.json", json(jwk(ec.privateKey))],
  ["an OKP JSON Web Key", "c.json", json(jwk(ed.privateKey))],
  ["a secret JSON Web Key", "d.json", json({ kty: "oct", k: randomBytes(32).toString("base64url") })],
  ["a wallet without its kty", "e.json", json({ n, e: "AQAB", d })],
  ["a set of JSON Web Keys", "f.json", json({ keys: [jwk(rsa.publicKey), jwk(ec.privateKey)] })],
  ["a key within a record", "g.json", json({ name: "x", wallets: [{ key: jwk(rsa.privateKey) }] })],
  ["a JSON Web Key behind a byte order mark", "h.json", `\uFEFF${json(jwk(rsa.privateKey))}`],
  ["a JSON Web Key in UTF-16", "i.json", Buffer.from(`\uFEFF${json(jwk(rsa.privateKey))}`, "utf16le")],
  ["PKCS #8", "a.pem", pem(rsa.privateKey, "pkcs8")],
  ["PKCS #8 of an Ed25519 key, the shortest", "b.pem", pem(ed.privateKey, "pkcs8")],
  ["PKCS #8, encrypted", "c.pem", String(rsa.privateKey.export(sealed))],
  ["PKCS #1", "d.pem", pem(rsa.privateKey, "pkcs1")],
  ["PKCS #1, encrypted as OpenSSL did", "e.pem", legacy],
  ["SEC 1", "f.pem", pem(ec.privateKey, "sec1")],
  [
    "SEC 1 behind its parameters",
    "g.pem",
    `${lines("EC PARAMETERS", "BggqhkjOPQMBBw==")}${pem(ec.privateKey, "sec1")}`,
  ],
  ["DSA", "h.pem", lines("DSA PRIVATE KEY")],
  ["OpenSSH", "id_ed25519", openSsh],
  ["OpenPGP", "i.asc", lines("PGP PRIVATE KEY BLOCK", `Version: x\n\n${"Ab0+".repeat(40)}\n=abcd`)],
  ["SSH2", "ssh2", lines("X").replaceAll("-----BEGIN X-----", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----")],
  ["PEM with line ends of Windows", "j.pem", pem(rsa.privateKey, "pkcs8").replaceAll("\n", "\r\n")],
  ["PEM in UTF-16, as PowerShell writes it", "k.pem", Buffer.from(`\uFEFF${pem(ec.privateKey, "pkcs8")}`, "utf16le")],
  ["PEM behind a certificate", "l.pem", `${lines("CERTIFICATE")}${pem(rsa.privateKey, "pkcs8")}`],
  ["PEM in YAML", "a.yaml", `key: |\n${pem(rsa.privateKey, "pkcs8").replaceAll(/^/gm, "  ")}`],
  ["PEM in JSON, as of a service account", "account.json", json({ private_key: pem(rsa.privateKey, "pkcs8") })],
  ["PEM that is cut short", "m.pem", pem(rsa.privateKey, "pkcs8").slice(0, 600)],
  ["PKCS #8 as DER", "a.der", der(rsa.privateKey, "pkcs8")],
  ["PKCS #1 as DER", "b.der", der(rsa.privateKey, "pkcs1")],
  ["SEC 1 as DER", "c.der", der(ec.privateKey, "sec1")],
  ["PKCS #12", "a.p12", new Uint8Array([0x30, 0x82, 0x0a, 0x00, 1, 2, 3])],
  ["PuTTY", "a.ppk", "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n"],
  ["age", "age.txt", `# created: 2024\nAGE-SECRET-KEY-1${"Q".repeat(58)}\n`],
  ["a Solana key pair", "id.json", JSON.stringify([...solana])],
  ["64 bytes as the Solana CLI writes them", "pair.json", JSON.stringify([...randomBytes(64)])],
  ["a seed of 32 bytes", "seed.json", JSON.stringify([...randomBytes(32)])],
  ["a Solana key pair as text", "sol.txt", `${encodeBase58(solana)}\n`],
  ["hexadecimal digits in a file for keys", "eth.key", `0x${hex}\n`],
  ["hexadecimal digits in a file whose name says so", "private-key.txt", hex],
  ["an encrypted Ethereum key", "UTC--2024", json({ version: 3, crypto: { ciphertext: hex, kdf: "scrypt" } })],
  ["a copy of the wallet", "backup.bin", JSON.stringify(rsaKey)],
  ["a module that holds the wallet", "config.js", `export const key = { n: "x", d: '${String(rsaKey["d"])}' };`],
];

const notKeys: readonly (readonly [string, string, string | Uint8Array])[] = [
  ["a public JSON Web Key", "a.json", json(jwk(rsa.publicKey))],
  ["a public EC JSON Web Key", "b.json", json(jwk(ec.publicKey))],
  ["a public key", "a.pem", String(rsa.publicKey.export({ format: "pem", type: "spki" }))],
  ["a public key as DER", "a.der", rsa.publicKey.export({ format: "der", type: "spki" })],
  ["a certificate", "b.pem", lines("CERTIFICATE")],
  ["a tutorial", "a.md", "Paste it:\n\n-----BEGIN RSA PRIVATE KEY-----\nMIIE...\n-----END RSA PRIVATE KEY-----\n"],
  ["a library", "lib.js", `a="-----BEGIN PRIVATE KEY-----\\n"+b+"\\n-----END PRIVATE KEY-----";`],
  ["a library, minified", "min.js", "r.test(/-----BEGIN (RSA )?PRIVATE KEY-----/)&&s('-----BEGIN PRIVATE KEY-----')"],
  ["a checksum", "a.sha256", `${hex}\n`],
  ["an address", "address.txt", `0x${"1".repeat(40)}`],
  ["a list of 63 numbers", "c.json", JSON.stringify([...randomBytes(63)])],
  ["a list of 64 larger numbers", "d.json", JSON.stringify(Array.from({ length: 64 }, (_, index) => index * 300))],
  ["a list of 32 numbers", "e.json", JSON.stringify([...randomBytes(32)])],
  ["a record with d", "f.json", json({ kty: "RSA", n, d: 1 })],
  ["a drawing's path", "g.json", json({ d: "M0 0 L10 10", n: "line" })],
  ["a word in base58", "h.txt", "hello"],
  ["JSON that nests without end", "i.json", "[".repeat(100_000)],
  ["an empty file", "empty.key", ""],
  ["a picture", "a.png", randomBytes(4_000)],
];

describe("W2: whether a file is a private key", () => {
  const isKey = createKeyTest(JSON.stringify(rsaKey));
  test.each(keys)("%s is a key", (_what, name, content) => {
    expect(isKey(name, Buffer.from(content))).toBe(true);
  });
  test.each(notKeys)("%s is not a key", (_what, name, content) => {
    expect(isKey(name, Buffer.from(content))).toBe(false);
  });

  test("headers without an end take time in proportion to the size of the file", () => {
    const text = "-----BEGIN PRIVATE KEY-----\n".repeat(30_000);
    expect(isKey("x", Buffer.from(text))).toBe(false);
  });
});

describe("W2: cairn upload", () => {
  const { folder, service, write } = openUploadFolder("cairn-keys-");
  const wallet = write("wallet/key.json", JSON.stringify(rsaKey));
  beforeAll(() => {
    write("site/index.html", "<h1>Hi</h1>");
    for (const [, name, content] of keys) write(`site/${name}`, content);
  });
  const upload = (...words: string[]) =>
    runCairn(["upload", ...words, "--to", service.url, "--wallet", wallet], {
      cwd: folder,
      environment: { XDG_STATE_HOME: join(folder, "state") },
    });

  test("leaves every key out of a folder, and lists it", async () => {
    const { out } = await upload("site", "--json", "--hidden", "--follow-links");
    const { items, leftOutReasons } = JSON.parse(out);
    expect(items.map(({ path }: { path: string }) => path)).toEqual(["index.html"]);
    expect(leftOutReasons).toEqual(Object.fromEntries(keys.map(([, name]) => [name, "key"])));
    const { out: page } = await upload("site");
    for (const [, name] of keys) expect(page).toContain(name);
    expect(page).toContain("keys, which would be public");
  });

  test("uploads a key that is the argument, and says that it will be public; never the wallet itself", async () => {
    const { code, out, err } = await upload("site/d.pem", "--json");
    expect([code, JSON.parse(out).items[0].path]).toEqual([0, "d.pem"]);
    expect(err).toContain("a private key, will be public, and cannot be removed");
    expect(await upload(wallet)).toMatchObject({ code: 2, err: expect.stringContaining("contains keys") });
  });

  test("uploads nothing of a folder of keys", async () => {
    write("keys-only/a.pem", pem(rsa.privateKey, "pkcs8"));
    expect(await upload("keys-only")).toMatchObject({
      code: 2,
      err: "keys-only contains no files except those that are left out: a.pem (key)\n",
    });
  });
});

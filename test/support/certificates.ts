/**
 * Certificates for tests, signed by themselves, made by openssl in a folder.
 * @module
 */
import { join } from "node:path";
import type { Need } from "./helpers.ts";

/** The program that makes them. */
export const openssl: Need = { there: Bun.which("openssl") !== null, what: "openssl" };

/** A certificate's files. */
export type CertificateFiles = Readonly<{ cert: string; key: string }>;

/** Makes a certificate of this machine for 30 days, with its key beside it. */
export async function makeCertificate(folder: string, name: string): Promise<CertificateFiles> {
  const cert = join(folder, `${name}.crt`);
  const key = join(folder, `${name}.key`);
  const names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
  const words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const where = ["-days", "30", "-subj", `/CN=${name}`, "-addext", names, "-keyout", key, "-out", cert];
  const made = Bun.spawn(["openssl", ...words, ...where], { stdout: "ignore", stderr: "pipe" });
  if ((await made.exited) !== 0) throw new Error(await new Response(made.stderr).text());
  return { cert, key };
}

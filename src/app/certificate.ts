/**
 * The certificate of the gateway's listeners: read from its files at the start, and again when the system
 * says SIGHUP.
 * @module
 */
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Config } from "../config/settings.ts";
import type { Certificate } from "../http/listener.ts";
import type { Clock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { badSettings } from "./complaints.ts";

/** Files of a certificate and its key. */
export type CertificateFiles = Readonly<{ cert: string; key: string }>;

/** A certificate that fits its key, and what an operator wants to know of it. */
type ReadCertificate = Readonly<{
  certificate: Certificate;
  facts: Readonly<{ subject: string; names: string; validTo: string; fingerprint: string }>;
  /** Milliseconds since the epoch. */
  validToMs: number;
}>;

/** A chain of certificates takes some kilobytes; a file beyond this is not one. */
const pemBytesMax = 1024 * 1024;

/** The files that the settings name, when they name both. */
export function certificateFiles({ TLS_CERT_FILE, TLS_KEY_FILE }: Config): CertificateFiles | undefined {
  if (TLS_CERT_FILE === undefined || TLS_KEY_FILE === undefined) return undefined;
  return { cert: TLS_CERT_FILE, key: TLS_KEY_FILE };
}

/**
 * Reads the certificate that the program starts with. One that has expired is served with a warning: to reject
 * to start would only be worse.
 *
 * @throws Misuse when the files cannot be read, or do not belong together.
 */
export function firstCertificate(files: CertificateFiles, clock: Clock, log: Log): Certificate {
  const { certificate, facts, validToMs } = checkedCertificate(files);
  if (validToMs < clock()) log.warn("the certificate has expired", facts);
  else log.info("certificate", facts);
  return certificate;
}

/** Reads them. @throws Misuse when they cannot be read, or do not belong together. */
export function checkedCertificate(files: CertificateFiles): ReadCertificate {
  try {
    return readCertificate(files);
  } catch (error) {
    // The reason becomes one line of the complaint.
    throw badSettings([`TLS_CERT_FILE and TLS_KEY_FILE: ${reasonOf(error)}`]);
  }
}

/** Reads the certificate again on every SIGHUP; one that cannot be used leaves the old one in its place. */
export function renewOnHangup(
  files: CertificateFiles,
  listeners: readonly Readonly<{ renew: (certificate: Certificate) => void }>[],
  parts: Readonly<{ clock: Clock; log: Log; closers: Closers }>,
): void {
  const { clock, log, closers } = parts;
  const renew = () => {
    try {
      const { certificate, facts, validToMs } = readCertificate(files);
      if (validToMs < clock()) throw new Error(`the certificate expired on ${facts.validTo}`);
      for (const listener of listeners) listener.renew(certificate);
      log.info("certificate renewed", facts);
    } catch (error) {
      // Whatever was wrong with the files, the certificate in use still serves.
      log.error("certificate not renewed, the old one stays", { ...files, reason: reasonOf(error) });
    }
  };
  process.on("SIGHUP", renew);
  closers.add("renewal of the certificate", () => {
    process.off("SIGHUP", renew);
  });
}

/** Reads and checks both files. Throws an Error that says what is wrong with which. */
function readCertificate(files: CertificateFiles): ReadCertificate {
  const certificate = { cert: readPem(files.cert), key: readPem(files.key) };
  try {
    const read = new X509Certificate(certificate.cert);
    createSecureContext(certificate);
    const { subject, subjectAltName = "", validTo, fingerprint256 } = read;
    const facts = { subject, names: subjectAltName, validTo, fingerprint: fingerprint256 };
    return { certificate, facts, validToMs: Date.parse(validTo) };
  } catch (error) {
    throw new Error(`${files.cert} and ${files.key} are no certificate and its key (${reasonOf(error)})`);
  }
}

function readPem(file: string): string {
  if (statSync(file).size > pemBytesMax) throw new Error(`${file} holds more than ${pemBytesMax} bytes`);
  return readFileSync(file, "utf8");
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * The TLS certificate of the listeners. It is read from its files at the start, and again on SIGHUP.
 * @module
 */
import { readFileSync, statSync } from "node:fs";
import type { Config } from "../config/settings.ts";
import type { Certificate } from "../http/listener.ts";
import type { Clock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import { nodeCrypto } from "../lib/late-modules.ts";
import type { Log } from "../lib/log.ts";
import { badSettings } from "./complaints.ts";

/** Paths of a certificate and its key. */
export type CertificateFiles = Readonly<{ cert: string; key: string }>;

/** A valid certificate, and its details for the log. */
type ReadCertificate = Readonly<{
  certificate: Certificate;
  details: Readonly<{ subject: string; names: string; validTo: string; fingerprint: string }>;
  /** Milliseconds since the epoch. */
  validToMs: number;
}>;

/** Largest certificate file; a chain of certificates has a few kilobytes. */
const pemBytesMax = 1024 * 1024;

/** The files of the settings; undefined unless both are set. */
export function certificateFiles({ TLS_CERT_FILE, TLS_KEY_FILE }: Config): CertificateFiles | undefined {
  if (TLS_CERT_FILE === undefined || TLS_KEY_FILE === undefined) return undefined;
  return { cert: TLS_CERT_FILE, key: TLS_KEY_FILE };
}

/**
 * Reads the certificate at the start. An expired one is used with a warning: a failed start would be worse.
 *
 * @throws Misuse when the files cannot be read, or do not match.
 */
export function firstCertificate(files: CertificateFiles, clock: Clock, log: Log): Certificate {
  const { certificate, details, validToMs } = checkedCertificate(files);
  if (validToMs < clock()) log.warn("the certificate has expired", details);
  else log.info("certificate", details);
  return certificate;
}

/** Reads the certificate. @throws Misuse when the files cannot be read, or do not match. */
export function checkedCertificate(files: CertificateFiles): ReadCertificate {
  try {
    return readCertificate(files);
  } catch (error) {
    throw badSettings([`TLS_CERT_FILE and TLS_KEY_FILE: ${reasonOf(error)}`]);
  }
}

/** Reads the certificate again on every SIGHUP. An invalid one does not replace the certificate in use. */
export function renewOnHangup(
  files: CertificateFiles,
  listeners: readonly Readonly<{ renew: (certificate: Certificate) => void }>[],
  parts: Readonly<{ clock: Clock; log: Log; closers: Closers }>,
): void {
  const { clock, log, closers } = parts;
  const renew = () => {
    try {
      const { certificate, details, validToMs } = readCertificate(files);
      if (validToMs < clock()) throw new Error(`the certificate expired on ${details.validTo}`);
      for (const listener of listeners) listener.renew(certificate);
      log.info("certificate renewed", details);
    } catch (error) {
      log.error("certificate not renewed, the present one stays in use", { ...files, reason: reasonOf(error) });
    }
  };
  process.on("SIGHUP", renew);
  closers.add("renewal of the certificate", () => {
    process.off("SIGHUP", renew);
  });
}

/** Reads and checks both files. @throws Error with the fault and the file. */
function readCertificate(files: CertificateFiles): ReadCertificate {
  const certificate = { cert: readPem(files.cert), key: readPem(files.key) };
  try {
    const { X509Certificate } = nodeCrypto();
    const read = new X509Certificate(certificate.cert);
    process.getBuiltinModule("node:tls").createSecureContext(certificate);
    const { subject, subjectAltName = "", validTo, fingerprint256 } = read;
    const details = { subject, names: subjectAltName, validTo, fingerprint: fingerprint256 };
    return { certificate, details, validToMs: Date.parse(validTo) };
  } catch (error) {
    throw new Error(`${files.cert} and ${files.key} are not a certificate and its key (${reasonOf(error)})`);
  }
}

function readPem(file: string): string {
  if (statSync(file).size > pemBytesMax) throw new Error(`${file} has more than ${pemBytesMax} bytes`);
  return readFileSync(file, "utf8");
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Checks of settings beyond their text: filters, address lists, files, settings that depend on each other, and
 * addresses of this machine. All faults are reported at once, before anything is opened.
 * @module
 */
import { certificateFiles, checkedCertificate } from "../app/certificate.ts";
import { badSettings, complaintsIn } from "../app/complaints.ts";
import { readUploadWallet } from "../app/keys.ts";
import { addressTest, readAddressList, readFilters } from "../app/list-settings.ts";
import { checkHost } from "../app/listeners.ts";
import { graphqlOriginOf } from "../app/open-gateway.ts";
import { checkNamesFile } from "../app/open-names.ts";
import { checkPaidReading } from "../app/open-paid-reading.ts";
import { readRulesFile, stripeAccountOf } from "../app/open-payment.ts";
import { checkListedTokens, readTokenSettings } from "../app/open-tokens.ts";
import { checkX402Asset, readX402Source } from "../app/open-x402.ts";
import { rootSourceFault } from "../chain/root-manifest.ts";
import { hostAndPort } from "../config/setting-readers.ts";
import type { Config } from "../config/settings.ts";
import type { MiningMode } from "../dev/devnet/mining.ts";
import { invalidValue } from "../lib/printable.ts";

/** Each check throws Misuse with its complaints. */
const checks: readonly ((config: Config) => unknown)[] = [
  readFilters,
  (config) => addressTest(config.TRUSTED_PROXIES, "TRUSTED_PROXIES"),
  (config) => addressTest(config.RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST, "RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST"),
  (config) => readAddressList("UPLOAD_ALLOWED_ADDRESSES", config.UPLOAD_ALLOWED_ADDRESSES),
  (config) => readAddressList("UPLOAD_BLOCKED_ADDRESSES", config.UPLOAD_BLOCKED_ADDRESSES),
  ({ GRAPHQL_HOST: host, GRAPHQL_PORT: port }) => host === undefined || graphqlOriginOf(host, port),
  ({ NAMES_FILE: file }) => file === undefined || checkNamesFile(file),
  ({ WALLET_FILE: file }) => file === undefined || readUploadWallet("WALLET_FILE", file),
  ({ RECEIPT_WALLET_FILE: file }) => file === undefined || readUploadWallet("RECEIPT_WALLET_FILE", file),
  (config) => {
    const files = certificateFiles(config);
    return files === undefined || checkedCertificate(files);
  },
  (config) => {
    const rules = readRulesFile(config.PAYMENT_RULES_FILE);
    checkListedTokens(config, rules);
    checkX402Asset(config, rules);
  },
  (config) => stripeAccountOf(config, undefined),
  readTokenSettings,
  readX402Source,
  checkPaidReading,
  checkRootSources,
  ({ DEVNET_MINING: mining }) => readMining(mining),
  ({ HOST: host }) => checkHost("HOST", host, host),
  ({ ADMIN_LISTEN: at }) => at === undefined || checkHost("ADMIN_LISTEN", at, hostAndPort(at).host),
];

function checkRootSources({ CDB64_ROOT_TX_INDEX_SOURCES: sources }: Config): void {
  const faults = sources.flatMap((source) => rootSourceFault(source) ?? []);
  if (faults.length > 0) throw badSettings(faults.map((fault) => `CDB64_ROOT_TX_INDEX_SOURCES: ${fault}`));
}

/** Reads DEVNET_MINING. The type alone is imported: a check must not load the development chain. @throws Misuse. */
export function readMining(text: string): MiningMode {
  if (text === "auto" || text === "manual") return text;
  if (/^[1-9]\d{0,8}$/.test(text)) return { intervalMs: Number(text) };
  throw badSettings([invalidValue("DEVNET_MINING", text, "auto, manual, or a whole number of milliseconds")]);
}

/** Runs all checks. @returns All complaints. */
export function settingsFaults(config: Config): readonly string[] {
  return checks.flatMap((check) => {
    try {
      check(config);
      return [];
    } catch (error) {
      const found = complaintsIn(error);
      if (found.length === 0) throw error;
      return found;
    }
  });
}

/**
 * The table of settings: one row for each, with reader, unit, default and effect. `--help`, docs/settings.md and
 * `cairn config` are made from it.
 *
 * Names follow ar-io-node where it has the setting, so that an operator's environment carries over. No setting
 * changes what must be deterministic (ids, proofs, prices of the chain).
 * Source: docs/reference/gateway.md#names-and-aliases.
 * @module
 */
import {
  chainSettings,
  columnarSettings,
  contentSettings,
  graphqlSettings,
  indexSettings,
  limiterSettings,
  nameSettings,
  webhookSettings,
} from "./gateway-settings.ts";
import { cardSettings, paymentSettings, tokenSettings, x402Settings } from "./payment-settings.ts";
import { adminSettings, devSettings, logSettings, serverSettings, traceSettings } from "./program-settings.ts";
import { uploadSettings } from "./upload-settings.ts";

/**
 * The settings by subject, in the order of docs/settings.md.
 * @internal
 */
export const settingGroups = {
  Server: serverSettings,
  "Admin API and metrics": adminSettings,
  "Nodes, gateways and peers": chainSettings,
  Indexing: indexSettings,
  Content: contentSettings,
  Names: nameSettings,
  GraphQL: graphqlSettings,
  "Columnar store": columnarSettings,
  Webhooks: webhookSettings,
  "Rate limiter": limiterSettings,
  Uploads: uploadSettings,
  "Prices and ledger": paymentSettings,
  "Card payments": cardSettings,
  "Token payments": tokenSettings,
  "x402 payments": x402Settings,
  Traces: traceSettings,
  "Development chain": devSettings,
  Log: logSettings,
} as const;

export const settings = {
  ...serverSettings,
  ...adminSettings,
  ...chainSettings,
  ...indexSettings,
  ...contentSettings,
  ...nameSettings,
  ...graphqlSettings,
  ...columnarSettings,
  ...webhookSettings,
  ...limiterSettings,
  ...uploadSettings,
  ...paymentSettings,
  ...cardSettings,
  ...tokenSettings,
  ...x402Settings,
  ...traceSettings,
  ...devSettings,
  ...logSettings,
} as const;

type Settings = typeof settings;

export type SettingName = keyof Settings;

/** The values of all settings, read once, in main.ts. */
export type Config = Readonly<{
  [Name in SettingName]:
    | ReturnType<Settings[Name]["read"]>
    | (Settings[Name] extends { fallback: unknown } ? never : undefined);
}>;

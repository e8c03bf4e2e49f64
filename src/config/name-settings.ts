/**
 * The settings of names and of the apex, rows of the one table.
 * @module
 */
import { count, duration, flag, id, list, nameUrl, registryName, setting, text } from "./setting-readers.ts";

export const nameSettings = {
  NAMES_FILE: setting({
    read: text,
    unit: "file",
    effect:
      'JSON object of names: `{"name": "id"}`, or objects with `id`, `ttlSeconds`, `processId`, `undernames`, ' +
      "`undernameLimit`; asked first, read again when it changes, at most 1 MiB.",
  }),
  TRUSTED_ARNS_GATEWAY_URL: setting({
    read: list(nameUrl),
    fallback: ["https://__NAME__.turbo-gateway.com"],
    dev: [],
    unit: "URLs",
    effect:
      "Gateways that are trusted to resolve names, `__NAME__` where the name stands, separated by commas; " +
      "a lone comma asks none.",
  }),
  ARNS_CACHE_TTL_SECONDS: setting({
    read: count,
    fallback: 86_400,
    unit: "seconds",
    effect: "How long a resolved name is served though nobody can say whether it still holds.",
  }),
  ARNS_CACHE_MAX_KEYS: setting({
    read: count,
    fallback: 10_000,
    unit: "names",
    effect: "Resolved names that are kept.",
  }),
  ARNS_COMPOSITE_RESOLVER_TIMEOUT_MS: setting({
    read: duration,
    fallback: 3_000,
    unit: "milliseconds",
    effect: "Longest that one gateway may take to resolve a name.",
  }),
  ARNS_CACHED_RESOLUTION_FALLBACK_TIMEOUT_MS: setting({
    read: duration,
    fallback: 250,
    unit: "milliseconds",
    effect: "How long a request waits for a name to be resolved anew before it is served as it was.",
  }),
  ARNS_RESOLVER_ENFORCE_UNDERNAME_LIMIT: setting({
    read: flag,
    fallback: true,
    unit: "true or false",
    effect: "Whether undernames beyond what their name has paid for are answered with 402.",
  }),
  ARNS_NOT_FOUND_TX_ID: setting({
    read: id,
    unit: "transaction id",
    effect: "Page for names that stand for nothing.",
  }),
  ARNS_NOT_FOUND_ARNS_NAME: setting({
    read: registryName,
    fallback: "unregistered_arns",
    unit: "name",
    effect: "Name of that page, where no id is set.",
  }),
  APEX_TX_ID: setting({
    read: id,
    unit: "transaction id",
    effect: "Content of `/`, and of every path that names nothing else; unset is the information record.",
  }),
  APEX_REGISTRY_NAME: setting({
    read: registryName,
    aliases: ["APEX_ARNS_NAME"],
    unit: "name",
    effect: "The same by a name that is resolved; without effect where `APEX_TX_ID` is set.",
  }),
} as const;

/**
 * The filters of the settings, read; a fault is a misuse of the settings.
 * @module
 */
import { type Filter, readFilter } from "../arweave/filter.ts";
import type { Config } from "../config/settings.ts";
import { Failure } from "../failures.ts";
import { isJsonObject, type JsonValue, readJson } from "../lib/json.ts";
import { badSettings } from "./complaints.ts";

/** A filter, and the JSON that it was read from. */
export type SetFilter = Readonly<{ filter: Filter; json: JsonValue }>;

/** All of them. */
export type SetFilters = Readonly<{
  unbundle: SetFilter;
  index: SetFilter;
  webhookIndex: SetFilter;
  webhookBlock: SetFilter;
}>;

type FilterName = "ANS104_UNBUNDLE_FILTER" | "ANS104_INDEX_FILTER" | "WEBHOOK_INDEX_FILTER" | "WEBHOOK_BLOCK_FILTER";

/**
 * Reads them.
 *
 * @throws Misuse with the path of every fault.
 */
export function readFilters(config: Config): SetFilters {
  const complaints: string[] = [];
  const read = (name: FilterName): SetFilter => {
    try {
      const json = readJson(config[name]);
      if (!isJsonObject(json)) throw new Failure("malformed_input", { reason: "is no JSON object" });
      return { filter: readFilter(config[name]), json };
    } catch (error) {
      // The fault becomes one line of the complaint.
      if (!(error instanceof Failure)) throw error;
      complaints.push(`${name}: ${error.context["reason"]}`);
      return { filter: { kind: "never" }, json: null };
    }
  };
  const filters = {
    unbundle: read("ANS104_UNBUNDLE_FILTER"),
    index: read("ANS104_INDEX_FILTER"),
    webhookIndex: read("WEBHOOK_INDEX_FILTER"),
    webhookBlock: read("WEBHOOK_BLOCK_FILTER"),
  };
  if (complaints.length > 0) throw badSettings(complaints);
  return filters;
}

/**
 * Other gateways of the settings: URLs, each with its priority and whether its word counts.
 * @module
 */
import { list, url } from "./setting-readers.ts";

/** A gateway that content is requested from. */
export type GatewayAddress = Readonly<{
  url: string;
  /** Gateways of a lower number are asked first; equals by how good they are. */
  priority: number;
  /** What `X-AR-IO-Trusted` says of bytes on this gateway's word alone. */
  trusted: boolean;
}>;

/** The priority of a URL that names none. */
const priorityUsual = 1;

/**
 * Reads URLs separated by commas, or the JSON object of ar-io-node: `{"url": 1}`,
 * `{"url": {"priority": 2, "trusted": false}}`.
 */
export function gatewayList(text: string): readonly GatewayAddress[] {
  const isJson = /^\s*[[{]/.test(text);
  return isJson ? readJsonList(text) : list(gatewayAt)(text);
}

/** A gateway by its URL alone: trusted, of the usual priority. */
export function gatewayAt(text: string): GatewayAddress {
  return { url: url(text), priority: priorityUsual, trusted: true };
}

/** Writes the list in the shortest form that {@link gatewayList} reads. */
export function writeGatewayList(gateways: readonly GatewayAddress[]): string {
  const isPlain = gateways.every(({ priority, trusted }) => priority === priorityUsual && trusted);
  if (isPlain) return gateways.map((each) => each.url).join(",");
  const entries = gateways.map(({ url: at, priority, trusted }) => [at, trusted ? priority : { priority, trusted }]);
  return JSON.stringify(Object.fromEntries(entries));
}

const formNeeded =
  'must be URLs separated by commas, or a JSON object such as {"https://a": 1} or ' +
  '{"https://a": {"priority": 2, "trusted": false}}';

function readJsonList(text: string): readonly GatewayAddress[] {
  const entries = Object.entries(jsonObject(text)).map(([at, value]) => readEntry(at, value));
  const urls = new Set(entries.map((each) => each.url));
  if (urls.size !== entries.length) throw new Error("must name each URL once");
  return entries.toSorted((left, right) => left.priority - right.priority);
}

function jsonObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Text that is not JSON is told of in the same words as JSON of another form.
  }
  throw new Error(formNeeded);
}

function readEntry(at: string, value: unknown): GatewayAddress {
  if (typeof value === "number") return { url: url(at), priority: priorityOf(value), trusted: true };
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(formNeeded);
  const { priority = priorityUsual, trusted = true, ...others } = value as Record<string, unknown>;
  if (typeof trusted !== "boolean" || Object.keys(others).length > 0) throw new Error(formNeeded);
  return { url: url(at), priority: priorityOf(priority), trusted };
}

function priorityOf(value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new Error(formNeeded);
  return value;
}

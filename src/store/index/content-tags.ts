/**
 * The tags of a row that decide how its content is sent.
 * @module
 */
import type { Tag } from "../../arweave/tags.ts";

/** Values of Content-Type and Content-Encoding, in this order; undefined where there is no such tag. */
export type ContentTags = readonly (string | undefined)[];

const names = ["content-type", "content-encoding"] as const;

/** The first tag of each name counts. */
export function contentTags(tags: readonly Tag[]): ContentTags {
  return names.map((name) => tags.find((tag) => tag.name.toLowerCase() === name)?.value);
}

/** Writes them as one text; null when there are none. */
export function writeContentTags(values: ContentTags): string | null {
  return values.every((value) => value === undefined) ? null : JSON.stringify(values);
}

/** Reads what `writeContentTags` wrote. */
export function readContentTags(text: string | null): ContentTags {
  const values: unknown = text === null ? [] : JSON.parse(text);
  return Array.isArray(values) ? values.map((value) => (typeof value === "string" ? value : undefined)) : [];
}

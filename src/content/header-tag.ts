/**
 * Tags of content that become headers of responses.
 * @module
 */
import { ownText } from "../lib/own-text.ts";

/** Such tags are far shorter; a longer text is not a valid media type. Characters. */
const headerTagMax = 1_024;

/** The value of a tag, cut off: it is in memory for as long as its content is described, and may have a mebibyte. */
export function headerTag(value: string | undefined): string | undefined {
  return value === undefined || value.length <= headerTagMax ? value : ownText(value.slice(0, headerTagMax));
}

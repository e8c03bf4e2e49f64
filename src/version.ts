/**
 * The version of this program, from package.json.
 * @module
 */
import manifest from "../package.json" with { type: "json" };

/** As in `release` of the information record. */
export const version: string = manifest.version;

/**
 * Loads the package of DuckDB.
 * @module
 */

/** @param _libraryFolder - Where a binary writes the library that it embeds. */
export function loadDuckdb(_libraryFolder: string): Promise<typeof import("@duckdb/node-api")> {
  return import("@duckdb/node-api");
}

/**
 * Which scripts a database has yet to run, and which databases are rejected.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { isSchemaMismatch, schemaFingerprint, scriptsToRun } from "../../src/lib/schema-scripts.ts";

const scripts = ["CREATE TABLE a (x INTEGER);", "CREATE TABLE b (x INTEGER);"];
const [first = "", second = ""] = scripts;

describe("a fingerprint", () => {
  const alike: [string, string][] = [
    ["white space", "CREATE  TABLE a\n  (x INTEGER);\n"],
    ["a comment", "CREATE TABLE a (x INTEGER); -- what a is"],
  ];
  test.each(alike)("is the same whatever %s there is", (_, script) => {
    expect(schemaFingerprint([script])).toBe(schemaFingerprint([first]));
  });

  test("differs for every word, order and boundary of scripts", () => {
    const lists = [[first], [second], [first, second], [second, first], [`${first} ${second}`], []];
    expect(new Set(lists.map(schemaFingerprint)).size).toBe(lists.length);
    expect(schemaFingerprint([first])).toMatch(/^[0-9a-f]{16}$/);
  });
});

describe("a database", () => {
  const taken: [string, number, string | undefined, string[]][] = [
    ["that is new", 0, undefined, scripts],
    ["of an older version", 1, schemaFingerprint([first]), [second]],
    ["of this version", 2, schemaFingerprint(scripts), []],
  ];
  test.each(taken)("%s runs the missing scripts", (_, version, fingerprint, toRun) => {
    expect(scriptsToRun(scripts, { version, fingerprint })).toEqual(toRun);
  });

  const rejected: [string, number, string | undefined, string][] = [
    ["of a newer version", 3, schemaFingerprint(scripts), "a newer program created this database: its version is 3"],
    ["whose scripts were edited since", 2, "0123456789abcdef", "version 2 has the fingerprint 0123456789abcdef"],
    ["of an older version whose scripts were edited since", 1, schemaFingerprint(scripts), "version 1 has"],
    ["from before fingerprints were stored", 2, undefined, "version 2 has the fingerprint none"],
  ];
  test.each(rejected)("%s is rejected, with advice", (_, version, fingerprint, message) => {
    const open = () => scriptsToRun(scripts, { version, fingerprint });
    expect(open).toThrow(message);
    try {
      open();
    } catch (error) {
      expect(error instanceof Error && isSchemaMismatch(error)).toBe(true);
    }
  });
});

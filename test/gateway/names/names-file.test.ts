/**
 * An operator's own names: what their file may say, and what happens when it changes.
 * @module
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../../src/failures.ts";
import { readName } from "../../../src/gateway/names/name.ts";
import { createNamesFile, namesFileBytesMax } from "../../../src/gateway/names/names-file.ts";
import { readNamesText } from "../../../src/gateway/names/names-text.ts";
import { createLog } from "../../../src/lib/log.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { idOf } from "../../support/memory-content.ts";

const id = idOf("one");
const other = idOf("two");
const processId = "qNvAoz0TgcH7DMg8BCVn8jF32QH5L6T29VjHxhHqqGE";

describe("the text of names", () => {
  test("gives every name its record, undernames in their order", () => {
    const text = JSON.stringify({
      plain: id,
      full: {
        id: other,
        ttlSeconds: 60,
        processId,
        undernameLimit: 1,
        undernames: { first: id, second: { id, ttlSeconds: 5 }, third: { id, index: 1 } },
      },
    });
    const { records, bases } = readNamesText(text);
    const shared = { processId, limit: 1 };
    expect(Object.fromEntries(records)).toEqual({
      plain: { id, ttlSeconds: 900, index: 0 },
      full: { id: other, ttlSeconds: 60, index: 0, ...shared },
      first_full: { id, ttlSeconds: 900, index: 1, ...shared },
      second_full: { id, ttlSeconds: 5, index: 2, ...shared },
      third_full: { id, ttlSeconds: 900, index: 1, ...shared },
    });
    expect([...bases]).toEqual(["plain", "full"]);
  });

  test("may name nothing", () => {
    expect(readNamesText("{}").records.size).toBe(0);
  });

  const nonCanonical = `${"A".repeat(42)}B`;
  test.each([
    ["", "$ must be a JSON object of names"],
    ["[]", "$ must be a JSON object of names"],
    ["{", "$ must be a JSON object of names"],
    [`{"a":"${id}","a":"${id}"}`, "$.a is defined twice"],
    [`{"a":"${id}","A":"${id}"}`, "$.A is defined twice"],
    [`{"a b":"${id}"}`, '$.a b must be a name of at most 63 characters: a to z, digits and "-"'],
    [`{"u_a":"${id}"}`, '$.u_a must be a name of at most 63 characters: a to z, digits and "-"'],
    [`{"_a":"${id}"}`, '$._a must be a name of at most 63 characters: a to z, digits and "-"'],
    ['{"a":"short"}', "$.a must have an id of 43 base64url characters"],
    [`{"a":"${nonCanonical}"}`, "$.a must have an id of 43 base64url characters"],
    ['{"a":{}}', "$.a must have an id of 43 base64url characters"],
    ['{"a":7}', "$.a must be an id, or an object with one"],
    ['{"a":null}', "$.a must be an id, or an object with one"],
    [
      `{"a":{"id":"${id}","tll":1}}`,
      "$.a.tll is unknown: expected one of id, ttlSeconds, processId, undernames, undernameLimit",
    ],
    [`{"a":{"id":"${id}","ttlSeconds":0}}`, "$.a.ttlSeconds must be a whole number from 1 to 86400"],
    [`{"a":{"id":"${id}","ttlSeconds":86401}}`, "$.a.ttlSeconds must be a whole number from 1 to 86400"],
    [`{"a":{"id":"${id}","ttlSeconds":"60"}}`, "$.a.ttlSeconds must be a whole number from 1 to 86400"],
    [`{"a":{"id":"${id}","processId":"a b"}}`, "$.a.processId must be the id of a process"],
    [`{"a":{"id":"${id}","undernames":[]}}`, "$.a.undernames must be an object of undernames"],
    [
      `{"a":{"id":"${id}","undernames":{"u":{"id":"x"}}}}`,
      "$.a.undernames.u must have an id of 43 base64url characters",
    ],
    [
      `{"a":{"id":"${id}","undernames":{"u":{"id":"${id}","limit":1}}}}`,
      "$.a.undernames.u.limit is unknown: expected one of id, ttlSeconds, index",
    ],
    [
      `{"a":{"id":"${id}","undernames":{"":"${id}"}}}`,
      "$.a.undernames. must be an undername that fits into a host with its name, and be unique",
    ],
    [
      `{"a":{"id":"${id}","undernames":{"${"u".repeat(62)}":"${id}"}}}`,
      `$.a.undernames.${"u".repeat(62)} must be an undername that fits into a host with its name, and be unique`,
    ],
  ])("%s: %s", (text, reason) => {
    expect(reasonOf(() => readNamesText(text))).toBe(reason);
  });
});

describe("the file of names", () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-names-"));
  const path = join(folder, "names.json");
  const lines: string[] = [];
  let now = 1_000_000;
  const log = createLog({
    level: "info",
    format: "json",
    clock: () => now,
    write: (line) => lines.push(line),
  });
  const idNow = (file: ReturnType<typeof createNamesFile>, text: string) => {
    const name = readName(text);
    const response = name === undefined ? undefined : file.find(name);
    return response?.kind === "resolved" ? response.record.id : response?.kind;
  };
  beforeEach(() => {
    writeFileSync(path, JSON.stringify({ a: { id, undernames: { u: other } } }));
    lines.length = 0;
  });
  afterAll(() => removeFolder(folder));

  test("knows its names, and that undernames of them which it has not are not there", () => {
    const file = createNamesFile(path, () => now, log);
    expect(["a", "u_a", "v_a", "_a", "b", "u_b"].map((name) => idNow(file, name))).toEqual([
      id,
      other,
      "absent",
      "absent",
      undefined,
      undefined,
    ]);
    expect(file.reasons()).toEqual([]);
  });

  test("is read again when it changes, and looked at once a second", () => {
    const file = createNamesFile(path, () => now, log);
    writeFileSync(path, JSON.stringify({ a: other }));
    expect(idNow(file, "a")).toBe(id);
    now += 999;
    expect(idNow(file, "a")).toBe(id);
    now += 1;
    expect(idNow(file, "a")).toBe(other);
    expect(lines).toHaveLength(1);
  });

  test("is read again when another of the same size is put in its place", () => {
    const file = createNamesFile(path, () => now, log);
    const next = join(folder, "next.json");
    writeFileSync(next, JSON.stringify({ a: { id: other, undernames: { u: id } } }));
    renameSync(next, path);
    now += 1_000;
    expect(idNow(file, "a")).toBe(other);
  });

  test.each([
    ["is half written", () => truncateSync(path, 20), "$ must be a JSON object of names"],
    ["is gone", () => rmSync(path), "ENOENT"],
    ["is too large", () => writeFileSync(path, " ".repeat(namesFileBytesMax + 1)), "at most 1048576 are read"],
    ["names no id", () => writeFileSync(path, '{"a":1}'), "$.a must be an id, or an object with one"],
  ])("that %s leaves its former names in force and says so, until it is right again", (_name, spoil, reason) => {
    const file = createNamesFile(path, () => now, log);
    spoil();
    now += 1_000;
    expect(idNow(file, "a")).toBe(id);
    expect(file.reasons()).toEqual([
      expect.stringContaining("NAMES_FILE could not be read again, its former names are in force:"),
    ]);
    expect(file.reasons()[0]).toContain(reason);
    now += 5_000;
    file.reasons();
    expect(lines.filter((line) => line.includes("could not"))).toHaveLength(1);
    writeFileSync(path, JSON.stringify({ a: other }));
    now += 1_000;
    expect([idNow(file, "a"), file.reasons()]).toEqual([other, []]);
  });

  test("that cannot be read at the start is rejected with its reason", () => {
    expect(reasonOf(() => createNamesFile(join(folder, "none.json"), () => now, log))).toContain("ENOENT");
    writeFileSync(path, "no");
    expect(reasonOf(() => createNamesFile(path, () => now, log))).toBe("$ must be a JSON object of names");
    expect(reasonOf(() => createNamesFile(folder, () => now, log))).toContain("EISDIR");
  });
});

function reasonOf(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    if (error instanceof Failure) return error.context["reason"];
    throw error;
  }
  return "nothing was wrong";
}

/**
 * Hosts that belong to us, to one id, or to a name.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { idFromBytes } from "../../src/arweave/id.ts";
import { createHosts, readSandboxLabel, sandboxLabel } from "../../src/http/hosts.ts";

const zeros = idFromBytes(new Uint8Array(32));
const ones = idFromBytes(new Uint8Array(32).fill(255));

describe("the label of an id's own host", () => {
  test.each([
    [zeros, "a".repeat(52)],
    [ones, `${"7".repeat(51)}q`],
    [
      idFromBytes(Uint8Array.from({ length: 32 }, (_, index) => index)),
      "aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dypq",
    ],
  ])("of %s is %s, and back", (id, label) => {
    expect(sandboxLabel(id)).toBe(label);
    expect(readSandboxLabel(label)).toBe(id);
  });

  test("is unlike that of any other id", () => {
    for (let round = 0; round < 500; round++) {
      const id = idFromBytes(crypto.getRandomValues(new Uint8Array(32)));
      expect(readSandboxLabel(sandboxLabel(id))).toBe(id);
    }
  });

  test.each([
    ["too short", "a".repeat(51)],
    ["too long", "a".repeat(53)],
    ["a foreign character", `${"a".repeat(51)}1`],
    ["capitals", "A".repeat(52)],
    ["spare bits that are set", `${"7".repeat(51)}r`],
  ])("is rejected with %s", (_name, label) => {
    expect(readSandboxLabel(label)).toBeUndefined();
  });
});

describe("a host", () => {
  const hosts = createHosts(["example.org", "deep.example.org", "localhost"]);
  test.each([
    ["example.org", "shared"],
    ["example.org:3000", "shared"],
    ["127.0.0.1:3000", "shared"],
    ["[::1]:3000", "shared"],
    ["", "shared"],
    ["notexample.org", "shared"],
    ["www.example.org", "shared"],
    ["deep.example.org", "shared"],
    ["name.example.org", "name"],
    ["under_name.example.org:8080", "name"],
    ["NAME.Example.ORG", "name"],
    [`${sandboxLabel(ones)}.localhost:3000`, "sandbox"],
    [`${sandboxLabel(ones).toUpperCase()}.LOCALHOST`, "sandbox"],
    [`${sandboxLabel(ones)}.example.com`, "shared"],
    ["x.deep.example.org", "name"],
  ])("%s is %s", (host, kind) => {
    expect(hosts.meaningOf(host).kind).toBe(kind as "shared");
    expect(hosts.meaningOf(host)).toBe(hosts.meaningOf(host));
  });

  test.each([
    ["example.org", "example.org"],
    ["www.example.org:80", "example.org"],
    ["deep.example.org", "deep.example.org"],
    ["www.deep.example.org", "deep.example.org"],
    ["localhost:3000", "localhost"],
    ["127.0.0.1", "example.org"],
    ["elsewhere.test", "example.org"],
  ])("of ours, %s, gives ids hosts below %s", (host, root) => {
    expect(hosts.meaningOf(host)).toEqual({ kind: "shared", root });
  });

  test("gives ids no hosts without a root host", () => {
    expect(createHosts([]).meaningOf("localhost")).toEqual({ kind: "shared", root: undefined });
  });

  test("belongs to the longest root that fits", () => {
    expect(hosts.meaningOf("x.deep.example.org")).toEqual({
      kind: "name",
      label: "x",
      root: "deep.example.org",
    });
  });

  test("is remembered within bounds", () => {
    for (let index = 0; index < 5_000; index++) hosts.meaningOf(`h${index}.test`);
    expect(hosts.meaningOf("name.example.org").kind).toBe("name");
  });
});

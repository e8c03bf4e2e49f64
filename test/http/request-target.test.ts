/**
 * The parts of a request's URL, and the memory that they take.
 * @module
 */
import { expect, test } from "bun:test";
import { readSegments, readTarget } from "../../src/http/request-target.ts";
import { memoryOfEach } from "../support/heap.ts";

const id = "A".repeat(43);
const query = "q".repeat(15_000);

test.each([
  [`http://host.example:8080/${id}/a%20b?x=1`, "http", "host.example:8080", `/${id}/a%20b`, "x=1"],
  [`https://host.example/${id}?${query}`, "https", "host.example", `/${id}`, query],
  [`http://host.example/${id}/${query}`, "http", "host.example", `/${id}/${query}`, ""],
  [`/${id}`, "http", "", `/${id}`, ""],
])("%.40s has its scheme, host, path and query", (url, scheme, host, path, asked) => {
  expect(readTarget(url)).toEqual({ scheme, host, path, query: asked });
});

test("segments are decoded, however long the path is", () => {
  expect(readSegments(`/${id}/a%20b//`)).toEqual([id, "a b", "", ""]);
  expect(readSegments(`/${id}/${query}/%C3%BC`)).toEqual([id, query, "ü"]);
});

test.each([
  ["the host", (url: string) => readTarget(url).host],
  ["the path", (url: string) => readTarget(url).path],
  ["an id", (url: string) => readSegments(readTarget(url).path)[0] ?? ""],
])("%s of a long URL takes no more memory than it has characters, as a key of a cache", (_what, read) => {
  expect(memoryOfEach(500, (number) => read(`http://a.example/${number}${id}?${query}`))).toBeLessThan(1_000);
});

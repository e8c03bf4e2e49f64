/**
 * Texts are restored exactly, also when data was cut out.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { cutData, packText, unpackText } from "../../../../src/store/index/chain/header-texts.ts";
import { spliceData } from "../../../support/places.ts";

describe("cutData", () => {
  test.each([
    ["the data of a transaction", '{"id":"x","data":"AAEC","tags":[]}', '{"id":"x","data":"","tags":[]}', 3],
    ["data among spaces", '{ "id" : "x" ,\n "data" :\t"AAEC" }', '{ "id" : "x" ,\n "data" :\t"" }', 3],
    ["data that comes first", '{"data":"AAEC"}', '{"data":""}', 3],
    [
      "data after a string with quotes",
      '{"a":"\\"data\\":\\\\","data":"AAEC"}',
      '{"a":"\\"data\\":\\\\","data":""}',
      3,
    ],
  ])("cuts %s", (_what, text, rest, size) => {
    const cut = cutData(text);
    expect({ text: cut.text, size: cut.data.length }).toEqual({ text: rest, size });
    expect(spliceData(cut, cut.data)).toBe(text);
  });

  test.each([
    ["no data", '{"id":"x"}'],
    ["empty data", '{"data":""}'],
    ["data of a tag", '{"tags":[{"data":"AAEC"}]}'],
    ["data as a value", '{"type":"data","next":"AAEC"}'],
    ["padding", '{"data":"AAE="}'],
    ["bits that canonical text leaves zero", '{"data":"AAF"}'],
    ["an escape within the data", '{"data":"AA\\u0041C"}'],
    ["two fields of that name", '{"data":"AAEC","data":"AAED"}'],
    ["data that is a number", '{"data":5,"x":"AAEC"}'],
    ["data that is a list", '{"data":["AAEC"]}'],
    ["a text that ends in a string", '{"data":"AAEC'],
    ["no JSON", "Pending"],
  ])("leaves %s alone", (_what, text) => {
    const cut = cutData(text);
    expect(cut).toMatchObject({ text, dataAt: null });
    expect(spliceData(cut, new Uint8Array(5))).toBe(text);
  });

  test("cuts a megabyte in one pass", () => {
    const data = new Uint8Array(1_000_000).fill(7);
    const text = `{"format":1,"data":"${Buffer.from(data).toString("base64url")}","signature":"s"}`;
    const cut = cutData(text);
    expect(cut.text).toBe('{"format":1,"data":"","signature":"s"}');
    expect(spliceData(cut, cut.data) === text).toBe(true);
  });
});

describe("packText", () => {
  test.each([
    ["nothing", ""],
    ["a short text", '{"height":1}'],
    ["a long text", `{"txs":[${'"AAAA",'.repeat(1_000)}"B"]}`],
    ["integers beyond 2^53", '{"reward_pool":11636689895910311}'],
    ["text beyond ASCII", `{"note":"${"é𝕬\u0000\uFEFF".repeat(100)}"}`],
  ])("%s comes back exactly", (_what, text) => {
    expect(unpackText(packText(text))).toBe(text);
  });

  test("a long text is compressed", () => {
    expect(packText(`{"txs":[${'"AAAA",'.repeat(1_000)}"B"]}`).length).toBeLessThan(200);
  });
});

/**
 * Filters: what each kind wants, one canonical spelling, and every fault named by its path.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fc from "fast-check";
import { createDataItem, readItemHeader } from "../../src/arweave/data-item.ts";
import {
  canonical,
  type FilterSubject,
  filterDepthMax,
  filterLengthMax,
  itemSubject,
  matches,
  readFilter,
  transactionSubject,
} from "../../src/arweave/filter.ts";
import { addressOf, idFromBytes } from "../../src/arweave/id.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { type Winston, winston } from "../../src/arweave/winston.ts";
import { Failure } from "../../src/failures.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { testKey } from "../support/signers.ts";

const attributes: Readonly<Record<string, unknown>> = {
  id: "the-id",
  owner_address: "me",
  data_size: 12,
  format: 2,
};
const subject: FilterSubject = {
  tags: [
    { name: "App-Name", value: "Drive" },
    { name: "App-Name", value: "Other" },
    { name: "Content-Type", value: "image/png" },
  ],
  hasParent: false,
  attribute: (name) => attributes[name],
};
const child: FilterSubject = { ...subject, hasParent: true };

describe("matches", () => {
  test.each([
    ['{"always":true}', true],
    ['{"never":true}', false],
    ['{"not":{"never":true}}', true],
    ['{"and":[{"always":true},{"never":true}]}', false],
    ['{"and":[{"always":true}]}', true],
    ['{"or":[{"always":true},{"never":true}]}', true],
    ['{"or":[{"never":true}]}', false],
    ['{"isNestedBundle":true}', false],
    ['{"tags":[{"name":"App-Name"}]}', true],
    ['{"tags":[{"name":"app-name"}]}', false],
    ['{"tags":[{"name":"App-Name","value":"Other"}]}', true],
    ['{"tags":[{"name":"App-Name","value":"Oth"}]}', false],
    ['{"tags":[{"name":"App-Name","valueStartsWith":"Oth"}]}', true],
    ['{"tags":[{"name":"App-Name","valueStartsWith":""}]}', true],
    ['{"tags":[{"name":"App-Name","value":"Drive"},{"name":"Content-Type","valueStartsWith":"image/"}]}', true],
    ['{"tags":[{"name":"App-Name","value":"Drive"},{"name":"Content-Type","value":"text/html"}]}', false],
    ['{"attributes":{"id":"the-id"}}', true],
    ['{"attributes":{"id":"the-id","owner_address":"me"}}', true],
    ['{"attributes":{"id":"the-id","owner_address":"you"}}', false],
    ['{"attributes":{"data_size":12}}', true],
    ['{"attributes":{"data_size":"12"}}', false],
    ['{"attributes":{"unheard_of":"x"}}', false],
  ])("%s: %p", (text, expected) => {
    expect(matches(readFilter(text), subject)).toBe(expected);
  });

  test("isNestedBundle wants what has a parent", () => {
    expect(matches(readFilter('{"isNestedBundle":true}'), child)).toBe(true);
  });

  test("tags want nothing of what has no tags", () => {
    expect(matches(readFilter('{"tags":[{"name":"a"}]}'), { ...subject, tags: [] })).toBe(false);
  });

  test("hashPartition divides by the first six bytes of the value's SHA-256", () => {
    const number = createHash("sha256").update("me").digest().readUIntBE(0, 6);
    for (const count of [1, 2, 7, 1_000]) {
      const filter = (targets: number[]) =>
        readFilter(
          JSON.stringify({
            hashPartition: {
              partitionCount: count,
              partitionKey: "owner_address",
              targetPartitions: targets,
            },
          }),
        );
      const target = number % count;
      expect(matches(filter([target]), subject)).toBe(true);
      if (count > 1) expect(matches(filter([(target + 1) % count]), subject)).toBe(false);
    }
  });

  test("hashPartition wants nothing whose key is absent or no text", () => {
    for (const key of ["absent", "data_size"]) {
      const partition = { partitionCount: 1, partitionKey: key, targetPartitions: [0] };
      expect(matches(readFilter(JSON.stringify({ hashPartition: partition })), subject)).toBe(false);
    }
  });

  test("of a data item sees its fields by their wire names", () => {
    const signer = createEd25519Signer(testKey(2));
    const item = createDataItem({ data: "data", tags: [{ name: "Content-Type", value: "a/b" }] }, signer);
    const read = readItemHeader(item, "strict", item.length);
    if (read.kind !== "header") throw new Error("no header");
    const parentId = idFromBytes(testKey(1));
    const seen = itemSubject(read.header, { dataSize: 4, parentId, rootId: parentId });
    const { header } = read;
    const expected = {
      id: header.id,
      owner_address: header.ownerAddress,
      owner: Buffer.from(header.owner).toString("base64url"),
      signature: Buffer.from(header.signature).toString("base64url"),
      signature_type: 2,
      target: "",
      anchor: "",
      content_type: "a/b",
      data_size: 4,
      parent_id: parentId,
      root_tx_id: parentId,
    };
    expect(matches(readFilter(JSON.stringify({ attributes: expected })), seen)).toBe(true);
    expect(matches(readFilter('{"isNestedBundle":true}'), seen)).toBe(true);
  });
});

describe("transactionSubject", () => {
  test("shows a transaction's fields by their wire names, amounts and sizes as decimal texts", () => {
    const owner = encodeBase64url(testKey(1));
    const wire = {
      id: idFromBytes(testKey(3)),
      signature: encodeBase64url(testKey(4)),
      format: 2,
      last_tx: "",
      owner,
      owner_address: addressOf(testKey(1)),
      target: idFromBytes(testKey(5)),
      quantity: "12345678901234567890",
      reward: "7",
      data_size: "262144",
      data_root: encodeBase64url(testKey(6)),
    };
    const seen = transactionSubject({
      format: 2,
      id: idFromBytes(testKey(3)),
      signature: wire.signature,
      lastTx: "",
      owner,
      ownerAddress: addressOf(testKey(1)),
      signatureType: "rsa",
      tags: [{ name: "Content-Type", value: "a/b" }],
      rawTags: [],
      target: wire.target,
      quantity: amountOf(wire.quantity),
      reward: amountOf(wire.reward),
      dataSize: 262_144,
      dataRoot: wire.data_root,
      data: "",
      denomination: "",
      text: "{}",
    });
    const filter = readFilter(JSON.stringify({ attributes: { ...wire, content_type: "a/b" } }));
    expect(matches(filter, seen)).toBe(true);
    expect(matches(readFilter('{"attributes":{"anchor":""}}'), seen)).toBe(false);
    expect(matches(readFilter('{"isNestedBundle":true}'), seen)).toBe(false);
  });
});

describe("canonical", () => {
  test.each([
    [' { "always" : true } ', '{"always":true}'],
    ['{"tags":[{"value":"v","name":"n"}]}', '{"tags":[{"name":"n","value":"v"}]}'],
    ['{"attributes":{"b":1.0,"a":"\\u00e9","A":null}}', '{"attributes":{"A":null,"a":"é","b":1}}'],
    [
      '{"hashPartition":{"targetPartitions":[1,0],"partitionKey":"id","partitionCount":2}}',
      '{"hashPartition":{"partitionCount":2,"partitionKey":"id","targetPartitions":[1,0]}}',
    ],
    [
      '{"or":[{"not":{"never":true}},{"isNestedBundle":true}]}',
      '{"or":[{"not":{"never":true}},{"isNestedBundle":true}]}',
    ],
  ])("writes %s as %s", (text, expected) => {
    expect(canonical(readFilter(text))).toBe(expected);
    expect(canonical(readFilter(expected))).toBe(expected);
  });

  test("means the same as the filter it spells", () => {
    const leaf = fc.constantFrom<unknown>(
      { always: true },
      { never: true },
      { isNestedBundle: true },
      { tags: [{ name: "App-Name", value: "Drive" }] },
      { attributes: { owner_address: "me" } },
    );
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.record({ not: tie("tree") }),
        fc.record({ and: fc.array(tie("tree"), { minLength: 1, maxLength: 3 }) }),
        fc.record({ or: fc.array(tie("tree"), { minLength: 1, maxLength: 3 }) }),
      ),
    }));
    fc.assert(
      fc.property(tree, (made) => {
        const filter = readFilter(JSON.stringify(made));
        const again = readFilter(canonical(filter));
        expect(again).toEqual(filter);
        expect(matches(again, subject)).toBe(matches(filter, subject));
      }),
      { numRuns: 200 },
    );
  });
});

describe("readFilter", () => {
  test.each([
    ["", "$", "is not valid JSON"],
    ["{", "$", "is not valid JSON"],
    ["true", "$", "must be an object"],
    ["[]", "$", "must be an object"],
    ["null", "$", "must be an object"],
    ["{}", "$", "must have exactly one key, got none"],
    ['{"always":true,"never":true}', "$", "must have exactly one key, got always, never"],
    ['{"tags":[{"name":"a"}],"attributes":{"id":"b"}}', "$", "must have exactly one key, got tags, attributes"],
    ['{"always":true,"always":true}', "$.always", "occurs twice"],
    ['{"and":[{"always":true},{"never":true,"never":true}]}', "$.and[1].never", "occurs twice"],
    ['{"any":[]}', "$.any", "is unknown; there are tags"],
    ['{"__proto__":true}', "$.__proto__", "is unknown"],
    ['{"always":false}', "$.always", "must be true"],
    ['{"never":1}', "$.never", "must be true"],
    ['{"isNestedBundle":false}', "$.isNestedBundle", "must be true"],
    ['{"and":[]}', "$.and", "must not be empty"],
    ['{"or":{}}', "$.or", "must be a list"],
    ['{"and":[{"always":true},{"or":[{}]}]}', "$.and[1].or[0]", "must have exactly one key"],
    ['{"not":[]}', "$.not", "must be an object"],
    ['{"tags":[]}', "$.tags", "must not be empty"],
    ['{"tags":{"name":"a"}}', "$.tags", "must be a list"],
    ['{"tags":["a"]}', "$.tags[0]", "must be an object"],
    ['{"tags":[{"value":"a"}]}', "$.tags[0].name", "must be a text"],
    ['{"tags":[{"name":1}]}', "$.tags[0].name", "must be a text"],
    ['{"tags":[{"name":"a","value":1}]}', "$.tags[0].value", "must be a text"],
    ['{"tags":[{"name":"a","values":["b"]}]}', "$.tags[0].values", "is unknown; there are name"],
    ['{"tags":[{"name":"a","value":"b","valueStartsWith":"b"}]}', "$.tags[0]", "has both"],
    ['{"attributes":{}}', "$.attributes", "must not be empty"],
    ['{"attributes":[]}', "$.attributes", "must be an object"],
    ['{"attributes":{"id":["a"]}}', "$.attributes.id", "must be a plain value"],
    ['{"attributes":{"data_size":9007199254740993}}', "$.attributes.data_size", "must be within 2^53"],
    ['{"hashPartition":{}}', "$.hashPartition.partitionCount", "must be a whole number, 1 to"],
    ['{"hashPartition":{"partitionCount":0}}', "$.hashPartition.partitionCount", "must be a whole number"],
    ['{"hashPartition":{"partitionCount":2}}', "$.hashPartition.partitionKey", "must be a text"],
    [
      '{"hashPartition":{"partitionCount":2,"partitionKey":"id"}}',
      "$.hashPartition.targetPartitions",
      "must be a list",
    ],
    [
      '{"hashPartition":{"partitionCount":2,"partitionKey":"id","targetPartitions":[0,2]}}',
      "$.hashPartition.targetPartitions[1]",
      "must be a whole number, 0 to 1",
    ],
    ['{"hashPartition":{"partitionCount":2,"key":"id"}}', "$.hashPartition.key", "is unknown"],
  ])("rejects %s at %s: %s", (text, path, reason) => {
    const { code, context } = faultOf(text);
    expect(code).toBe("malformed_input");
    expect(context["path"]).toBe(path);
    expect(context["reason"]).toStartWith(`${path} ${reason}`);
  });

  test("allows 32 levels and not 33", () => {
    const nest = (levels: number) => `${'{"not":'.repeat(levels)}{"always":true}${"}".repeat(levels)}`;
    expect(readFilter(nest(filterDepthMax)).kind).toBe("not");
    expect(faultOf(nest(filterDepthMax + 1)).context["reason"]).toEndWith("nests deeper than 32");
    expect(faultOf(nest(100_000)).context["reason"]).toBeDefined();
  });

  test("rejects a text beyond its limit before it reads it", () => {
    const long = `{"always":true${" ".repeat(filterLengthMax)}}`;
    expect(faultOf(long).context["reason"]).toBe("$ is longer than 1048576 characters");
  });
});

function faultOf(text: string): Failure {
  try {
    readFilter(text);
  } catch (failure) {
    if (failure instanceof Failure) return failure;
    throw failure;
  }
  throw new Error(`${text} is read`);
}

function amountOf(text: string): Winston {
  return winston(BigInt(text));
}

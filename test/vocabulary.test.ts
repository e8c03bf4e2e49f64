/**
 * The words of the tree: names, comments, messages and pages use the field's own terms, not private ones.
 * @module
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "..");
const places = ["src", "workers", "console", "test", "bench", "docs", "README.md", "CONTRIBUTING.md"];

/** Has the list. */
const own = "test/vocabulary.test.ts";

/** Words that stood for a mechanism, each with the term to use instead. Identifiers are split into their words. */
const terms: Readonly<Record<string, string>> = {
  "answer answers answered answering": "response, to respond, to return",
  "figure figures": "metrics, stats, values",
  "wish wishes wished": "options, request, query",
  "clue clues": "hint",
  "letter letters": "delivery; character",
  "desk unheard": "dispatcher; ignored rejection",
  "lying lie lies lay": "is at, is stored",
  "dress dressed dresses sheet sheets": "headers, to decorate; document",
  "trouble troubles troubled": "fault, error",
  "refuse refuses refused refusing refusal refusals": "to reject, rejection; blocked",
  moderation: "block list",
  told: "notified, reported",
  "stand stands stood standing": "is at, is stored; status",
  "judge judges judged judging": "to validate, to parse",
  kept: "stored, cached",
  "lane lanes turns": "slot, worker; semaphore, permit",
  "sight sights": "observation",
  "gate gates": "guard, lock",
  "room rooms": "space, capacity, quota",
  "rig world worlds": "fixture, harness",
  "fact facts": "context, details",
  hits: "response cache",
  "wholly whoever nobody somebody anybody": "name the party: the client, the operator, no node",
};

const phrases: readonly (readonly [RegExp, string])[] = [
  [/\b(atLeast|atMost)\b/, "min, max"],
  [/\b(hands?|handed) (\w+ )?over\b/, "passes"],
  [/\b(gives?|given|gave) away\b/, "returns"],
  [/\basked for\b/, "requested"],
  [/(?<!\bthere )\bis (no (?!longer\b|limit\b)[a-z]+|none)\b/, "is not a valid …"],
  [/\blets? go\b/, "releases"],
  [/(^|[.:*/] )What is\b/, "begin with the noun"],
];

/** Wire names, settings, metrics and SQL (`snake_case`, `UPPER_CASE`), system errors, CSS. */
const foreign =
  /\bconnection refused\b|\bletter-spacing\b|\bmoderation\.(sqlite|db)\b|\b[A-Z]+(?:_[A-Z]+)+\b|\b[a-z]+(?:_[a-z0-9]+)+\b|\bECONNREFUSED\b/g;

/** Words that are fixed by a file on disk or a table: old data folders must open. */
const fixed: readonly (readonly [path: RegExp, words: RegExp])[] = [
  [/^src\/store\/outbox\.ts$/, /\b(letters|refusals)\b/g],
  [/^src\/dev\/sandbox\/stripe-database\.ts$/, /\b(letters|answers)\b/g],
  [
    /^(src\/app\/|test\/app\/|test\/cli\/|src\/cli\/doctor\.ts$|docs\/operating\.md$|docs\/reference\/threats\.md$)/,
    /\bmoderation\b/g,
  ],
  [/^(src\/cli\/import-ar-io-node|test\/support\/ar-io-node-folder)\.ts$/, /\bmoderation\b/g],
  [/^test\/http\/body-memory\.test\.ts$/, /\brefused\b|_refused_/g],
  [/^test\/payment\/access\/nonces\.test\.ts$/, /\bturn\b/g],
  [/^test\/(full\/postgres\.test|support\/postgres-server)\.ts$/, /\bnobody\b/g],
];

const instead = new Map(
  Object.entries(terms).flatMap(([words, term]) => words.split(" ").map((word) => [word, term] as const)),
);

test("names, comments, messages and pages use the field's terms", () => {
  const faults = places.flatMap(filesBelow).flatMap((path) =>
    readFileSync(join(root, path), "utf8")
      .split("\n")
      .flatMap((line, index) => faultsOf(path, line).map((fault) => `${path}:${index + 1} ${fault}`)),
  );
  expect(faults).toEqual([]);
});

test("the list finds words within identifiers, and leaves wire names alone", () => {
  expect(faultsOf("src/x.ts", "const jsonAnswer = isKept(byTurn, http_refused_total, LOG_MEMORY_HITS);")).toEqual([
    "answer: response, to respond, to return",
    "kept: stored, cached",
  ]);
});

function faultsOf(path: string, line: string): string[] {
  const rules = fixed.filter(([file]) => file.test(path)).map(([, words]) => words);
  const text = [foreign, ...rules].reduce((rest, words) => rest.replace(words, ""), line);
  const words = (text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []).map((word) => word.toLowerCase());
  const bad = words.flatMap((word) => (instead.has(word) ? [`${word}: ${instead.get(word)}`] : []));
  return [...bad, ...phrases.filter(([phrase]) => phrase.test(text)).map(([phrase, term]) => `${phrase}: ${term}`)];
}

function filesBelow(place: string): string[] {
  if (!place.includes(".")) {
    return readdirSync(join(root, place), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(tsx?|md|css|html)$/.test(name) && !name.includes("node_modules"))
      .map((name) => join(place, name))
      .filter((name) => name !== own)
      .sort();
  }
  return [place];
}

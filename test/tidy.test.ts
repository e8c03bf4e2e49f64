/**
 * The source tree held to the style guide: layers, sizes, banned text, purpose comments, unused files.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const root = resolve(import.meta.dir, "..");

/** What a layer may import, besides itself and the layers below those. Source: docs/architecture.md#layers. */
const layers: Readonly<Record<string, readonly string[]>> = {
  "src/failures": [],
  "src/lib": ["src/failures"],
  "src/config": ["src/lib"],
  "src/root": ["src/config"],
  "src/arweave": ["src/root"],
  "src/chain": ["src/arweave"],
  "src/store": ["src/arweave"],
  "src/columnar": ["src/store"],
  "src/threads": ["src/root"],
  "src/graphql": ["src/columnar"],
  "src/content": ["src/chain", "src/store", "src/threads"],
  "src/gateway": ["src/content"],
  "src/indexing": ["src/content"],
  "src/payment": ["src/chain", "src/store", "src/threads"],
  "src/upload": ["src/payment", "src/content"],
  "src/http": ["src/gateway", "src/graphql", "src/indexing", "src/upload"],
  "src/dev": ["src/http"],
  "src/app": ["src/http", "src/dev", "src/columnar"],
  "src/cli": ["src/app"],
  workers: ["src/columnar", "src/gateway", "src/graphql", "src/payment", "src/store", "src/threads"],
};

const lineLengthMax = 120;
const fileLinesMax = 600;

/** Text that has a better form here, or below one folder; what Biome sees by itself is not repeated. */
const banned: readonly (readonly [RegExp, string, below?: string])[] = [
  [/\bTODO\b|\bFIXME\b|\bXXX\b|\bHACK\b/, "finish it, or write it into docs/roadmap.md"],
  [/\bfor now\b|not implemented|in a real (system|implementation)/i, "build it, or say what is true"],
  [/@ts-ignore|@ts-expect-error|biome-ignore/, "code that the tools accept"],
  [/catch\s*(\([a-zA-Z_]+\))?\s*\{\s*\}/, "a catch that responds, adds context, or says why nothing is to be done"],
  [
    /\.catch\(\(\) => (undefined|null|\{\})\)/,
    "a catch that responds, adds context, or says why nothing is to be done",
  ],
  [/\bBun\.env\b|\bprocess\.env\b/, "the settings that main.ts has read"],
  [/flush: true/, "writeSynced or replaceFile: the runtime does not report that such a sync failed"],
  [/AbortSignal\.any\(/, "a wait of lib/stop.ts, which releases its listeners", "src/"],
  [/Math\.random\(/, "randomness that is passed in"],
  [/\bNumber\(|\bparseFloat\b/, "bigint: no money passes through floating point", "src/payment/"],
];

/** Below which path one ban does not hold, and why. */
const exempt: Readonly<Record<string, readonly string[]>> = {
  "src/main.ts": ["the settings that main.ts has read"],
  // A command ends, and its signals with it.
  "src/cli/": ["a wait of lib/stop.ts, which releases its listeners"],
  // A bench is a command of its own: its sizes come from the environment, and go to the processes that it starts.
  "bench/": ["the settings that main.ts has read"],
};

type Source = Readonly<{ path: string; text: string; lines: readonly string[] }>;

const sources = ["src", "workers", "bench", "console"].flatMap(readSources);
const tests = readSources("test").filter(({ path }) => !/^test\/(clients|stores)\//.test(path));

describe("the source tree", () => {
  test("opens every file with its purpose", () => {
    const faults = [...sources, ...tests].filter(({ text }) => !/^(#!.*\n)?\/\*\*\n \* [^@\s]/.test(text));
    expect(faults.map(({ path }) => path)).toEqual([]);
  });

  test(`keeps files to ${fileLinesMax} lines and lines to ${lineLengthMax} columns`, () => {
    const long = sources
      .filter(({ lines }) => lines.length > fileLinesMax)
      .map(({ path, lines }) => `${path}: ${lines.length}`);
    const wide = sources.flatMap(({ path, lines }) =>
      lines.flatMap((line, index) => (line.length > lineLengthMax ? [`${path}:${index + 1}`] : [])),
    );
    expect({ long, wide }).toEqual({ long: [], wide: [] });
  });

  test("holds no banned text", () => {
    const faults = sources.flatMap(({ path, lines }) =>
      lines.flatMap((line, index) =>
        banned
          .filter(([pattern, instead, below = ""]) => {
            return path.startsWith(below) && !isExempt(path, instead) && pattern.test(line);
          })
          .map(([, instead]) => `${path}:${index + 1} wants ${instead}`),
      ),
    );
    expect(faults).toEqual([]);
  });

  test("writes SQL only in the folders of the domains that own the tables", () => {
    const statement = /["`](SELECT [a-z(*0-9]|INSERT (OR [A-Z]+ )?INTO |UPDATE [a-z_]+ SET|DELETE FROM |CREATE TABLE )/;
    const faults = sources.filter(
      ({ path, text }) => !/^(bench|src\/(store|columnar|payment|upload|dev))\//.test(path) && statement.test(text),
    );
    expect(faults.map(({ path }) => path)).toEqual([]);
  });

  test("imports only from lower layers", () => {
    const faults = sources.flatMap((source) =>
      importsOf(source)
        .filter((target) => !mayImport(source.path, target) && !isTypeOfWorker(source, target))
        .map((target) => `${source.path} may not import ${target}`),
    );
    expect(faults).toEqual([]);
  });

  test("has no circle of imports, type-only ones included", () => {
    const imports = new Map(sources.map((source) => [source.path, importsOf(source)]));
    const circles = sources.flatMap(({ path }) => circleThrough(path, imports));
    expect(circles).toEqual([]);
  });

  test("loads the streams of the runtime, which take long, after the start of a server", () => {
    const byPath = new Map(sources.map((source) => [source.path, source]));
    const loaded = new Set(["src/main.ts", "src/cli/serve.ts"]);
    for (const path of loaded) for (const next of loadsOf(byPath.get(path))) if (byPath.has(next)) loaded.add(next);
    expect(loaded.size).toBeGreaterThan(200);
    const faults = [...loaded].filter((path) => loadsOf(byPath.get(path)).some((name) => streamModules.test(name)));
    expect(faults).toEqual([]);
  });

  test("has no unused file", () => {
    const used = new Set([...sources, ...tests].flatMap(importsOf));
    const entries = /^(src\/main\.ts|src\/.*\.d\.ts|workers\/[^/]+\.ts)$/;
    const processes = /^bench\/(run|[^/]+\/[^/]+-(served|sent|readers))\.ts$/;
    const pages = /^console\/(?:(\w+)\/\1|operator\/console|verify\/pack)\.tsx?$/;
    const loaded = [entries, processes, pages];
    const dead = sources.filter(({ path }) => !loaded.some((names) => names.test(path)) && !used.has(path));
    expect(dead.map(({ path }) => path)).toEqual([]);
  });

  test("names no test that is not there", () => {
    // A filter that matches nothing would pass.
    const namers = ["test/tiers.ts", "test/full.ts", "test/slow.ts", "docs/evidence.md"];
    const named = namers.flatMap(
      (path) => readFileSync(join(root, path), "utf8").match(/\btest\/[\w/.-]+\.ts\b/g) ?? [],
    );
    expect(named.length).toBeGreaterThan(30);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test("records runs in rows that are short, name their commit and need no other row", () => {
    const lines = readFileSync(join(root, "docs/evidence.md"), "utf8").split("\n");
    const rows = lines.filter((line) => line.startsWith("|") && !/^\| date |^\|---/.test(line));
    const faults = rows.filter((row) => {
      const [date = "", commit = "", ...rest] = row.slice(2, -2).split(" | ");
      const isComplete = /^\d{4}-\d\d-\d\d$/.test(date) && /^[0-9a-f]{7,40}(, [0-9a-f]{7,40})*$/.test(commit);
      return !isComplete || rest.length !== 3 || row.length > 400 || /the same|as below|row above/i.test(row);
    });
    expect(rows.length).toBeGreaterThan(50);
    expect(faults).toEqual([]);
  });

  test("gives the tests of the third tier no size that they do not read", () => {
    const texts = new Map(readSources("test").map((source) => [source.path, source]));
    const readBy = (path: string, seen: Set<string>): string => {
      const source = texts.get(path);
      if (source === undefined || seen.has(path)) return "";
      seen.add(path);
      return (
        source.text +
        importsOf(source)
          .map((imported) => readBy(imported, seen))
          .join("")
      );
    };
    const steps = [...readFileSync(join(root, "test/slow.ts"), "utf8").matchAll(/\["(test\/[^"]+)", \{([^}]+)\}\]/g)];
    expect(steps.length).toBeGreaterThan(30);
    const faults = steps.flatMap(([, folder = "", sizes = ""]) => {
      const paths = [...texts.keys()].filter((path) => path === folder || path.startsWith(`${folder}/`));
      const seen = new Set<string>();
      const text = paths.map((path) => readBy(path, seen)).join("");
      const names = [...sizes.matchAll(/(\w+):/g)].map(([, name = ""]) => name);
      return names.filter((name) => !readsSetting(text, name)).map((name) => `${folder}: ${name}`);
    });
    expect(faults).toEqual([]);
  });

  test("cites only what a reader can open", () => {
    const cited = /\bdocs\/[\w./-]+\.(?:md|json)(?:#[\w-]+)?/g;
    const faults = [...sources, ...readSources("test")].flatMap(({ path, text }) => [
      ...(text.match(cited) ?? []).filter((target) => !isThere(target)).map((target) => `${path}: ${target}`),
      ...(text.match(outsideCitation) ?? []).map((target) => `${path}: ${target} is not in the repository`),
    ]);
    expect(faults).toEqual([]);
  });

  test("has no link in its pages that leads nowhere", () => {
    const pages = ["README.md", "CONTRIBUTING.md", ...listPages("docs")];
    const faults = pages.flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/\]\(([^)\s]+)\)/g)]
        .map((match) => match[1] ?? "")
        .filter((target) => !/^[a-z]+:/.test(target))
        .filter((target) => !isThere(target.startsWith("#") ? page + target : join(dirname(page), target)))
        .map((target) => `${page}: ${target}`),
    );
    expect(pages.length).toBeGreaterThan(30);
    expect(faults).toEqual([]);
  });

  test("skips no test silently", () => {
    const faults = tests.flatMap(({ path, lines }) =>
      lines.flatMap((line, index) => (/\.(skip|todo|only)\(/.test(line) ? [`${path}:${index + 1}`] : [])),
    );
    expect(faults.filter((fault) => !fault.startsWith("test/support/") && !fault.startsWith("test/tidy"))).toEqual([]);
  });
});

/** Papers that no reader has. */
const outsideCitation =
  /(?<![\w/-])(?:contract|design|specification|style|language|models)\.md\b|(?<!docs\/)\breference\/[\w-]+\.md\b/g;

/** Whether a page, and the heading that an anchor names, exists. @param target - From the root. */
function isThere(target: string): boolean {
  const [path = "", anchor] = target.split("#");
  if (!existsSync(join(root, path))) return false;
  return anchor === undefined || headingsOf(path).has(anchor);
}

/** Anchors of a page, as its readers' sites make them of headings. */
function headingsOf(path: string): ReadonlySet<string> {
  const headings = readFileSync(join(root, path), "utf8").matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map((match) =>
      (match[1] ?? "")
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

function listPages(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join(folder, path));
}

function isExempt(path: string, ban: string): boolean {
  return Object.entries(exempt).some(([below, bans]) => path.startsWith(below) && bans.includes(ban));
}

function readSources(folder: string): Source[] {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.parentPath.includes("node_modules"))
    .map((entry) => {
      const file = join(entry.parentPath, entry.name);
      const text = readFileSync(file, "utf8");
      return { path: relative(root, file), text, lines: text.split("\n") };
    });
}

/** Whether a text reads a variable of the environment. */
function readsSetting(text: string, name: string): boolean {
  return new RegExp(`env\\["${name}"\\]|\\b${name}\\b[^{}]*\\} = process\\.env`).test(text);
}

function importsOf({ path, text }: Source): string[] {
  const pattern = /(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+)"|new URL\("(\.{1,2}\/[^"]+\.tsx?)"/g;
  return [...text.matchAll(pattern)].map((match) =>
    relative(root, resolve(root, dirname(path), match[1] ?? match[2] ?? "")),
  );
}

/** Modules of the runtime that are streams or load them. Source: src/lib/late-modules.ts. */
const streamModules = /^node:(child_process|crypto|dns|https?|net|readline|stream|tls|zlib)\b/;

/** Files and modules that are loaded with a file: what it imports as more than types, and not later. */
function loadsOf(source: Source | undefined): string[] {
  const pattern = /^(?:import|export) (?!type\b)[^"]*?from "([^"]+)";$/gm;
  return [...(source?.text ?? "").matchAll(pattern)].map(([, name = ""]) =>
    name.startsWith(".") ? relative(root, resolve(root, dirname(source?.path ?? ""), name)) : name,
  );
}

/** The files by which a file imports itself, if it does. */
function circleThrough(start: string, imports: ReadonlyMap<string, readonly string[]>): string[] {
  const seen = new Set<string>();
  const walk = (path: string, way: readonly string[]): string[] => {
    for (const next of imports.get(path) ?? []) {
      if (next === start) return [[...way, next].join(" → ")];
      if (seen.has(next)) continue;
      seen.add(next);
      const found = walk(next, [...way, next]);
      if (found.length > 0) return found;
    }
    return [];
  };
  return walk(start, [start]);
}

function layerOf(path: string): string {
  const parts = path.split("/");
  if (parts[0] !== "src") return parts[0] ?? "";
  if (path === "src/failures.ts") return "src/failures";
  return parts.length === 2 ? "src/root" : `src/${parts[1]}`;
}

function mayImport(from: string, target: string): boolean {
  if (target === "package.json") return from === "src/version.ts";
  const layer = layerOf(from);
  // The entry is the top layer; benches use what they measure.
  if (from === "src/main.ts" || ["bench", "console"].includes(layer)) return true;
  return target !== "src/main.ts" && reachable(layer).has(layerOf(target));
}

/**
 * Whether an import takes only types of a worker. The calls of a pool are typed by what its worker exports, and the
 * messages by the types beside those functions; the worker's code is loaded in its own thread and nowhere else.
 */
function isTypeOfWorker({ path, text }: Source, target: string): boolean {
  if (!target.startsWith("workers/") || !reachable(layerOf(path)).has("src/threads")) return false;
  const name = target.slice("workers/".length).replaceAll(".", "\\.");
  const all = text.match(new RegExp(`"[./]+/workers/${name}"`, "g")) ?? [];
  const types = text.match(
    new RegExp(`(?:import type \\{[^}]*\\} from |typeof import\\()"[./]+/workers/${name}"`, "g"),
  );
  return all.length === types?.length;
}

/** A layer with all layers below it. */
function reachable(layer: string): ReadonlySet<string> {
  return new Set([layer, ...(layers[layer] ?? []).flatMap((below) => [...reachable(below)])]);
}

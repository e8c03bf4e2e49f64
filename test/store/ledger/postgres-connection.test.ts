/**
 * Statements of the ledger as PostgreSQL is notified them.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { numbered } from "../../../src/store/ledger/postgres-ledger.ts";

describe("a statement's question marks", () => {
  const rows: readonly (readonly [sql: string, written: string])[] = [
    ["SELECT 1", "SELECT 1"],
    ["SELECT ?", "SELECT $1"],
    ["SELECT a FROM b WHERE c = ? AND d IN (?, ?)", "SELECT a FROM b WHERE c = $1 AND d IN ($2, $3)"],
    ["SELECT '?' WHERE a = ?", "SELECT '?' WHERE a = $1"],
    ["SELECT 'it''s ?' WHERE a = ?", "SELECT 'it''s ?' WHERE a = $1"],
    [`SELECT "?" WHERE a = ?`, `SELECT "?" WHERE a = $1`],
    ["SELECT '' || ? || ''", "SELECT '' || $1 || ''"],
    [`SELECT ${"?, ".repeat(11)}?`, `SELECT ${Array.from({ length: 12 }, (_, at) => `$${at + 1}`).join(", ")}`],
  ];
  test.each(rows)("of %p are %p", (sql, written) => {
    expect(numbered(sql)).toBe(written);
    expect(numbered(sql)).toBe(written);
  });
});

/**
 * What is true of uploads and bundles: each item was paid for once or paid back, and stands at one place.
 * @module
 */
import type { LedgerCheck } from "./check-row.ts";

export const uploadChecks: readonly LedgerCheck[] = [
  {
    rule: "an act of signing is one upload",
    violations:
      "SELECT signing_id AS subject, COUNT(*) || ' uploads' AS found FROM uploads " +
      "WHERE signing_id IS NOT NULL AND failed_reason IS NULL AND double_of IS NULL " +
      "GROUP BY signing_id HAVING COUNT(*) > 1",
  },
  {
    rule: "an upload that repeats another is not charged",
    violations:
      "SELECT id AS subject, winc AS found FROM uploads " +
      "WHERE double_of IS NOT NULL AND (winc > 0 OR reservation_id IS NOT NULL)",
  },
  {
    rule: "an item that was charged for was paid for with a reservation of its own",
    violations:
      "SELECT u.id AS subject, COALESCE(r.state, 'nothing') AS found FROM uploads u " +
      "LEFT JOIN reservations r ON r.id = u.reservation_id WHERE u.failed_reason IS NULL AND " +
      "(u.winc > 0 OR u.reservation_id IS NOT NULL) AND " +
      "(r.id IS NULL OR r.state <> 'posted' OR r.item_id <> u.id OR r.winc <> u.winc)",
  },
  {
    rule: "what was paid for an item that failed is paid back",
    violations:
      "SELECT u.id AS subject, r.state AS found FROM uploads u JOIN reservations r ON r.id = u.reservation_id " +
      "WHERE u.failed_reason IS NOT NULL AND r.state <> 'refunded'",
  },
  {
    rule: "an item is in a bundle of its own store that goes to the chain, or in none",
    violations:
      "SELECT u.id AS subject, COALESCE(b.state, 'no bundle') AS found FROM uploads u " +
      "LEFT JOIN bundles b ON b.id = u.bundle_id WHERE u.bundle_id IS NOT NULL AND " +
      "(b.id IS NULL OR b.state = 'dropped' OR b.store <> u.store)",
  },
  {
    // A bundle that is planned may have lost items that failed, until it is dropped.
    rule: "a bundle whose transaction is signed has all of its items",
    violations:
      "SELECT b.id AS subject, COUNT(u.id) || ' of ' || b.item_count AS found FROM bundles b " +
      "LEFT JOIN uploads u ON u.bundle_id = b.id WHERE b.state IN ('prepared', 'seeded', 'permanent') " +
      "GROUP BY b.id, b.item_count, b.items_size " +
      "HAVING COUNT(u.id) <> b.item_count OR COALESCE(SUM(u.size), 0) <> b.items_size",
  },
  {
    rule: "an item stands right behind those before it in its bundle",
    violations:
      "SELECT p.id AS subject, p.behind AS found FROM (SELECT u.id, u.behind, u.position, " +
      "SUM(u.size) OVER (PARTITION BY u.bundle_id ORDER BY u.position) - u.size AS before_it, " +
      "ROW_NUMBER() OVER (PARTITION BY u.bundle_id ORDER BY u.position) - 1 AS nth FROM uploads u " +
      "JOIN bundles b ON b.id = u.bundle_id WHERE b.state IN ('filling', 'prepared', 'seeded', 'permanent')) AS p " +
      "WHERE p.behind <> p.before_it OR p.position <> p.nth",
  },
];

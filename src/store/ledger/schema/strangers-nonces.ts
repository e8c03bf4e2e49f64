/**
 * The table of nonces that keys without an account have signed: the newest of them.
 *
 * digest: as in `nonces`; turn: larger for what came later
 * @module
 */
export const strangersNonceTables = `
CREATE TABLE strangers_nonces (
  digest TEXT NOT NULL PRIMARY KEY,
  turn BIGINT NOT NULL
);
CREATE UNIQUE INDEX strangers_nonces_in_turn ON strangers_nonces (turn);
`;

/**
 * Columns of uploads that identify the act of signing behind an item, which may have several ids.
 *
 * signing_id  the same for every encoding of one signature (docs/reference/signatures.md); NULL for signature types
 *             with one encoding, and for items of other types that were taken before this column existed
 * double_of   the upload that came first from the same act of signing; set by `cairn ledger repair` on an upload that
 *             was charged again before signings were identified, and whose charge was given back
 * @module
 */
export const signingColumns = `
ALTER TABLE uploads ADD COLUMN signing_id TEXT;
ALTER TABLE uploads ADD COLUMN double_of TEXT;
CREATE INDEX uploads_signed_by_message ON uploads (owner_address, header_size, size, signing_id)
  WHERE signature_type = 6;
`;

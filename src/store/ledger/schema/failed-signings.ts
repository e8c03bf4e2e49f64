/**
 * Uploads that failed, by the act of signing behind them: one that was taken again in another encoding of its
 * signature has the approvals that the failed one gave.
 * @module
 */
export const failedSigningIndex = `
CREATE INDEX uploads_failed_signing ON uploads (signing_id)
  WHERE failed_reason IS NOT NULL AND signing_id IS NOT NULL;
`;

/**
 * Approvals: credits that an account lets others spend, and credits of others that it may spend.
 * @module
 */
import { momentText, Table } from "../page-parts.tsx";
import type { Approval, Balance } from "./account-client.ts";
import { creditsText } from "./amounts.ts";

export function SharedCredits({ balance }: Readonly<{ balance: Balance | undefined }>) {
  if (balance === undefined) return <p className="empty">…</p>;
  return (
    <section aria-label="Shared credits">
      <h2>You share with others</h2>
      <ApprovalTable
        name="Approvals given"
        column="To"
        rows={balance.given.map((approval) => rowOf(approval, approval.approvedAddress))}
        empty="You share credits with no other account."
      />
      <h2>Others share with you</h2>
      <ApprovalTable
        name="Approvals received"
        column="From"
        rows={balance.received.map((approval) => rowOf(approval, approval.payingAddress))}
        empty="No other account shares credits with you."
      />
      <p className="empty">
        An approval lets another account pay uploads with your credits, up to an amount and a time. Apps give and revoke
        approvals by tags of an upload (<code>x-approve-payment</code>, <code>x-delete-payment-approval</code>).
      </p>
    </section>
  );
}

type ApprovalRow = readonly [id: string, party: string, left: string, approved: string, until: string];

function rowOf(approval: Approval, party: string): ApprovalRow {
  const { approvalDataItemId, approvedWincAmount, usedWincAmount, expirationDate } = approval;
  const approved = BigInt(approvedWincAmount);
  return [
    approvalDataItemId,
    party,
    creditsText(approved - BigInt(usedWincAmount)),
    creditsText(approved),
    expirationDate === undefined ? "no end" : momentText(Date.parse(expirationDate)),
  ];
}

type ApprovalTableProps = Readonly<{ name: string; column: string; rows: readonly ApprovalRow[]; empty: string }>;

function ApprovalTable({ name, column, rows, empty }: ApprovalTableProps) {
  return (
    <Table
      name={name}
      columns={[column, "Left", "Of", "Until"]}
      rows={rows.map(([id, party, ...rest]) => [id, <code key="party">{party}</code>, ...rest])}
      empty={empty}
    />
  );
}

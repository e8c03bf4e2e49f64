/**
 * Credits as plain maps in memory: what the ledger is compared with. It shares nothing with the rules but words.
 *
 * Where the ledger keeps an expired approval until the next write, the model has none: whatever is asked, all that
 * has expired by then ends first. Both must look the same from outside.
 * @module
 */

/** One thing that is asked of credits. Times are those of the moment of client. */
export type Operation =
  | Readonly<{ kind: "credit"; who: string; winc: bigint }>
  | Readonly<{ kind: "chargeBack"; who: string; winc: bigint }>
  | Readonly<{
      kind: "approve";
      id: string;
      payer: string;
      approved: string;
      winc: bigint;
      expiresAt: number | undefined;
    }>
  | Readonly<{ kind: "revoke"; id: string; payer: string; approved: string }>
  | Readonly<{
      kind: "reserve";
      item: string;
      signer: string;
      paidBy: readonly string[];
      listOnly: boolean;
      winc: bigint;
      expiresAt: number;
    }>
  | Readonly<{
      kind: "pay";
      item: string;
      signer: string;
      paidBy: readonly string[];
      listOnly: boolean;
      winc: bigint;
    }>
  | Readonly<{ kind: "post"; reservation: string }>
  | Readonly<{ kind: "void"; reservation: string }>
  | Readonly<{ kind: "expire" }>;

type Approval = {
  readonly id: string;
  readonly number: number;
  readonly payer: string;
  readonly approved: string;
  readonly winc: bigint;
  pending: bigint;
  posted: bigint;
  state: "active" | "used" | "revoked" | "expired";
  readonly createdAt: number;
  readonly expiresAt: number | undefined;
  revokedBy: string | undefined;
};

type Part = Readonly<{ payer: string; approval: string | undefined; winc: bigint }>;

type Reservation = {
  readonly id: string;
  readonly signer: string;
  readonly winc: bigint;
  readonly parts: readonly Part[];
  state: "pending" | "posted" | "voided" | "expired";
  expiresAt: number;
};

/** The state of the model. */
export type Model = Readonly<{
  balances: Map<string, bigint>;
  approvals: Map<string, Approval>;
  reservations: Map<string, Reservation>;
  /** Reservations by item, oldest first. */
  attempts: Map<string, string[]>;
  sums: { revenue: bigint; paid: bigint };
}>;

/** A model in which nothing ever happened. */
export function emptyModel(): Model {
  return {
    balances: new Map(),
    approvals: new Map(),
    reservations: new Map(),
    attempts: new Map(),
    sums: { revenue: 0n, paid: 0n },
  };
}

/** A model that goes its own way from here. */
export function copyOf(model: Model): Model {
  const copied = <Value extends object>(map: Map<string, Value>) =>
    new Map([...map].map(([key, value]): [string, Value] => [key, { ...value }]));
  return {
    balances: new Map(model.balances),
    approvals: copied(model.approvals),
    reservations: copied(model.reservations),
    attempts: new Map([...model.attempts].map(([item, ids]) => [item, [...ids]])),
    sums: { ...model.sums },
  };
}

/** Does what is asked. @returns What the asker is notified, as a text. */
export function perform(model: Model, operation: Operation, now: number): string {
  endExpired(model, now);
  switch (operation.kind) {
    case "credit":
      return pay(model, operation.who, operation.winc);
    case "chargeBack":
      return pay(model, operation.who, -operation.winc);
    case "approve":
      return approve(model, operation, now);
    case "revoke":
      return revoke(model, operation);
    case "reserve":
      return reserve(model, operation);
    case "pay":
      return payAtOnce(model, operation, now);
    case "post":
      return post(model, operation.reservation, now);
    case "void":
      return giveBack(model, operation.reservation, "voided");
    case "expire":
      for (const { id, state, expiresAt } of model.reservations.values())
        if (state === "pending" && expiresAt <= now) giveBack(model, id, "expired");
      return "done";
  }
}

function pay(model: Model, who: string, winc: bigint): string {
  add(model, who, winc);
  model.sums.paid += winc;
  return "done";
}

function approve(model: Model, operation: Operation & { kind: "approve" }, now: number): string {
  const { id, payer, approved, winc, expiresAt } = operation;
  if (model.approvals.has(id) || payer === approved || winc === 0n) return "rejected";
  if (expiresAt !== undefined && expiresAt <= now) return "rejected";
  const has = model.balances.get(payer) ?? 0n;
  if (has < winc) return `short of ${winc}, has ${has}`;
  add(model, payer, -winc);
  const number = model.approvals.size;
  const rest = { pending: 0n, posted: 0n, state: "active", createdAt: now, revokedBy: undefined } as const;
  model.approvals.set(id, { id, number, payer, approved, winc, expiresAt, ...rest });
  return `${id} 0/${winc}`;
}

function revoke(model: Model, { id, payer, approved }: Operation & { kind: "revoke" }): string {
  const ofPair = [...model.approvals.values()].filter((one) => one.payer === payer && one.approved === approved);
  if (!ofPair.some(({ revokedBy }) => revokedBy === id))
    for (const approval of ofPair.filter(({ state }) => state === "active")) {
      end(model, approval, "revoked");
      approval.revokedBy = id;
    }
  const revoked = ofPair.filter(({ revokedBy }) => revokedBy === id);
  return revoked.length === 0 ? "rejected" : revoked.map(approvalText).sort().join(", ");
}

function reserve(model: Model, operation: Operation & { kind: "reserve" }): string {
  const { item, signer, winc, expiresAt } = operation;
  const attempts = model.attempts.get(item) ?? [];
  const last = lastOf(model, item);
  if (last?.state === "posted") return reservationText(last);
  if (last?.state === "pending") {
    last.expiresAt = Math.max(last.expiresAt, expiresAt);
    return reservationText(last);
  }
  const parts: Part[] = [];
  let missing = winc;
  for (const source of sources(model, operation)) {
    const suffices = source.winc >= missing;
    const drawn = suffices ? missing : source.winc;
    if (drawn > 0n) parts.push({ ...source, winc: drawn });
    missing -= drawn;
  }
  if (missing > 0n) return `short of ${winc}, has ${winc - missing}`;
  for (const part of parts) {
    const approval = model.approvals.get(part.approval ?? "");
    if (approval === undefined) add(model, part.payer, -part.winc);
    else approval.pending += part.winc;
  }
  const id = `${item}.${attempts.length + 1}`;
  const made: Reservation = { id, signer, winc, parts, state: "pending", expiresAt };
  model.reservations.set(id, made);
  model.attempts.set(item, [...attempts, id]);
  return reservationText(made);
}

/** As reserving and posting, between which nothing else happens; what was held before keeps its time. */
function payAtOnce(model: Model, operation: Operation & { kind: "pay" }, now: number): string {
  const held = lastOf(model, operation.item);
  if (held?.state !== "pending") {
    const reported = reserve(model, { ...operation, kind: "reserve", expiresAt: now });
    if (reported.startsWith("short")) return reported;
  }
  const last = lastOf(model, operation.item);
  if (last === undefined) throw new Error("what was reserved is there");
  post(model, last.id, now);
  return reservationText(last);
}

function lastOf(model: Model, item: string): Reservation | undefined {
  return model.reservations.get(model.attempts.get(item)?.at(-1) ?? "");
}

function sources(model: Model, { signer, paidBy, listOnly }: Operation & { kind: "reserve" }): Part[] {
  const payers = [...new Set(listOnly ? paidBy : [...paidBy, signer])];
  return payers.flatMap((payer): Part[] => {
    const balance = model.balances.get(payer) ?? 0n;
    if (balance < 0n) return [];
    if (payer === signer) return [{ payer, approval: undefined, winc: balance }];
    return [...model.approvals.values()]
      .filter((one) => one.payer === payer && one.approved === signer && one.state === "active")
      .sort(soonestFirst)
      .map((one) => ({ payer, approval: one.id, winc: unused(one) }));
  });
}

function soonestFirst(one: Approval, other: Approval): number {
  const [early, late] = [one.expiresAt ?? Number.POSITIVE_INFINITY, other.expiresAt ?? Number.POSITIVE_INFINITY];
  if (early !== late) return early < late ? -1 : 1;
  if (one.createdAt !== other.createdAt) return one.createdAt - other.createdAt;
  return one.id < other.id ? -1 : 1;
}

function post(model: Model, id: string, now: number): string {
  const reservation = found(model.reservations, id);
  if (reservation.state !== "pending") return reservation.state;
  reservation.state = "posted";
  model.sums.revenue += reservation.winc;
  for (const part of reservation.parts) {
    const approval = model.approvals.get(part.approval ?? "");
    if (approval === undefined) continue;
    approval.pending -= part.winc;
    approval.posted += part.winc;
    if (approval.state === "active" && approval.posted === approval.winc)
      approval.state = approval.expiresAt !== undefined && approval.expiresAt <= now ? "expired" : "used";
  }
  return "posted";
}

function giveBack(model: Model, id: string, state: "voided" | "expired"): string {
  const reservation = found(model.reservations, id);
  if (reservation.state !== "pending") return reservation.state;
  reservation.state = state;
  for (const part of reservation.parts) {
    const approval = model.approvals.get(part.approval ?? "");
    if (approval !== undefined) approval.pending -= part.winc;
    if (approval?.state !== "active") add(model, part.payer, part.winc);
  }
  return state;
}

function endExpired(model: Model, now: number): void {
  for (const approval of model.approvals.values())
    if (approval.state === "active" && approval.expiresAt !== undefined && approval.expiresAt <= now)
      end(model, approval, "expired");
}

function end(model: Model, approval: Approval, state: "revoked" | "expired"): void {
  approval.state = state;
  add(model, approval.payer, unused(approval));
}

function unused({ winc, pending, posted }: Approval): bigint {
  return winc - pending - posted;
}

function add(model: Model, who: string, winc: bigint): void {
  model.balances.set(who, (model.balances.get(who) ?? 0n) + winc);
}

function found<Value>(map: Map<string, Value>, key: string): Value {
  const value = map.get(key);
  if (value === undefined) throw new Error(`the model has no ${key}`);
  return value;
}

function approvalText({ id, winc, pending, posted }: Approval): string {
  return `${id} ${pending + posted}/${winc}`;
}

function reservationText({ id, state, parts, expiresAt }: Reservation): string {
  const sums = parts.map(({ payer, approval, winc }) => `${winc} of ${approval ?? payer}`);
  return `${id} ${state} until ${expiresAt}: ${sums.join(", ")}`;
}

/** All that can be seen from outside at a moment, as a text: balances, lists of approvals, reservations, revenue. */
export function view(model: Model, people: readonly string[], now: number): string {
  const seen = copyOf(model);
  endExpired(seen, now);
  const live = [...seen.approvals.values()]
    .filter((approval) => approval.state === "active" && unused(approval) > 0n)
    .sort(soonestFirst);
  const lines = people.map((who) => {
    const given = live.filter(({ payer }) => payer === who);
    const received = live.filter(({ approved }) => approved === who);
    const winc = seen.balances.get(who);
    if (winc === undefined && received.length === 0) return balanceLine(who, undefined);
    const left = (list: readonly Approval[]) => list.reduce((sum, one) => sum + unused(one), winc ?? 0n);
    return balanceLine(who, {
      winc: winc ?? 0n,
      controlled: left(given),
      effective: left(received),
      given: given.map(approvalText),
      received: received.map(approvalText),
    });
  });
  const reservations = [...seen.reservations.values()].map(reservationText).sort();
  return [...lines, ...reservations, `revenue ${seen.sums.revenue}, paid ${seen.sums.paid}`].join("\n");
}

/** The compared fields of one balance. */
export type SeenBalance = Readonly<{
  winc: bigint;
  controlled: bigint;
  effective: bigint;
  given: readonly string[];
  received: readonly string[];
}>;

/** One balance as a line. */
export function balanceLine(who: string, balance: SeenBalance | undefined): string {
  if (balance === undefined) return `${who} is a stranger`;
  const { winc, controlled, effective, given, received } = balance;
  return `${who} ${winc}/${controlled}/${effective} gave [${given.join(", ")}] got [${received.join(", ")}]`;
}

/** The state of every approval, once all that has expired is ended. */
export function approvalStates(model: Model, now: number): string {
  const seen = copyOf(model);
  endExpired(seen, now);
  return [...seen.approvals.values()]
    .map((approval) => `${approvalText(approval)} ${approval.state}`)
    .sort()
    .join("\n");
}

/** Whether accounts of the model sum to nothing: what was paid is somewhere. */
export function isBalanced(model: Model): boolean {
  const users = [...model.balances.values()].reduce((sum, winc) => sum + winc, 0n);
  const escrow = [...model.approvals.values()]
    .filter(({ state }) => state === "active")
    .reduce((sum, approval) => sum + unused(approval), 0n);
  const held = [...model.reservations.values()]
    .filter(({ state }) => state === "pending")
    .reduce((sum, { winc }) => sum + winc, 0n);
  return users + escrow + held + model.sums.revenue === model.sums.paid;
}

/**
 * Changes by the operator: a form for each, and a question before anything is sent.
 * @module
 */
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { faultText } from "../route-client.ts";
import { type OperatorClient, Rejected } from "./operator-client.ts";

/** A change, ready to be sent. */
export type Change = Readonly<{
  method: "POST" | "PUT";
  /** Below `/svc/admin/`. */
  path: string;
  /** A record, or a list. */
  body: object;
  /** The effect, as a question. */
  question: string;
  /** Label of the button that confirms. */
  verb: string;
}>;

export type ConfirmProps = Readonly<{
  change: Change;
  client: OperatorClient;
  /** Undefined: nothing was sent. */
  onClose: (outcome: Outcome | undefined) => void;
}>;

export type Outcome = Readonly<{ isDone: boolean; text: string }>;

/**
 * Asks before a change, and sends it. Escape and "Cancel" send nothing.
 *
 * While it is unknown whether the change was made, as after a lost connection, the question stays: the same request,
 * with its idempotency key, can be sent again, which a form that is filled in anew cannot.
 */
export function Confirm({ change, client, onClose }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isSending, setSending] = useState(false);
  const [unknown, setUnknown] = useState<string>();
  const label = useId();
  useEffect(() => dialog.current?.showModal(), []);
  const send = async () => {
    setSending(true);
    try {
      const text = await client.send(change.method, change.path, change.body);
      onClose({ isDone: true, text });
    } catch (error) {
      if (error instanceof Rejected) return onClose({ isDone: false, text: error.message });
      setUnknown(`Unknown whether it was done: ${faultText(error)}`);
      setSending(false);
    }
  };
  const cancel = () => onClose(unknown === undefined ? undefined : { isDone: false, text: unknown });
  return (
    <dialog
      ref={dialog}
      aria-labelledby={label}
      onCancel={(event) => {
        event.preventDefault();
        if (!isSending) cancel();
      }}
    >
      <p id={label}>{change.question}</p>
      {unknown === undefined ? null : (
        <p role="alert" className="fault">
          {unknown}. Sent again, it is not done twice.
        </p>
      )}
      <div className="buttons">
        <button type="button" disabled={isSending} onClick={cancel}>
          Cancel
        </button>
        <button type="button" className="strong" disabled={isSending} onClick={() => void send()}>
          {isSending ? "Sending …" : change.verb}
        </button>
      </div>
    </dialog>
  );
}

/** An input of a form. Empty inputs that are not required are left out. */
type Field = Readonly<{
  name: string;
  label: string;
  type: "text" | "id" | "count" | "time" | "checkbox" | "json";
  isRequired?: boolean;
  hint?: string;
}>;

/** What was typed into a form, by the names of its fields. */
export type FormValues = Readonly<Record<string, string | number | boolean>>;

/** A form whose values become a change. */
export type FormAction = Readonly<{
  title: string;
  text: string;
  method: "POST" | "PUT";
  path: string | ((values: FormValues) => string);
  /** The body; the values themselves unless given. */
  body?: (values: FormValues) => object;
  fields: readonly Field[];
  question: (values: FormValues) => string;
  verb: string;
}>;

const id = { name: "id", label: "Id", type: "id", isRequired: true } as const;
const notes = { name: "notes", label: "Notes", type: "text", hint: "For operators; never sent to clients" } as const;
const bypassFilter = { name: "bypassFilter", label: "Whatever the filters say", type: "checkbox" } as const;
const heights = (isRequired: boolean) =>
  [
    { name: "startHeight", label: "First height", type: "count", isRequired },
    { name: "endHeight", label: "Last height", type: "count", isRequired },
  ] as const;
const span = ({ startHeight = 0, endHeight = "the tip" }: FormValues) => `heights ${startHeight} to ${endHeight}`;

/** The headers of a form: a list, or one header. The text was checked before: it is JSON. */
function headersOf({ headers }: FormValues): readonly unknown[] {
  const value: unknown = JSON.parse(String(headers));
  return Array.isArray(value) ? value : [value];
}

/** "data item <id>", or the number of several. */
function announcedText(headers: readonly unknown[]): string {
  const [first] = headers;
  const firstId: unknown = typeof first === "object" && first !== null ? Reflect.get(first, "id") : undefined;
  return headers.length === 1 ? `data item ${firstId ?? "without an id"}` : `${headers.length} data items`;
}

const actions: readonly FormAction[] = [
  {
    title: "Queue a transaction",
    text: "It is located and indexed before all others.",
    method: "POST",
    path: "queue-tx",
    fields: [id],
    question: (values) => `Queue transaction ${values["id"]}?`,
    verb: "Queue",
  },
  {
    title: "Queue a bundle",
    text: "It is unbundled, with priority.",
    method: "POST",
    path: "queue-bundle",
    fields: [id, bypassFilter],
    question: (values) => `Queue bundle ${values["id"]}?`,
    verb: "Queue",
  },
  {
    title: "Queue the bundles of heights",
    text: "Bundles that were skipped, failed or indexed in part are evaluated again, in the background.",
    method: "POST",
    path: "queue-bundles",
    fields: [...heights(true), bypassFilter],
    question: (values) => `Evaluate the bundles of ${span(values)} again?`,
    verb: "Queue",
  },
  {
    title: "Queue data items",
    text: "Their headers can be queried at once, before their bundle is found. The verified item replaces its header.",
    method: "POST",
    path: "queue-data-item",
    fields: [
      {
        name: "headers",
        label: "Headers, JSON",
        type: "json",
        isRequired: true,
        hint: "One header or a list of headers, as the body of POST /svc/admin/queue-data-item in the API reference",
      },
    ],
    body: headersOf,
    question: (values) => `Queue ${announcedText(headersOf(values))}?`,
    verb: "Queue",
  },
  {
    title: "Block content by id",
    text: "No route serves a byte of it, from the response on.",
    method: "PUT",
    path: "block-data",
    fields: [id, notes],
    question: (values) => `Block ${values["id"]}? Everything that contains a byte of it is blocked too.`,
    verb: "Block",
  },
  {
    title: "Block content by hash",
    text: "Blocks every id with these bytes.",
    method: "PUT",
    path: "block-data",
    fields: [{ name: "hash", label: "SHA-256, base64url", type: "id", isRequired: true }, notes],
    question: (values) => `Block all content with the hash ${values["hash"]}?`,
    verb: "Block",
  },
  {
    title: "Block a name",
    text: "The name and its undernames are not served.",
    method: "PUT",
    path: "block-name",
    fields: [{ name: "name", label: "Name", type: "text", isRequired: true }, notes],
    question: (values) => `Block the name ${values["name"]}?`,
    verb: "Block",
  },
  {
    title: "Export",
    text: "Writes heights as Parquet files, in the background.",
    method: "POST",
    path: "export-parquet",
    fields: [
      { name: "outputDir", label: "Folder", type: "text", isRequired: true, hint: "Below EXPORT_ROOT" },
      ...heights(true),
      { name: "maxFileRows", label: "Most rows of a file", type: "count", isRequired: true },
    ],
    question: (values) => `Export ${span(values)} to the folder ${values["outputDir"]}?`,
    verb: "Export",
  },
  {
    title: "Prune",
    text: "Removes the rows of stable data items from the index. Their content is still served.",
    method: "POST",
    path: "prune-stable-data-items",
    fields: [
      { name: "indexedAtThreshold", label: "Indexed before", type: "time", isRequired: true },
      ...heights(false),
    ],
    question: (values) =>
      `Remove the rows of stable data items of ${span(values)} that were indexed before ` +
      `${new Date(Number(values["indexedAtThreshold"]) * 1_000).toLocaleString()}? They cannot be queried any more.`,
    verb: "Prune",
  },
];

/** All forms. */
export function Actions({ onChange }: Readonly<{ onChange: (change: Change) => void }>) {
  return (
    <div className="cards">
      {actions.map((action) => (
        <ActionForm key={action.title} action={action} onChange={onChange} />
      ))}
    </div>
  );
}

export function ActionForm({ action, onChange }: Readonly<{ action: FormAction; onChange: (change: Change) => void }>) {
  const prefix = useId();
  const { title, text, method, path, body, fields, question, verb } = action;
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const values = valuesOf(event.currentTarget, fields);
    const at = typeof path === "string" ? path : path(values);
    onChange({ method, path: at, body: body?.(values) ?? values, question: question(values), verb });
  };
  return (
    <form className="card" onSubmit={submit} aria-labelledby={prefix}>
      <h3 id={prefix}>{title}</h3>
      <p>{text}</p>
      {fields.map((field) => (
        <FieldInput key={field.name} field={field} inputId={`${prefix}${field.name}`} />
      ))}
      <button type="submit">{verb} …</button>
    </form>
  );
}

function FieldInput({ field, inputId }: Readonly<{ field: Field; inputId: string }>) {
  const { name, label, type, isRequired = false, hint } = field;
  if (type === "checkbox")
    return (
      <label className="check" htmlFor={inputId}>
        <input type="checkbox" id={inputId} name={name} defaultChecked /> {label}
      </label>
    );
  const common = { id: inputId, name, required: isRequired };
  return (
    <>
      <label htmlFor={inputId}>
        {label}
        {isRequired ? "" : " (optional)"}
      </label>
      {type === "json" ? (
        <textarea {...common} rows={4} spellCheck={false} onInput={checkJson} />
      ) : (
        <input {...common} {...inputTypes[type]} />
      )}
      {hint === undefined ? null : <small>{hint}</small>}
    </>
  );
}

const inputTypes = {
  text: { type: "text", spellCheck: false, autoComplete: "off" },
  // Spaces around it are removed before it is sent.
  id: {
    type: "text",
    spellCheck: false,
    autoComplete: "off",
    pattern: "\\s*[\\w\\-]{43}\\s*",
    title: "43 characters out of A–Z, a–z, 0–9, - and _",
  },
  count: { type: "number", min: 0, step: 1 },
  time: { type: "datetime-local" },
};

/** The browser does not submit a form while one of its inputs has a message. */
function checkJson({ currentTarget }: FormEvent<HTMLTextAreaElement>): void {
  currentTarget.setCustomValidity(jsonFault(currentTarget.value) ?? "");
}

function jsonFault(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function valuesOf(form: HTMLFormElement, fields: readonly Field[]): FormValues {
  const data = new FormData(form);
  const values: Record<string, string | number | boolean> = {};
  for (const { name, type } of fields) {
    const text = String(data.get(name) ?? "").trim();
    if (type === "checkbox") values[name] = data.has(name);
    else if (text === "") continue;
    else if (type === "time") values[name] = Math.floor(new Date(text).getTime() / 1_000);
    else values[name] = type === "count" ? Number(text) : text;
  }
  return values;
}

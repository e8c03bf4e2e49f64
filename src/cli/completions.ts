/**
 * `cairn completions`: scripts for bash, zsh and fish, written from the table of commands.
 *
 * The scripts hold all names, so that a completion starts no process.
 * @module
 */
import type { ArgDef, ArgsDef, CommandDef } from "citty";
import { misuse } from "../app/complaints.ts";
import { invalidValue } from "../lib/printable.ts";

/** An option: a flag, or an option with a value, which may be a path. */
type CompletedOption = Readonly<{ name: string; description: string; takes: "nothing" | "value" | "path" }>;

type CompletedCommand = Readonly<{
  name: string;
  description: string;
  options: readonly CompletedOption[];
  /** Valid values of the first argument; empty when it is free. */
  choices: readonly string[];
  /** Whether an argument is a path. */
  takesPaths: boolean;
}>;

const writers: Readonly<Record<string, (commands: readonly CompletedCommand[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Writes the script of a shell. @throws Misuse for a shell other than bash, zsh and fish. */
export async function completionScript(program: CommandDef, shell: string): Promise<string> {
  const writer = Object.hasOwn(writers, shell) ? writers[shell] : undefined;
  if (writer === undefined) throw misuse(invalidValue("<shell>", shell, "bash, zsh or fish"));
  const subCommands = Object.entries((await resolved(program.subCommands)) ?? {});
  return writer(
    await Promise.all(subCommands.map(async ([name, command]) => readCommand(name, await resolved(command)))),
  );
}

/** A value of citty's table, which may be lazy. */
export async function resolved<Value>(value: Value | Promise<Value> | (() => Value | Promise<Value>)): Promise<Value> {
  return value instanceof Function ? value() : value;
}

async function readCommand(name: string, command: CommandDef): Promise<CompletedCommand> {
  const meta = await resolved(command.meta);
  const args: [string, ArgDef][] = Object.entries((await resolved<ArgsDef | undefined>(command.args)) ?? {});
  const positionals = args.filter(([, { type }]) => type === "positional");
  const options = args
    .filter(([, { type }]) => type !== "positional")
    .map(([option, arg]): CompletedOption => {
      const takes = arg.type === "boolean" ? "nothing" : isPath(option, arg) ? "path" : "value";
      return { name: option, description: arg.description ?? "", takes };
    });
  const [, first] = positionals[0] ?? [];
  const choices = hintOf(first).includes("|") ? hintOf(first).split("|") : [];
  const takesPaths = positionals.some(([positional, arg]) => isPath(positional, arg));
  return { name, description: meta?.description ?? "", options, choices, takesPaths };
}

function isPath(name: string, arg: ArgDef): boolean {
  return ["file", "folder", "path"].includes(hintOf(arg) === "" ? name : hintOf(arg));
}

function hintOf(arg: ArgDef | undefined): string {
  return arg?.valueHint ?? "";
}

/** Bash completes paths itself when the function returns no word, unless `compopt` (bash 4) disables that. */
function bashScript(commands: readonly CompletedCommand[]): string {
  const ofType = (options: readonly CompletedOption[], takes: CompletedOption["takes"]) =>
    options.filter((option) => option.takes === takes).map(({ name }) => `--${name}`);
  const cases = commands.map(
    ({ name, options, choices, takesPaths }) => `    ${name})
      options="${options.map((option) => `--${option.name}`).join(" ")} --help"
      values=" ${ofType(options, "value").join(" ")} "
      files=" ${ofType(options, "path").join(" ")} "
      choices="${choices.join(" ")}"
      paths=${takesPaths ? "yes" : "no"} ;;`,
  );
  return `# Completion of cairn for bash: source <(cairn completions bash)
_cairn() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]}
  local options="" values=" " files=" " choices="" paths=no
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(" ")}" -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  if [[ $files == *" $before "* ]]; then return; fi
  if [[ $values == *" $before "* ]]; then compopt +o default 2>/dev/null; return; fi
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word")); return; fi
  if [ "$COMP_CWORD" -eq 2 ] && [ -n "$choices" ]; then
    COMPREPLY=($(compgen -W "$choices" -- "$word"))
    return
  fi
  if [ $paths = no ]; then compopt +o default 2>/dev/null; fi
}
complete -o default -F _cairn cairn
`;
}

function zshScript(commands: readonly CompletedCommand[]): string {
  const actions = { nothing: "", value: ": :", path: ":path:_files" } as const;
  const cases = commands.map(({ name, options, choices, takesPaths }) => {
    const specs = options.map(({ name: option, description, takes }) =>
      quoted(`--${option}${takes === "nothing" ? "" : "="}[${zshText(description)}]${actions[takes]}`),
    );
    const first = choices.length === 0 ? [] : [quoted(`1: :(${choices.join(" ")})`)];
    const rest = takesPaths ? [quoted("*:path:_files")] : [];
    return `    ${name}) _arguments ${[...specs, quoted("--help[Print the options]"), ...first, ...rest].join(" ")} ;;`;
  });
  return `#compdef cairn
# Completion of cairn for zsh: source <(cairn completions zsh), or as a file _cairn in a folder of fpath
_cairn() {
  local -a commands
  commands=(${commands.map(({ name, description }) => quoted(`${name}:${zshText(description)}`)).join(" ")})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_cairn" ]; then _cairn "$@"; else compdef _cairn cairn; fi
`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ name, description, options, choices, takesPaths }) => {
    const start = `complete -c cairn -n '__fish_seen_subcommand_from ${name}'`;
    const actions = { nothing: "", value: " -x", path: " -r -F" } as const;
    return [
      `complete -c cairn -n __fish_use_subcommand -f -a ${name} -d ${fishQuoted(description)}`,
      ...(takesPaths ? [] : [`${start} -f`]),
      ...(choices.length === 0 ? [] : [`${start} -a '${choices.join(" ")}'`]),
      ...options.map(
        (option) => `${start} -l ${option.name}${actions[option.takes]} -d ${fishQuoted(option.description)}`,
      ),
    ];
  });
  return `# Completion of cairn for fish: cairn completions fish | source\n${lines.join("\n")}\n`;
}

/** Characters with a meaning in the specifications of zsh's _arguments and _describe. */
function zshText(text: string): string {
  return text.replace(/[[\]:\\]/g, "\\$&");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replace(/['\\]/g, "\\$&")}'`;
}

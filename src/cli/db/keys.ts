import { createReadStream, createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Base64, linesOf } from '../../contract/databases/keys/key-file.js'
import { bytesOfKeyName, isBinaryName, type KeyName } from '../../contract/databases/keys/key-name.js'
import { KeyStore, KeysRefused } from '../../contract/databases/keys/key-store.js'
import {
  type ExportTotals,
  exportKeys,
  foundNames,
  IMPORT_OUTCOMES,
  type ImportEnd,
  type ImportedKey,
  importKeys,
  NoKeyFile,
} from '../../contract/databases/keys/key-transfer.js'
import { failedWith, misused } from '../errors.js'
import { FAILED } from '../exit-codes.js'
import type { Io } from '../io.js'
import { replaceWhenComplete } from '../output-file.js'
import type { Api } from '../remote/api.js'
import { group, remote, type Session } from '../remote/remote.js'
import { counted, figure } from '../terminal/figures.js'
import { progressOf } from '../terminal/progress.js'
import { printable } from '../terminal/text.js'
import { databaseAccess, postTo } from './data-plane.js'
import { DATABASE, databaseNamed } from './find.js'

/** File name that stands for the standard input or the standard output. */
const STANDARD_STREAM = '-'
/** `COUNT` of SCAN: keys that one step searches. */
const SCAN_COUNT = 1_000
/** Most requests of an import in flight at a time. */
const PARALLEL = 16

const base64: Base64 = {
  encode: (bytes) => Buffer.from(bytes).toString('base64'),
  decode: (text) => new Uint8Array(Buffer.from(text, 'base64')),
}

interface ExportFlags {
  readonly match?: string
  readonly type?: string
  readonly key?: string[]
}

const exportCommand = remote<ExportFlags, [string, string]>({
  name: 'export',
  summary: 'write keys of a database to a file of JSON lines, with their types and expiry',
  args: [
    DATABASE,
    ['<file>', 'the file to write, or "-" for the standard output; a file is replaced when the export is complete'],
  ],
  flags: (command) =>
    command
      .option('--match <pattern>', 'only the keys that match this pattern of SCAN')
      .option('--type <type>', 'only the keys of this type, such as hash')
      .option('--key <name...>', 'exactly these keys; the only way with a read-only key, which cannot list keys'),
  examples: ["homeport db keys export shop users.jsonl --match 'user:*'"],
  run: async (session, flags, wanted, file) => {
    const { api, io, show, say, endWith } = session
    const store = await storeOf(api, wanted, 'read')
    let totals: ExportTotals = { exported: 0, gone: 0, refused: 0 }
    const refuse = (name: KeyName, problem: string) => io.err(`not exported: ${shown(name)}: ${printable(problem)}\n`)
    const names = flags.key === undefined ? await searched(session, store, flags) : [flags.key]
    const options = { base64, nowMs: Date.now(), onRefused: refuse, onStep: (now: ExportTotals) => (totals = now) }
    const pieces = exportKeys(store, names, options)
    await (file === STANDARD_STREAM ? toOutput(io, pieces) : toFile(file, pieces)).catch(refusedBy)
    const summary = `${counted(totals.exported, 'key')}${leftOut(totals)}`
    if (file === STANDARD_STREAM) say(summary)
    else show({ file, ...totals }, () => `${file}  ${summary}\n`)
    if (totals.refused > 0) endWith(FAILED)
  },
})

/** The names that the search finds; shows the progress of the search. */
async function searched({ io }: Session, store: KeyStore, { match, type }: ExportFlags) {
  const total = await store.count().catch(refusedBy)
  const progress = progressOf(io, 'keys searched')
  const names = foundNames(store, { pattern: match, type, count: SCAN_COUNT }, (count) =>
    progress.at(Math.min(count, total), total),
  )
  return ending(names, () => progress.end())
}

async function* ending<Item>(items: AsyncIterable<Item>, end: () => void): AsyncGenerator<Item> {
  try {
    yield* items
  } finally {
    end()
  }
}

const leftOut = ({ gone, refused }: ExportTotals): string =>
  [gone > 0 && `${figure(gone)} gone meanwhile`, refused > 0 && `${figure(refused)} not exported`]
    .filter((text) => text !== false)
    .map((text) => `, ${text}`)
    .join('')

/** Writes piece by piece without buffering: Node.js writes to pipes and files synchronously. */
async function toOutput(io: Io, pieces: AsyncIterable<string>): Promise<void> {
  for await (const piece of pieces) io.out(piece)
}

const toFile = (file: string, pieces: AsyncIterable<string>): Promise<void> =>
  replaceWhenComplete(file, (partial) => pipeline(Readable.from(pieces), createWriteStream(partial, { mode: 0o600 })))

interface ImportFlags {
  readonly replace: boolean
  readonly each: boolean
}

const importCommand = remote<ImportFlags, [string, string]>({
  name: 'import',
  summary: 'create the keys of a file in a database; existing keys stay, unless --replace is given',
  args: [DATABASE, ['<file>', 'a file of `homeport db keys export` or of the console, or "-" for the standard input']],
  flags: (command) =>
    command
      .option('--replace', 'replace keys that exist', false)
      .option('--each', 'print the outcome of every key, not only of those that failed', false),
  isDestructive: true,
  examples: ['homeport db keys import shop users.jsonl', 'homeport db keys import shop users.jsonl --replace --yes'],
  run: async (session, { replace, each }, wanted, file) => {
    const { api, io, isJson, endWith, confirm } = session
    if (replace) await confirm(`Replace the keys of "${wanted}" that ${file} has too? This cannot be undone.`)
    const totals = { imported: 0, replaced: 0, skipped: 0, expired: 0, failed: 0 }
    const onKey = (key: ImportedKey) => {
      totals[key.outcome]++
      if (isJson) io.out(`${JSON.stringify(jsonOf(key))}\n`)
      else if (each || key.outcome === 'failed') io.err(`${lineOf(key)}\n`)
    }
    const options = {
      base64,
      existing: replace ? 'replace' : 'skip',
      parallel: PARALLEL,
      now: Date.now,
      onKey,
    } as const
    const store = await storeOf(api, wanted, 'write')
    const end = await importKeys(store, linesOf(inputOf(io, file)), options).catch(refusedBy)
    io.out(isJson ? `${JSON.stringify({ end, ...totals })}\n` : summaryOf(totals, end))
    if (totals.failed > 0 || end === 'cut') endWith(FAILED)
  },
})

const summaryOf = (totals: Readonly<Record<ImportedKey['outcome'], number>>, end: ImportEnd): string => {
  const counts = IMPORT_OUTCOMES.filter((outcome) => outcome === 'imported' || totals[outcome] > 0)
  const text = counts.map((outcome) => `${figure(totals[outcome])} ${outcome}`).join(', ')
  return `${text}\n${end === 'cut' ? 'The file ends early: keys after its last line are missing.\n' : ''}`
}

const lineOf = ({ line, name, outcome, problem }: ImportedKey): string =>
  `${outcome}: ${name === undefined ? `line ${line}` : shown(name)}${problem === undefined ? '' : `: ${printable(problem)}`}`

const jsonOf = ({ name, ...rest }: ImportedKey) =>
  name !== undefined && isBinaryName(name)
    ? { ...rest, key64: base64.encode(bytesOfKeyName(name)) }
    : { ...rest, key: name }

const shown = (name: KeyName): string =>
  isBinaryName(name) ? `base64:${base64.encode(bytesOfKeyName(name))}` : printable(name)

/** Reads a file or the standard input. @throws HomeportError `cli_misused` for a file that cannot be read. */
async function* inputOf({ terminal }: Io, file: string): AsyncGenerator<Uint8Array> {
  const input = file === STANDARD_STREAM ? (terminal?.input ?? Readable.from([])) : createReadStream(file)
  try {
    for await (const chunk of input) yield Buffer.from(chunk)
  } catch (cause) {
    throw misused(`The file ${file} cannot be read.`, { cause })
  }
}

async function storeOf(api: Api, wanted: string, access: 'read' | 'write'): Promise<KeyStore> {
  const { database_id } = await databaseNamed(api, wanted)
  const target = await databaseAccess(api, database_id, access)
  return new KeyStore((path, body) => postTo(target, path, body), base64)
}

/** Throws the error of an export or import as one of this command. @throws HomeportError */
function refusedBy(cause: unknown): never {
  if (cause instanceof NoKeyFile) throw misused(cause.message, { cause })
  if (!(cause instanceof KeysRefused)) throw cause
  const hint = cause.message.startsWith('NOPERM') ? '. A read-only key cannot list keys: name them with --key' : ''
  throw failedWith(`The database refused: ${cause.message}${hint}.`, { cause })
}

/** `homeport db keys`. */
export const keysCommand = group('keys', 'export keys of a database to a file, and import them', [
  exportCommand,
  importCommand,
])

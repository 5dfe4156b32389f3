import { join } from 'node:path'
import { connected } from '../soak/database-load.js'
import {
  placeFlags,
  processesMarked,
  type RunningHomeport,
  runHomeport,
  startHomeport,
  waitFor,
} from '../support/index.js'
import { digestOf, type Ending, filesIn, putCopy } from './files.js'
import type { Golden } from './golden.js'
import { type Answers, askAll } from './probes.js'

/** How a start went. */
export type Start =
  | { readonly kind: 'serves' }
  | { readonly kind: 'refused'; readonly code: string; readonly output: string }
  | { readonly kind: 'hangs'; readonly output: string }

/** Digests of files by their paths. */
export type Files = ReadonlyMap<string, string>

/** Everything observed of one start from a data directory. */
export interface Observation {
  readonly start: Start
  /** Empty unless the server serves. */
  readonly answers: Answers
  /** Lines of the log at level warn and above, without the values that differ from run to run. */
  readonly warnings: readonly string[]
  /** The number of problems that `/health` reports. */
  readonly problems: number
  /** Whether the server still ran after all requests, and how it ended on SIGTERM. */
  readonly ended: 'as requested' | 'by itself' | 'badly'
  /** By name: whether publishing a message and writing a key worked afterwards. */
  readonly writes: Readonly<Record<string, boolean>>
  /** The copy before the damage. */
  readonly filesPristine: Files
  readonly filesBefore: Files
  readonly filesAfter: Files
  readonly log: string
}

const START_DEADLINE_MS = 60_000
/** Texts that no log and no message may contain. */
const RAW = /\[object Object\]|\n\s+at .*:\d+:\d+\)?|TypeError|uncaughtException|unhandledRejection/

/** Whether a text has a stack or another text for programmers only. */
export const isRaw = (text: string): boolean => RAW.test(text)

/** The settings file of a trial, in the data directory. */
export const SETTINGS = 'homeport.config.json'

const argsOf = (golden: Golden): string[] => ['--config', join(golden.place.dataDir, SETTINGS)]

function digests(root: string): Files {
  const found = new Map<string, string>()
  for (const path of filesIn(root)) found.set(path, digestOf(join(root, path)))
  return found
}

const stripped = (line: string): string => line.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\/tmp\/\S+|\d+/g, '…')

/** Lines of the log at level warn and above. */
export function warningsIn(log: string): string[] {
  return log
    .split('\n')
    .filter((line) => /^\{"level":"(?:warn|error|fatal)"/.test(line))
    .map((line) => {
      const { kind, subject, msg } = JSON.parse(line) as Record<string, string>
      return stripped([kind, subject, msg].filter(Boolean).join(' '))
    })
}

/** Starts a server on a damaged copy, reads everything, stops the server, and compares the files. */
export async function observe(golden: Golden, ending: Ending, damage: (root: string) => void): Promise<Observation> {
  const root = golden.place.dataDir
  putCopy(golden.copies[ending], root)
  const filesPristine = digests(root)
  damage(root)
  const filesBefore = digests(root)
  const started = await start(golden)
  if (started.kind !== 'serves') {
    const log = started.output
    const filesAfter = digests(root)
    const none = { answers: new Map(), problems: 0, ended: 'as requested', writes: {} } as const
    return { ...none, start: started, warnings: warningsIn(log), filesPristine, filesBefore, filesAfter, log }
  }
  const { homeport } = started
  const answers = await askAll(homeport, golden)
  const writes = await writesOf(homeport, golden)
  const problems = await problemsOf(homeport)
  const isAlive = processesMarked(root).some(({ pid }) => pid === homeport.pid)
  const exit = await homeport.kill('SIGTERM')
  const ended = !isAlive ? 'by itself' : exit.code === 0 ? 'as requested' : 'badly'
  await endAll(root)
  const log = homeport.logs()
  const filesAfter = digests(root)
  return {
    start: { kind: 'serves' },
    answers,
    writes,
    problems,
    ended,
    warnings: warningsIn(log),
    log,
    filesPristine,
    filesBefore,
    filesAfter,
  }
}

type Started =
  | { readonly kind: 'serves'; readonly homeport: RunningHomeport }
  | Exclude<Start, { readonly kind: 'serves' }>

async function start(golden: Golden): Promise<Started> {
  try {
    const { credentials } = golden.known
    const options = { ...golden.place, args: argsOf(golden), credentials, deadlineMs: START_DEADLINE_MS }
    return { kind: 'serves', homeport: await startHomeport(options) }
  } catch (error) {
    const output = error instanceof Error ? error.message : String(error)
    await endAll(golden.place.dataDir)
    const code = /ended with code (\w+) at start/.exec(output)?.[1]
    return code === undefined ? { kind: 'hangs', output } : { kind: 'refused', code, output }
  }
}

/** Kills the processes of a data directory that the server did not end. */
async function endAll(root: string): Promise<void> {
  const isOver = () => processesMarked(root).length === 0
  await waitFor(isOver, { what: 'the processes to end', deadlineMs: 15_000, everyMs: 20 }).catch(() => undefined)
  for (const { pid } of processesMarked(root)) process.kill(pid, 'SIGKILL')
  await waitFor(isOver, { what: 'the killed processes to end' })
}

/** Whether the undamaged parts accept writes. */
async function writesOf(homeport: RunningHomeport, { known }: Golden): Promise<Record<string, boolean>> {
  const later = { 'upstash-delay': '40d' }
  const publish = await homeport
    .queue('POST', '/v2/publish/http://127.0.0.1:9/later', {}, later)
    .then(({ status }) => status < 300)
    .catch(() => false)
  const written: Record<string, boolean> = { publish }
  for (const database of known.databases.filter(({ tls }) => !tls)) {
    written[`set in ${database.database_name}`] = await connected(database, (client) =>
      client.set('new', 'value'),
    ).then(
      () => true,
      () => false,
    )
  }
  return written
}

async function problemsOf({ apiUrl }: RunningHomeport): Promise<number> {
  const answer = await fetch(`${apiUrl}/health`)
    .then((response) => response.json())
    .catch(() => ({}))
  return (answer as { problems?: number }).problems ?? 0
}

/** The output of `homeport doctor` on a damaged copy on which no server has run. */
export async function doctorOf(golden: Golden, ending: Ending, damage: (root: string) => void): Promise<string> {
  putCopy(golden.copies[ending], golden.place.dataDir)
  damage(golden.place.dataDir)
  const flags = [...placeFlags(golden.place), ...argsOf(golden), '--deep']
  const { stdout, stderr } = await runHomeport(['doctor', ...flags], { deadlineMs: 120_000 })
  return `${stdout}${stderr}`
}

/** The warnings and failures in the output of the doctor. */
export const complaintsIn = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => /^(?:fail|warn)\b/.test(line))
    .map(stripped)

import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { basicOf } from './basic.js'
import { atCleanup } from './cleanup.js'
import { onFailedExit } from './exit-guard.js'
import { freePort, freePortRange } from './ports.js'
import { type FoundProcess, processesMarked } from './processes.js'
import { tempDir } from './temp-dir.js'
import { waitFor } from './wait-for.js'

/** The built command. */
export const MAIN_JS = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

/** Servers collect garbage on one thread: the cores are busy with tests, so helper threads would save no time. */
const NODE_FLAGS = ['--single-threaded-gc']

/** Where one server listens and keeps its data; pass it to `startHomeport` again to restart the same server. */
export interface Place {
  readonly dataDir: string
  readonly apiPort: number
  readonly restPort: number
  readonly queuePort: number
  /** Both ends included, as in `20000-20019`. */
  readonly redisPorts: string
}

/** Options of a server for a test. Every omitted place is new and free. */
export interface StartOptions extends Partial<Place> {
  /** Further flags of `homeport start`. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Default 100,000. */
  readonly deadlineMs?: number
  /** Secrets that the caller knows already; default: those in the data directory. */
  readonly credentials?: Credentials
  /** Default: strays (pending messages missing in memory) fail the test file, because only lost commits cause them. */
  readonly mayHaveStrays?: true
  /** The loopback address that it listens on; default 127.0.0.1. */
  readonly host?: string
  /** The file that is run; default: `MAIN_JS`. */
  readonly program?: string
}

/** The contents of `<dataDir>/credentials.json`. */
export interface Credentials {
  readonly email: string
  readonly apiKey: string
  readonly queueToken: string
  readonly currentSigningKey: string
  readonly nextSigningKey: string
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** An answer over HTTP. `body` is the parsed JSON, or the text if it is not JSON. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
}

/** A running server under test. */
export interface RunningHomeport {
  readonly place: Place
  readonly pid: number
  readonly apiUrl: string
  readonly restUrl: string
  readonly queueUrl: string
  readonly credentials: Credentials
  /** Calls the management API as the first account. */
  api(method: string, path: string, body?: unknown): Promise<Answer>
  /** Calls the queue and workflow service as the first account. */
  queue(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Everything written to stdout and stderr so far. */
  logs(): string
  /** Sends the signal only to the server process and waits for its end. If it has already ended, only returns its exit. */
  kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT'): Promise<Exit>
  /** Live processes that name the data directory: the server, its launcher, its engines. */
  processes(): FoundProcess[]
}

/** A new place: a temporary data directory and free ports. */
export async function newPlace(options: Partial<Place> = {}): Promise<Place> {
  const redis = options.redisPorts === undefined ? await freePortRange(20) : undefined
  return {
    dataDir: options.dataDir ?? join(tempDir(), 'data'),
    apiPort: options.apiPort ?? (await freePort()),
    restPort: options.restPort ?? (await freePort()),
    queuePort: options.queuePort ?? (await freePort()),
    redisPorts: options.redisPorts ?? `${redis?.from}-${redis?.to}`,
  }
}

/** The flags that start a server at this place. */
export function placeFlags(place: Place): string[] {
  return [
    ['--data-dir', place.dataDir],
    ['--api-port', String(place.apiPort)],
    ['--rest-port', String(place.restPort)],
    ['--queue-port', String(place.queuePort)],
    ['--redis-ports', place.redisPorts],
  ].flat()
}

/**
 * The environment of a child process: our own without the developer's settings of Homeport. Servers write no note that
 * they run, so that no command finds the server of another test.
 */
export function childEnv(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(HOMEPORT|QSTASH|UPSTASH|OTEL|NODE_OPTIONS|VITEST)/.test(name),
  )
  return { ...Object.fromEntries(kept), XDG_STATE_HOME: '/dev/null', ...extra }
}

/** Calls an HTTP endpoint; a body that is not a string is sent as JSON. */
export async function call(url: string, init: RequestInit & { readonly json?: unknown } = {}): Promise<Answer> {
  const { json, ...rest } = init
  const headers = new Headers(rest.headers)
  if (json !== undefined) headers.set('content-type', 'application/json')
  const response = await fetch(url, { ...rest, headers, ...(json === undefined ? {} : { body: JSON.stringify(json) }) })
  const text = await response.text()
  try {
    return { status: response.status, headers: response.headers, body: JSON.parse(text) }
  } catch {
    return { status: response.status, headers: response.headers, body: text }
  }
}

const isHealthy = async (url: string): Promise<boolean> => (await fetch(`${url}/health`)).ok

function collectOutput(child: ChildProcess): () => string {
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (part) => (text += part))
  return () => text
}

/** The log lines of the dispatcher about strays, and about a failed search for them. */
const STRAYS = /pending messages were missing in memory|due messages could not be compared/

/** Ends processes that a server left behind, and throws: a leak fails the test that caused it. */
async function assertNothingLeft(dataDir: string): Promise<void> {
  const gone = () => processesMarked(dataDir).length === 0
  await waitFor(gone, { what: 'the processes of the server to end' }).catch(() => {
    const left = processesMarked(dataDir)
    for (const { pid } of left) process.kill(pid, 'SIGKILL')
    const list = left.map(({ pid, command }) => `${pid} ${command}`).join('; ')
    throw new Error(`the server left processes behind: ${list}`)
  })
}

/**
 * Starts the built server at its own place and waits until all three listeners are healthy.
 * At cleanup it is stopped with SIGTERM, and processes that outlive it fail the test file.
 */
export async function startHomeport(options: StartOptions = {}): Promise<RunningHomeport> {
  const { host = '127.0.0.1' } = options
  const place = await newPlace(options)
  const child = spawn(
    process.execPath,
    [...NODE_FLAGS, options.program ?? MAIN_JS, 'start', '--host', host, ...placeFlags(place), ...(options.args ?? [])],
    {
      env: childEnv(options.env),
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const logs = collectOutput(child)
  const ended = new Promise<Exit>((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })))
  const kill = (signal: NodeJS.Signals): Promise<Exit> => {
    child.kill(signal)
    return ended
  }
  onFailedExit.add(() => child.kill('SIGKILL'))
  atCleanup(async () => {
    await kill('SIGTERM')
    await assertNothingLeft(place.dataDir)
    if (!options.mayHaveStrays && STRAYS.test(logs())) throw new Error('messages were missing in memory')
  })
  const { credentials, deadlineMs = 100_000 } = options
  return await whenHealthy({ child, place, host, logs, kill, credentials, deadlineMs })
}

/** The secrets of the first account, from its data directory. */
export function credentialsIn(dataDir: string): Credentials {
  return JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as Credentials
}

interface Started {
  readonly child: ChildProcess
  readonly place: Place
  readonly host: string
  readonly deadlineMs: number
  readonly credentials: Credentials | undefined
  readonly logs: () => string
  readonly kill: RunningHomeport['kill']
}

async function whenHealthy({
  child,
  place,
  host,
  logs,
  kill,
  deadlineMs,
  ...known
}: Started): Promise<RunningHomeport> {
  const urls = {
    apiUrl: `http://${host}:${place.apiPort}`,
    restUrl: `http://${host}:${place.restPort}`,
    queueUrl: `http://${host}:${place.queuePort}`,
  }
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  // The listeners open one after the other, so only the first is asked until it answers.
  const serves = async () => {
    for (const url of Object.values(urls)) if (!hasEnded() && !(await isHealthy(url))) return false
    return true
  }
  await waitFor(serves, { what: 'the server to be healthy', deadlineMs }).catch((error: Error) => {
    throw new Error(`${error.message}; its output:\n${logs()}`)
  })
  if (hasEnded()) throw new Error(`the server ended with code ${child.exitCode} at start; its output:\n${logs()}`)
  const credentials = known.credentials ?? credentialsIn(place.dataDir)
  const authorization = basicOf(credentials.email, credentials.apiKey)
  return {
    ...urls,
    place,
    credentials,
    logs,
    kill,
    pid: child.pid ?? 0,
    processes: () => processesMarked(place.dataDir),
    api: (method, path, body) => call(urls.apiUrl + path, { method, json: body, headers: { authorization } }),
    queue: (method, path, body, headers = {}) =>
      call(urls.queueUrl + path, {
        method,
        json: body,
        headers: { authorization: `Bearer ${credentials.queueToken}`, ...headers },
      }),
  }
}

/**
 * Crash reports: a small file that helps to find the defect that ended the server.
 *
 * ```
 * <dataDir>/crashes/crash-2026-03-01T10-20-30-400Z.json    the newest ten are kept, mode 0600
 * ```
 *
 * A report contains the type and code of the error and where it was thrown, but not its message, which may contain user
 * data. Everything here is synchronous, because a crashing process may not run its event loop again.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { codeOf, isObject, tryParseJson, VERSION } from '../base/index.js'

const DIRECTORY = 'crashes'
const KEPT_REPORTS = 10
const MAX_FRAMES = 30
const MAX_CAUSES = 3
const NAME = /^crash-[\dTZ-]+\.json$/
/** A report includes only the stack lines of this form, so that it contains no part of the message. */
const FRAME = /^\s+at (?:(?:async )?([\w$.<>#[\] ]{1,120}) \()?((?:file:|node:|\/)[^\s()]{1,400}):(\d+):(\d+)\)?$/

/** Why the process ended. */
export type CrashKind = 'uncaughtException' | 'unhandledRejection'

/** A place in the code. */
interface Frame {
  readonly in: string
  /** Relative to the sources, a package, or Node itself: `src/queue/sending/sender.ts:120:5`. */
  readonly at: string
}

/** An error without its message. */
interface ErrorFacts {
  readonly type: string
  readonly code?: string
  readonly stack: readonly Frame[]
  readonly causes?: readonly ErrorFacts[]
}

/** The content of a report's file. */
export interface CrashReport {
  readonly at: string
  readonly kind: CrashKind
  /** The module of Homeport, or the package, that threw the error. */
  readonly module: string
  readonly version: string
  readonly node: string
  readonly platform: string
  readonly uptimeSeconds: number
  readonly memory: NodeJS.MemoryUsage
  readonly error: ErrorFacts
}

/** Describes an uncaught error of this process. */
export function describeCrash(kind: CrashKind, error: unknown, nowMs: number): CrashReport {
  const facts = factsOf(error, MAX_CAUSES)
  return {
    at: new Date(nowMs).toISOString(),
    kind,
    module: moduleOf(facts.stack),
    version: VERSION,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    uptimeSeconds: Math.round(process.uptime()),
    memory: process.memoryUsage(),
    error: facts,
  }
}

/** Writes a report and deletes the oldest beyond ten. @returns its path; `undefined` if it could not be written. */
export function writeCrashReport(dataDir: string, report: CrashReport): string | undefined {
  const directory = join(dataDir, DIRECTORY)
  const path = join(directory, `crash-${report.at.replace(/[:.]/g, '-')}.json`)
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600 })
    for (const name of reportsIn(directory).slice(KEPT_REPORTS)) rmSync(join(directory, name), { force: true })
    return path
  } catch {
    // A full disk may be the reason for the crash.
    return undefined
  }
}

/** The newest report; `undefined` when there is no readable one. */
export function lastCrash(
  dataDir: string,
): { readonly file: string; readonly atMs: number; readonly module: string; readonly type: string } | undefined {
  try {
    const [name = ''] = reportsIn(join(dataDir, DIRECTORY))
    const report = tryParseJson(readFileSync(join(dataDir, DIRECTORY, name), 'utf8'))
    if (!isObject(report) || !isObject(report.error)) return undefined
    const atMs = Date.parse(String(report.at))
    if (Number.isNaN(atMs)) return undefined
    return { file: join(DIRECTORY, name), atMs, module: String(report.module), type: String(report.error.type) }
  } catch {
    return undefined
  }
}

/** File names of the reports, newest first. */
function reportsIn(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => NAME.test(name))
    .sort()
    .reverse()
}

function factsOf(error: unknown, causes: number): ErrorFacts {
  if (!(error instanceof Error)) return { type: typeof error, stack: [] }
  const code = codeOf(error)
  const behind = [error.cause, ...(error instanceof AggregateError ? error.errors : [])].filter(
    (cause) => cause instanceof Error,
  )
  return {
    type: error.constructor.name,
    ...(/^\w{1,60}$/.test(code) && { code }),
    stack: framesOf(error.stack ?? ''),
    ...(behind.length > 0 &&
      causes > 0 && { causes: behind.slice(0, MAX_CAUSES).map((one) => factsOf(one, causes - 1)) }),
  }
}

function framesOf(stack: string): Frame[] {
  const frames: Frame[] = []
  for (const line of stack.split('\n')) {
    const [found, name = '(anonymous)', file = '', row, column] = FRAME.exec(line) ?? []
    if (found !== undefined) frames.push({ in: name, at: placeOf(file, Number(row), Number(column)) })
    if (frames.length === MAX_FRAMES) break
  }
  return frames
}

function placeOf(file: string, row: number, column: number): string {
  if (file.startsWith('node:')) return `${file}:${row}:${column}`
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const source = sourceOf(path, row, column)
  return source ?? `${shortPath(path)}:${row}:${column}`
}

/** Maps a place in the bundle `dist/` to its source, by the source map beside the file. */
function sourceOf(path: string, row: number, column: number): string | undefined {
  try {
    const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')))
    const origin = map.findEntry(row - 1, column - 1)
    if (!('originalSource' in origin)) return undefined
    return `${shortPath(origin.originalSource)}:${origin.originalLine + 1}:${origin.originalColumn + 1}`
  } catch {
    return undefined
  }
}

const shortPath = (path: string): string => /(?:^|\/)((?:src|node_modules|dist)\/.*)$/.exec(path)?.[1] ?? basename(path)

/** The topmost module of Homeport on the stack, or else the topmost package. */
function moduleOf(stack: readonly Frame[]): string {
  const first = (pattern: RegExp): string | undefined =>
    stack.map(({ at }) => pattern.exec(at)?.[1]).find((name) => name !== undefined)
  return first(/^src\/([^/:]+)/) ?? first(/^node_modules\/((?:@[^/]+\/)?[^/]+)/) ?? 'unknown'
}

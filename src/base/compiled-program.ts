/**
 * Runs a bundled program with the code that V8 compiled in an earlier process, which saves a third of the processor time of
 * a start.
 *
 * V8 rejects code that another version of V8 compiled. But it compares only the length of the program's text, and it
 * crashes on damaged data. So the cache file begins with a digest of the text and the data, and a file that does not match
 * is ignored and replaced. The file decides what runs, so it must belong to this user or to the owner of the program, and
 * nobody else may write it. No failure here fails a start: without a file, V8 compiles the program.
 *
 * docs/decisions/bundle.md
 */
import { createHash } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writevSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { cachedDataVersionTag } from 'node:v8'
import { Script } from 'node:vm'
import { threadId } from 'node:worker_threads'

/** By then the program has loaded all code of a start, and V8 has not yet dropped compiled code that is no longer used. */
const SAVE_AFTER_MS = 5_000
const DIGEST_BYTES = 32
const OTHERS_MAY_WRITE = 0o022
/** The file has no secrets, and the server may run as another user than the one who installed it. */
const READABLE = 0o644

/**
 * Loads a program and returns what it exports.
 * @param file its path. The build has wrapped its text, which is all ASCII, as a function of the five variables of CommonJS.
 * @param spare folder for the cache file if the program's folder is read-only, as in an image. Created when needed.
 * @param ending emitter of `exit`. Default: this process, or this thread.
 */
export function loadCompiled(
  file: string,
  spare?: string,
  ending: Pick<EventEmitter, 'once' | 'off'> = process,
): unknown {
  const text = readFileSync(file)
  const name = `${basename(file)}.${process.arch}-${cachedDataVersionTag().toString(16)}.compiled`
  const folders = spare === undefined ? [dirname(file)] : [dirname(file), spare]
  const cachedData = firstOf(folders, (folder) => compiledIn(join(folder, name), text, statSync(file).uid))
  const script = new Script(text.toString('latin1'), { filename: file, ...(cachedData && { cachedData }) })
  if (!cachedData || script.cachedDataRejected)
    saveLater(ending, (): unknown => folders.some((folder) => isSaved(script, text, folder, name)))
  const exports = {}
  const module = { exports }
  // Safe: the build wraps the program as such a function.
  const main = script.runInThisContext() as (...variables: unknown[]) => void
  main(exports, createRequire(file), module, file, dirname(file))
  return module.exports
}

function firstOf<T>(folders: readonly string[], find: (folder: string) => T | undefined): T | undefined {
  for (const folder of folders) {
    const found = find(folder)
    if (found !== undefined) return found
  }
  return undefined
}

/** Reads the compiled code of a text; undefined when there is no file that may be trusted. */
function compiledIn(path: string, text: Buffer, owner: number): Buffer | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      if (!isTrusted(fstatSync(file), owner)) return undefined
      const content = readFileSync(file)
      const data = content.subarray(DIGEST_BYTES)
      return content.subarray(0, DIGEST_BYTES).equals(digestOf(text, data)) ? data : undefined
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined
  }
}

const isTrusted = ({ uid, mode }: Stats, owner: number): boolean =>
  (mode & OTHERS_MAY_WRITE) === 0 && (uid === owner || uid === process.getuid?.())

const digestOf = (text: Buffer, data: Buffer): Buffer => createHash('sha256').update(text).update(data).digest()

/** Saves the compiled code some time after the start of the program, or at its exit if that comes first. */
function saveLater(ending: Pick<EventEmitter, 'once' | 'off'>, save: () => unknown): void {
  const saveOnce = (): void => {
    clearTimeout(timer)
    ending.off('exit', saveOnce)
    save()
  }
  const timer = setTimeout(saveOnce, SAVE_AFTER_MS).unref()
  ending.once('exit', saveOnce)
}

/** Replaces the file atomically, because other servers read and write it too. Returns false where writing is not allowed. */
function isSaved(script: Script, text: Buffer, folder: string, name: string): boolean {
  const draft = join(folder, `${name}.${process.pid}-${threadId}`)
  try {
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
    // The file is opened first: where that fails, V8 need not create the data.
    const file = openSync(draft, 'wx', READABLE)
    try {
      const data = script.createCachedData()
      writevSync(file, [digestOf(text, data), data])
      fchmodSync(file, READABLE)
    } finally {
      closeSync(file)
    }
    renameSync(draft, join(folder, name))
    return true
  } catch {
    rmSync(draft, { force: true })
    return false
  }
}

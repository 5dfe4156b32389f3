/** The files of an append-only log, as its manifest names them. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readFileIfThere } from '../../base/index.js'
import { LOG_DIRECTORY } from '../engine-files.js'

/** The manifest: which files make up the log, in order. */
export const MANIFEST_FILE = 'appendonly.aof.manifest'

/** The files of a log, in the order in which an engine reads them. */
export interface LogFiles {
  /** The directory that holds them. */
  readonly dir: string
  readonly names: readonly string[]
  /** The file that commands are appended to. */
  readonly last: string | undefined
}

const LINE = /^file (\S+) seq \d+ type ([bi])/gm

/** Reads which files a member's log consists of; undefined when there is no log. */
export async function readLogFiles(memberDir: string): Promise<LogFiles | undefined> {
  const dir = join(memberDir, LOG_DIRECTORY)
  const manifest = await readFileIfThere(join(dir, MANIFEST_FILE))
  if (manifest === undefined) return undefined
  const lines = [...manifest.matchAll(LINE)].map(([, name = '', type = '']) => ({ name, type }))
  return { dir, names: lines.map(({ name }) => name), last: lines.findLast(({ type }) => type === 'i')?.name }
}

/** The sizes of the files of a log, bytes; a file that is not there has none. */
export async function sizesOfLog({ dir, names }: LogFiles): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {}
  for (const name of names) {
    const found = await stat(join(dir, name)).catch(() => undefined)
    if (found) sizes[name] = found.size
  }
  return sizes
}

import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

/** How the last server of a data directory ended. */
export type Ending = 'stopped' | 'killed'

/** What is done to a file. */
export const DAMAGES = ['truncate', 'empty', 'zero', 'flip', 'delete', 'directory', 'unreadable', 'swap'] as const
export type DamageKind = (typeof DAMAGES)[number]

/**
 * What may happen to a file. `kept`: only its owner may delete it, damaged or not; `data`: its content changes, so it
 * is judged by what clients read; `merged`: SQLite moves the readable content into the store and then deletes the file;
 * `spare`: the server can recreate it.
 */
export type Custody = 'kept' | 'data' | 'merged' | 'spare'

/** A kind of file in a data directory. */
export interface FileKind {
  readonly name: string
  readonly pattern: RegExp
  readonly custody: Custody
  /** The copy in which the file has relevant content. */
  readonly ending: Ending
}

/** Every kind of file; the first pattern that fits counts. */
export const FILE_KINDS: readonly FileKind[] = [
  { name: 'store', pattern: /^homeport\.sqlite$/, custody: 'data', ending: 'stopped' },
  { name: 'store log', pattern: /^homeport\.sqlite-wal$/, custody: 'merged', ending: 'killed' },
  { name: 'store shared memory', pattern: /^homeport\.sqlite-shm$/, custody: 'spare', ending: 'killed' },
  { name: 'store id', pattern: /^store-id$/, custody: 'data', ending: 'stopped' },
  { name: 'store mark', pattern: /^store-mark$/, custody: 'data', ending: 'stopped' },
  { name: 'credentials', pattern: /^credentials\.json$/, custody: 'kept', ending: 'stopped' },
  { name: 'token key', pattern: /^token-key$/, custody: 'spare', ending: 'stopped' },
  { name: 'addresses', pattern: /^addresses\.json$/, custody: 'spare', ending: 'stopped' },
  { name: 'lock', pattern: /^lock$/, custody: 'spare', ending: 'killed' },
  { name: 'lock journal', pattern: /^lock-journal$/, custody: 'spare', ending: 'killed' },
  { name: 'lock pid', pattern: /^lock\.pid$/, custody: 'spare', ending: 'killed' },
  { name: 'reserve', pattern: /^reserve$/, custody: 'spare', ending: 'stopped' },
  { name: 'authority key', pattern: /^tls\/ca\.key$/, custody: 'kept', ending: 'stopped' },
  { name: 'authority certificate', pattern: /^tls\/ca\.crt$/, custody: 'kept', ending: 'stopped' },
  { name: 'server key', pattern: /^tls\/server\.key$/, custody: 'spare', ending: 'stopped' },
  { name: 'server certificate', pattern: /^tls\/server\.crt$/, custody: 'spare', ending: 'stopped' },
  { name: 'append-only manifest', pattern: /appendonlydir\/.*\.manifest$/, custody: 'data', ending: 'stopped' },
  { name: 'append-only base', pattern: /appendonlydir\/.*\.base\.rdb$/, custody: 'data', ending: 'stopped' },
  { name: 'append-only log', pattern: /appendonlydir\/.*\.incr\.aof$/, custody: 'data', ending: 'killed' },
  { name: 'sizes of the log', pattern: /log-sizes\.json$/, custody: 'spare', ending: 'stopped' },
  { name: 'engine settings', pattern: /engine\.conf$/, custody: 'spare', ending: 'stopped' },
  { name: 'engine users', pattern: /engine\.acl$/, custody: 'spare', ending: 'stopped' },
  { name: 'backup', pattern: /^backups\/.*\.rdb$/, custody: 'kept', ending: 'stopped' },
  { name: 'settings', pattern: /^homeport\.config\.json$/, custody: 'kept', ending: 'stopped' },
]

/** Directories that are damaged as a whole: deleted, or replaced by a file. */
export const FOLDER_KINDS = [
  'database',
  'region',
  'databases',
  'backups of a database',
  'backups',
  'tls',
  'run',
] as const

/** The relative paths of all files below a directory, sorted. */
export function filesIn(root: string, beneath = ''): string[] {
  return readdirSync(join(root, beneath), { withFileTypes: true })
    .flatMap((entry) => {
      const path = beneath === '' ? entry.name : `${beneath}/${entry.name}`
      if (entry.isDirectory()) return filesIn(root, path)
      return entry.isFile() ? [path] : []
    })
    .sort()
}

/** The relative paths of all directories below a directory. */
export function foldersIn(root: string, beneath = ''): string[] {
  return readdirSync(join(root, beneath), { withFileTypes: true }).flatMap((entry) => {
    const path = beneath === '' ? entry.name : `${beneath}/${entry.name}`
    return entry.isDirectory() ? [path, ...foldersIn(root, path)] : []
  })
}

/** The kind of a file, by its path in the data directory. */
export const kindOf = (path: string): FileKind | undefined => FILE_KINDS.find(({ pattern }) => pattern.test(path))

/** The digest of a file's content. */
export const digestOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

const PAGE = 4_096

/**
 * Damages a file. Returns a description with the place; `undefined` if this file cannot be damaged like that.
 * @param swapWith the other file of a swap, relative to the data directory.
 */
export function damageFile(
  root: string,
  path: string,
  damage: DamageKind,
  random: () => number,
  swapWith: string | undefined,
): string | undefined {
  const file = join(root, path)
  const size = lstatSync(file).size
  switch (damage) {
    case 'delete':
      rmSync(file)
      return 'deleted'
    case 'directory':
      rmSync(file)
      mkdirSync(file, { mode: 0o700 })
      return 'replaced by a directory'
    case 'unreadable':
      chmodSync(file, 0)
      return process.getuid?.() === 0 ? 'made unreadable, which root does not notice' : 'made unreadable'
    case 'swap':
      return swapWith === undefined ? undefined : swap(root, path, swapWith)
    default:
      return size === 0 ? undefined : damageBytes(file, size, damage, random)
  }
}

function swap(root: string, path: string, other: string): string {
  const [one, two] = [join(root, path), join(root, other)]
  const [first, second] = [readFileSync(one), readFileSync(two)]
  writeFileSync(one, second)
  writeFileSync(two, first)
  return `swapped with ${other}`
}

function damageBytes(file: string, size: number, damage: 'truncate' | 'empty' | 'zero' | 'flip', random: () => number) {
  const at = Math.floor(random() * size)
  switch (damage) {
    case 'empty':
      truncateSync(file, 0)
      return 'emptied'
    case 'truncate':
      truncateSync(file, at)
      return `cut from ${size} to ${at} bytes`
    case 'zero': {
      const bytes = readFileSync(file)
      const from = Math.floor(at / PAGE) * PAGE
      bytes.fill(0, from, Math.min(from + PAGE, size))
      writeFileSync(file, bytes)
      return `zeroed from byte ${from} on`
    }
    case 'flip': {
      const bytes = readFileSync(file)
      const bit = Math.floor(random() * 8)
      bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
      writeFileSync(file, bytes)
      return `bit ${bit} of byte ${at} of ${size} flipped`
    }
  }
}

/** Replaces a directory by a copy of a data directory. */
export function putCopy(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  cpSync(from, to, { recursive: true, preserveTimestamps: true })
}

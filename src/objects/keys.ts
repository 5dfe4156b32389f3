import { createHash, randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import { readFileIfThere, replaceFile, TasksByKey } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

/** The file of the keys in the data directory, one a line. The first one encrypts; all of them decrypt. */
export const BACKUP_KEYS_FILE = 'backup-keys'

const TITLE = '# Keys of backups. Keep a copy elsewhere: without them, nobody can read the backups.'
const KEY_BYTES = 32
const PREFIX = 'hpbk1_'
/** Maximum number of keys; `learn` ignores further ones. */
const MAX_KEYS = 256

/** A key that seals files, and its id. */
export interface BackupKey {
  readonly id: Buffer
  readonly secret: Buffer
}

/** The keys of a data directory for files that leave it. */
export class BackupKeys {
  readonly #dataDir: string
  /** Whether this start has created the first key. */
  readonly isNew: boolean
  #keys: readonly BackupKey[]
  /** Writes of the file run one after the other. */
  readonly #writes = new TasksByKey()

  private constructor(dataDir: string, keys: readonly BackupKey[]) {
    this.#dataDir = dataDir
    this.isNew = keys.length === 0
    this.#keys = keys
  }

  /** Reads the keys, or creates the first one. @throws HomeportError `sealed_unusable` when a line is not a key. */
  static async open(dataDir: string): Promise<BackupKeys> {
    const text = (await readFileIfThere(join(dataDir, BACKUP_KEYS_FILE))) ?? ''
    const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.startsWith('#'))
    const keys = lines.flatMap((line) => parseKey(line) ?? [])
    // A key that was damaged by hand must not be replaced by a new one: somebody may repair it.
    if (keys.length < lines.length) {
      throw new HomeportError('sealed_unusable', { reason: `a line of ${BACKUP_KEYS_FILE} in ${dataDir} is not a key` })
    }
    const opened = new BackupKeys(dataDir, keys)
    if (keys.length === 0) await opened.learn([keyText(randomBytes(KEY_BYTES))])
    return opened
  }

  /**
   * Reads the keys from a copy of the key file, on a machine without the data directory. @throws HomeportError
   * `sealed_unusable`.
   */
  static async ofFile(file: string): Promise<BackupKeys> {
    const text = await readFileIfThere(file)
    const keys = (text ?? '').split(/\r?\n/).flatMap((line) => parseKey(line) ?? [])
    if (keys.length === 0) throw new HomeportError('sealed_unusable', { reason: `${file} has no key of backups` })
    return new BackupKeys(dirname(file), keys)
  }

  /** The key that encrypts. */
  get current(): BackupKey {
    const [first] = this.#keys
    if (!first) throw new Error('there is no backup key')
    return first
  }

  /** All keys as texts, the current one first. They are secrets. */
  get texts(): readonly string[] {
    return this.#keys.map(({ secret }) => keyText(secret))
  }

  /** The key with an id. @throws HomeportError `sealed_key_missing`. */
  find(id: string): BackupKey {
    const found = this.#keys.find((key) => key.id.toString('hex') === id)
    if (found) return found
    const known = this.#keys.map((key) => key.id.toString('hex')).join(', ')
    throw new HomeportError('sealed_key_missing', { key: id, known: known || 'none' })
  }

  /** Adds keys and writes them to the file. Ignores texts that are not keys. */
  learn(texts: readonly unknown[]): Promise<void> {
    return this.#writes.take('', () => this.#learn(texts))
  }

  async #learn(texts: readonly unknown[]): Promise<void> {
    const known = new Set(this.texts)
    const fresh = new Set(texts.filter((text): text is string => typeof text === 'string' && !known.has(text)))
    const keys = [...fresh].flatMap((text) => parseKey(text) ?? [])
    if (keys.length === 0) return
    const all = [...this.#keys, ...keys].slice(0, MAX_KEYS)
    const path = join(this.#dataDir, BACKUP_KEYS_FILE)
    // Keeps all lines that somebody appended to the file since the start, even lines that are not keys.
    const present = (await readFileIfThere(path)) ?? TITLE
    const added = all.map(({ secret }) => keyText(secret)).filter((text) => !present.includes(text))
    await replaceFile(path, `${[present.trimEnd(), ...added].join('\n')}\n`)
    this.#keys = all
  }
}

const keyText = (secret: Buffer): string => `${PREFIX}${secret.toString('base64url')}`

function parseKey(line: string): BackupKey | undefined {
  const text = line.trim()
  const secret = text.startsWith(PREFIX) ? Buffer.from(text.slice(PREFIX.length), 'base64url') : Buffer.alloc(0)
  if (secret.length !== KEY_BYTES) return undefined
  return { secret, id: createHash('sha256').update('homeport backup key ').update(secret).digest().subarray(0, 8) }
}

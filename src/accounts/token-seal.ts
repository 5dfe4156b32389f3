import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { readFileIfThere, replaceFile, TasksByKey } from '../base/index.js'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Most keys of other nodes that are kept. */
const MAX_KEYS = 64
const OTHERS_FILE = 'token-keys-of-nodes'

/**
 * Encrypts queue tokens for the store with a key in the data directory. The management API has to show a token to its owner,
 * but a reader of only the store, or of a copy of it, must not get any token.
 *
 * Each node has its own data directory and thus its own key. The nodes exchange their keys over the peer link, never through
 * the store. Each node keeps the keys of the others, so that it can show tokens that another node has encrypted.
 */
export class TokenSeal {
  readonly #dataDir: string
  readonly #key: Buffer
  #others: readonly Buffer[]
  /** The content of the file with the keys of other nodes. */
  #written: string
  /** Writes of the file run one after the other. */
  readonly #writes = new TasksByKey()

  private constructor(dataDir: string, key: Buffer, others: readonly Buffer[]) {
    this.#dataDir = dataDir
    this.#key = key
    this.#others = others
    this.#written = textOf(others)
  }

  /**
   * Reads the key of a data directory, or creates it. A damaged key file is kept as `token-key.damaged-<random>`,
   * because the operator may be able to repair it.
   */
  static async open(dataDir: string): Promise<TokenSeal> {
    const lines = (await readFileIfThere(join(dataDir, OTHERS_FILE)))?.split('\n') ?? []
    const others = lines.flatMap((line) => keyOf(line) ?? [])
    const path = join(dataDir, 'token-key')
    const text = await readFileIfThere(path)
    const found = keyOf(text)
    if (found) return new TokenSeal(dataDir, found, others)
    if (text !== undefined) await rename(path, `${path}.damaged-${randomBytes(6).toString('hex')}`)
    const fresh = randomBytes(KEY_BYTES)
    await replaceFile(path, fresh.toString('base64url'))
    return new TokenSeal(dataDir, fresh, others)
  }

  /** All keys, for another node. */
  get keys(): readonly string[] {
    return [this.#key, ...this.#others].map((key) => key.toString('base64url'))
  }

  /**
   * Keeps keys of other nodes, and ignores invalid ones. Rejects if the keys could not be written, for example on a full
   * disk. They are then kept in memory, and the next call writes them.
   */
  learn(texts: readonly unknown[]): Promise<void> {
    return this.#writes.take('', () => this.#learn(texts))
  }

  async #learn(texts: readonly unknown[]): Promise<void> {
    const known = new Set(this.keys)
    const fresh = [...new Set(texts)].flatMap((text) =>
      typeof text === 'string' && !known.has(text) ? (keyOf(text) ?? []) : [],
    )
    this.#others = [...this.#others, ...fresh].slice(0, MAX_KEYS)
    const text = textOf(this.#others)
    if (text === this.#written) return
    await replaceFile(join(this.#dataDir, OTHERS_FILE), text)
    this.#written = text
  }

  /** Encrypts a token for the store. `owner` is the account: the result can be decrypted only for the same account. */
  seal(token: string, owner: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key, nonce).setAAD(Buffer.from(owner))
    const sealed = Buffer.concat([cipher.update(token, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** Decrypts a token; `undefined` if there is none, or if this node does not have the key. */
  unseal(stored: string | null, owner: string): string | undefined {
    if (stored === null) return undefined
    const bytes = Buffer.from(stored, 'base64url')
    if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined
    for (const key of [this.#key, ...this.#others]) {
      const token = decrypted(bytes, key, owner)
      if (token !== undefined) return token
    }
    return undefined
  }
}

const textOf = (keys: readonly Buffer[]): string => keys.map((key) => `${key.toString('base64url')}\n`).join('')

function keyOf(text: string | undefined): Buffer | undefined {
  const key = Buffer.from(text ?? '', 'base64url')
  return key.length === KEY_BYTES ? key : undefined
}

function decrypted(bytes: Buffer, key: Buffer, owner: string): string | undefined {
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(owner))
      .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
    const sealed = bytes.subarray(NONCE_BYTES + TAG_BYTES)
    return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { readFileIfThere, replaceFile } from '../base/index.js'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Encrypts queue tokens for the store with a key in the data directory. The management API has to show a token to its
 * owner, but a reader of the store alone, or of a copy of it, must not get any.
 */
export class TokenSeal {
  readonly #key: Buffer

  private constructor(key: Buffer) {
    this.#key = key
  }

  /**
   * Reads the key of a data directory, or creates it. A damaged key is kept as `token-key.damaged-<random>`: somebody may
   * repair it.
   */
  static async open(dataDir: string): Promise<TokenSeal> {
    const path = join(dataDir, 'token-key')
    const text = await readFileIfThere(path)
    const found = Buffer.from(text ?? '', 'base64url')
    if (found.length === KEY_BYTES) return new TokenSeal(found)
    if (text !== undefined) await rename(path, `${path}.damaged-${randomBytes(6).toString('hex')}`)
    const fresh = randomBytes(KEY_BYTES)
    await replaceFile(path, fresh.toString('base64url'))
    return new TokenSeal(fresh)
  }

  /** The token as the store keeps it. `owner` is the account: what was sealed for one is nothing for another. */
  seal(token: string, owner: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key, nonce).setAAD(Buffer.from(owner))
    const sealed = Buffer.concat([cipher.update(token, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** The token again; `undefined` where there is none, or where another data directory has the key. */
  unseal(stored: string | null, owner: string): string | undefined {
    if (stored === null) return undefined
    const bytes = Buffer.from(stored, 'base64url')
    if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined
    try {
      const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(owner))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
      const sealed = bytes.subarray(NONCE_BYTES + TAG_BYTES)
      return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8')
    } catch {
      return undefined
    }
  }
}

/**
 * Sealed files: encrypted and authenticated in chunks, so that they are written and read with the memory of one chunk.
 *
 * ```
 * "HPSEAL1\n"  8 bytes
 * key id       8 bytes, tells which key it is; no secret
 * salt        32 bytes, random: the key of this file is derived from it, so no nonce is used twice
 * chunk*       AES-256-GCM of up to 64 KiB, then its tag of 16 bytes
 * ```
 *
 * The nonce of a chunk is its number and whether it is the last one. So chunks that were exchanged, repeated, left out or
 * cut off at the end do not decrypt. The header and the name of the file are authenticated with each chunk: a file under
 * the name of another one does not decrypt either.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { HomeportError } from '../contract/errors/errors.js'
import type { BackupKey, BackupKeys } from './keys.js'

const MAGIC = Buffer.from('HPSEAL1\n')
const KEY_ID_BYTES = 8
const SALT_BYTES = 32
const HEADER_BYTES = MAGIC.length + KEY_ID_BYTES + SALT_BYTES
const CHUNK_BYTES = 64 * 1024
const TAG_BYTES = 16
const CIPHER = 'aes-256-gcm'

/** The length of a sealed file, from the length of its content. */
export function sealedBytes(contentBytes: number): number {
  return HEADER_BYTES + contentBytes + TAG_BYTES * Math.max(1, Math.ceil(contentBytes / CHUNK_BYTES))
}

/** Encrypts a stream. `name` must be given again to read it. */
export async function* seal(content: AsyncIterable<Buffer>, key: BackupKey, name: string): AsyncGenerator<Buffer> {
  const header = Buffer.concat([MAGIC, key.id, randomBytes(SALT_BYTES)])
  yield header
  const chunks = new Chunks(key, header, name)
  let held: Buffer | undefined
  for await (const chunk of cut(content, CHUNK_BYTES)) {
    if (held) yield chunks.encrypt(held, 'more')
    held = chunk
  }
  yield chunks.encrypt(held ?? Buffer.alloc(0), 'last')
}

/**
 * Decrypts a stream. Only authentic chunks are passed on; an early end is an error after the last authentic chunk, so a
 * caller must not use what it has got before the end.
 * @throws HomeportError `sealed_unusable`, `sealed_key_missing`.
 */
export async function* unseal(content: AsyncIterable<Buffer>, keys: BackupKeys, name: string): AsyncGenerator<Buffer> {
  let chunks: Chunks | undefined
  let held: Buffer | undefined
  for await (const piece of cut(
    withoutHeader(content, (header) => {
      chunks = new Chunks(keyOf(header, keys), header, name)
    }),
    CHUNK_BYTES + TAG_BYTES,
  )) {
    if (held && chunks) yield chunks.decrypt(held, 'more')
    held = piece
  }
  if (!held || !chunks) throw unusable('it is cut off')
  yield chunks.decrypt(held, 'last')
}

function keyOf(header: Buffer, keys: BackupKeys): BackupKey {
  if (!header.subarray(0, MAGIC.length).equals(MAGIC)) throw unusable('it is not a sealed file of Homeport')
  const id = header.subarray(MAGIC.length, MAGIC.length + KEY_ID_BYTES).toString('hex')
  return keys.find(id)
}

async function* withoutHeader(
  content: AsyncIterable<Buffer>,
  onHeader: (header: Buffer) => void,
): AsyncGenerator<Buffer> {
  let header: Buffer | undefined = Buffer.alloc(0)
  for await (const chunk of content) {
    if (header === undefined) {
      yield chunk
      continue
    }
    header = Buffer.concat([header, chunk])
    if (header.length < HEADER_BYTES) continue
    onHeader(header.subarray(0, HEADER_BYTES))
    yield header.subarray(HEADER_BYTES)
    header = undefined
  }
  if (header) throw unusable('it is cut off')
}

/** The chunks of one file, in their order. */
class Chunks {
  readonly #key: Buffer
  readonly #context: Buffer
  #number = 0

  constructor(key: BackupKey, header: Buffer, name: string) {
    const salt = header.subarray(MAGIC.length + KEY_ID_BYTES)
    this.#key = Buffer.from(hkdfSync('sha256', key.secret, salt, 'homeport sealed file', 32))
    this.#context = Buffer.concat([header, Buffer.from(name)])
  }

  encrypt(chunk: Buffer, place: 'more' | 'last'): Buffer {
    const cipher = createCipheriv(CIPHER, this.#key, this.#nonce(place)).setAAD(this.#context)
    return Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()])
  }

  decrypt(piece: Buffer, place: 'more' | 'last'): Buffer {
    const number = this.#number
    if (piece.length < TAG_BYTES) throw unusable('it is cut off')
    const end = piece.length - TAG_BYTES
    const decipher = createDecipheriv(CIPHER, this.#key, this.#nonce(place), { authTagLength: TAG_BYTES })
      .setAAD(this.#context)
      .setAuthTag(piece.subarray(end))
    try {
      return Buffer.concat([decipher.update(piece.subarray(0, end)), decipher.final()])
    } catch (cause) {
      throw unusable(`it is damaged or cut off near byte ${HEADER_BYTES + number * (CHUNK_BYTES + TAG_BYTES)}`, cause)
    }
  }

  #nonce(place: 'more' | 'last'): Buffer {
    const nonce = Buffer.alloc(12)
    nonce.writeUIntBE(this.#number++, 5, 6)
    nonce[11] = place === 'last' ? 1 : 0
    return nonce
  }
}

const unusable = (reason: string, cause?: unknown): HomeportError<'sealed_unusable'> =>
  new HomeportError('sealed_unusable', { reason }, { cause })

/** Cuts a stream into pieces of one length; the last may be shorter, and is never empty. */
async function* cut(content: AsyncIterable<Buffer>, length: number): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of content) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let at = 0
    for (; rest.length - at >= length; at += length) yield rest.subarray(at, at + length)
    rest = rest.subarray(at)
  }
  if (rest.length > 0) yield rest
}

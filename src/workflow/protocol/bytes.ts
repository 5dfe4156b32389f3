const EMPTY = new Uint8Array()

/** Copies bytes out of a shared buffer: a view would take the whole buffer across threads. */
export function ownBytes(bytes: Uint8Array | undefined): Uint8Array {
  if (!bytes || bytes.byteLength === 0) return EMPTY
  return bytes.byteLength === bytes.buffer.byteLength && !Buffer.isBuffer(bytes) ? bytes : new Uint8Array(bytes)
}

/** Encodes bytes as base64. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

/** The first bytes, as a copy. */
export function firstBytes(bytes: Uint8Array, most: number): Uint8Array {
  return bytes.byteLength <= most ? bytes : bytes.slice(0, most)
}

/** Encodes text as UTF-8, in a buffer of its own. */
export function textBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

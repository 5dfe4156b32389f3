const EMPTY = new Uint8Array()

/** Bytes of their own: a view into a shared buffer would take that whole buffer across a thread with it. */
export function ownBytes(bytes: Uint8Array | undefined): Uint8Array {
  if (!bytes || bytes.byteLength === 0) return EMPTY
  return bytes.byteLength === bytes.buffer.byteLength && !Buffer.isBuffer(bytes) ? bytes : new Uint8Array(bytes)
}

/** Bytes in base64. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

/** The first bytes, as bytes of their own. */
export function firstBytes(bytes: Uint8Array, most: number): Uint8Array {
  return bytes.byteLength <= most ? bytes : bytes.slice(0, most)
}

/** Text as bytes of their own. */
export function textBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { HomeportError } from '../../contract/errors/errors.js'
import type { FileFacts } from './files.js'

/**
 * The file of a backup as a stream that ends only when all of it is what was completed. The last bytes are held back
 * until the digest is known, so a client of a damaged file sees its download break off, and keeps nothing that looks whole.
 * @throws HomeportError `snapshot_unusable` when the file is missing or has another length.
 */
export async function verifiedFile(path: string, facts: FileFacts): Promise<Readable> {
  const found = await stat(path).catch((cause: unknown) => {
    throw new HomeportError('snapshot_unusable', { reason: 'its file cannot be read' }, { cause })
  })
  if (!found.isFile() || found.size !== facts.sizeBytes)
    throw new HomeportError('snapshot_unusable', { reason: 'its file has changed since it was made' })
  return Readable.from(wholeFile(path, facts), { objectMode: false })
}

async function* wholeFile(path: string, { sha256 }: FileFacts): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let held: Buffer | undefined
  for await (const chunk of createReadStream(path)) {
    if (held) yield held
    held = chunk as Buffer
    hash.update(held)
  }
  if (hash.digest('hex') !== sha256)
    throw new HomeportError('snapshot_unusable', { reason: 'its file has changed since it was made' })
  if (held) yield held
}

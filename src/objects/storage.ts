import type { Readable } from 'node:stream'
import { HomeportError, isError } from '../contract/errors/errors.js'
import { reasonOf, type StorageOptions, type StorageRequest, StorageRequests } from './requests.js'

/** An object in a list. */
export interface ObjectEntry {
  readonly key: string
  readonly sizeBytes: number
}

/** Minimum size of a part of an upload, bytes. An upload holds at least one part in memory. */
const PART_BYTES = 8 * 2 ** 20
/** S3 takes at most 10,000 parts. */
const MAX_PARTS = 9_000
/** Pages of unfinished uploads that one call reads, at most 1,000 each. The next call continues with those that are left. */
const MAX_UPLOAD_PAGES = 10
/** Maximum number of entries in a list: a storage that never ends its list must not fill the memory. */
const MAX_LIST_LENGTH = 1_000_000

/** Reads and writes objects of one place, with bounded memory: one part of an upload, one chunk of a download. */
export class ObjectStorage {
  readonly #requests: StorageRequests

  constructor(options: StorageOptions) {
    this.#requests = new StorageRequests(options)
  }

  /** The place, for people. */
  get place(): string {
    return this.#requests.place
  }

  /** Reads one page of the list. @throws HomeportError that says what is wrong with the options or the storage. */
  async check(): Promise<void> {
    await this.#page(undefined, '', 1)
  }

  /**
   * Writes an object. Larger ones are sent in parts, and exist only when all of them have arrived. Aborts earlier uploads of
   * this object, which a killed server has left.
   * @param sizeBytes an upper bound of the length, which decides the size of a part.
   */
  async put(key: string, content: AsyncIterable<Buffer>, sizeBytes: number, signal?: AbortSignal): Promise<void> {
    const parts = piecesOf(content, Math.max(PART_BYTES, Math.ceil(sizeBytes / MAX_PARTS)))
    try {
      const first = await parts.next()
      const second = first.done ? first : await parts.next()
      const body = first.done ? Buffer.alloc(0) : first.value
      if (second.done) await this.#requests.text({ method: 'PUT', key, body, signal })
      else await this.#putInPieces(key, joined([body, second.value], parts), signal)
    } finally {
      // A content stream that is not read to its end would keep its file open.
      await parts.return(undefined)
    }
  }

  /**
   * Reads the content of an object. @throws HomeportError `object_missing`, or `object_storage_failed` when the content
   * ends too early.
   */
  async *get(key: string, signal?: AbortSignal): AsyncGenerator<Buffer> {
    const { body, headers } = await this.#requests.send({ method: 'GET', key, signal })
    const expected = Number(headers['content-length'] ?? Number.NaN)
    let received = 0
    try {
      for await (const chunk of body as Readable) {
        if (!Buffer.isBuffer(chunk)) continue
        received += chunk.length
        yield chunk
      }
    } catch (error) {
      if (error instanceof HomeportError) throw error
      this.#requests.fail(`${reasonOf(error)} after ${received} bytes of ${key}`, error)
    } finally {
      body.destroy()
    }
    if (expected > received) this.#requests.fail(`${key} ended after ${received} of ${expected} bytes`)
  }

  /** Deletes an object, if it exists. */
  remove(key: string, signal?: AbortSignal): Promise<void> {
    return this.#delete({ key, signal })
  }

  /**
   * Aborts unfinished uploads in parts, which a killed server has left: they cost money, and no list of objects shows them.
   * @param start where their keys start. Some storages know only whole keys here.
   */
  async abortUploads(start: string, isLeft: (key: string) => boolean, signal?: AbortSignal): Promise<void> {
    const { prefix } = this.#requests.options.place
    let after: Readonly<Record<string, string>> = {}
    for (let page = 0; page < MAX_UPLOAD_PAGES; page++) {
      const query = { uploads: '', prefix: `${prefix}${start}`, ...after }
      const { text } = await this.#requests.text({ method: 'GET', key: '', query, signal })
      for (const [, found = ''] of text.matchAll(/<Upload>([\s\S]*?)<\/Upload>/g)) {
        const [key, uploadId] = [textOf('Key', found), textOf('UploadId', found)]
        if (!key?.startsWith(prefix) || uploadId === undefined || !isLeft(key.slice(prefix.length))) continue
        await this.#delete({ key: key.slice(prefix.length), query: { uploadId }, signal })
      }
      const [nextKey, nextId] = [textOf('NextKeyMarker', text), textOf('NextUploadIdMarker', text)]
      if (textOf('IsTruncated', text) !== 'true' || nextKey === undefined) return
      after = { 'key-marker': nextKey, ...(nextId !== undefined && { 'upload-id-marker': nextId }) }
    }
  }

  /**
   * Lists the objects below a folder (which ends with a slash, or is empty for all). Uses version 1 of the request, which
   * every storage has. A page continues after a key, so nothing depends on a token of the storage.
   */
  async *list(folder: string, pageSize = 1000): AsyncGenerator<ObjectEntry> {
    let after: string | undefined
    let count = 0
    do {
      const page = await this.#page(after, folder, pageSize)
      for (const entry of page.entries) yield entry
      count += page.entries.length
      if (count > MAX_LIST_LENGTH || (page.next !== undefined && page.entries.length === 0)) return
      after = page.next
    } while (after !== undefined)
  }

  /** Closes idle connections. */
  close(): Promise<void> {
    return this.#requests.close()
  }

  /** Deletes an object or an upload, if it exists. */
  async #delete(what: Omit<StorageRequest, 'method'>): Promise<void> {
    await this.#requests.text({ method: 'DELETE', ...what }).catch((error: unknown) => {
      if (!isError(error, 'object_missing')) throw error
    })
  }

  async #page(after: string | undefined, folder: string, limit: number) {
    const { prefix } = this.#requests.options.place
    const { text } = await this.#requests.text({
      method: 'GET',
      key: '',
      query: {
        'max-keys': String(limit),
        ...(`${prefix}${folder}` !== '' && { prefix: `${prefix}${folder}` }),
        ...(after !== undefined && { marker: after }),
      },
    })
    if (!text.includes('<ListBucketResult')) this.#requests.fail('its answer is not a list of objects')
    const whole = [...text.matchAll(/<Contents>([\s\S]*?)<\/Contents>/g)].flatMap(([, found = '']) => {
      const key = /<Key>([^<]+)<\/Key>/.exec(found)?.[1]
      const size = Number(/<Size>(\d+)<\/Size>/.exec(found)?.[1] ?? Number.NaN)
      return key?.startsWith(prefix) && Number.isSafeInteger(size) ? [{ key, sizeBytes: size }] : []
    })
    const isTruncated = /<IsTruncated>true<\/IsTruncated>/.test(text)
    const entries = whole.map(({ key, sizeBytes }) => ({ key: key.slice(prefix.length), sizeBytes }))
    return { entries, next: isTruncated ? whole.at(-1)?.key : undefined }
  }

  async #putInPieces(key: string, parts: AsyncIterable<Buffer>, signal: AbortSignal | undefined): Promise<void> {
    // A storage without this request, or one that refuses it, must not prevent the upload.
    await this.abortUploads(key, (found) => found === key, signal).catch(() => undefined)
    const begun = await this.#requests.text({ method: 'POST', key, query: { uploads: '' }, signal })
    const uploadId = textOf('UploadId', begun.text)
    if (uploadId === undefined) return this.#requests.fail('it did not start a multipart upload')
    try {
      const tags: string[] = []
      for await (const body of parts) {
        const query = { partNumber: String(tags.length + 1), uploadId }
        const { headers } = await this.#requests.text({ method: 'PUT', key, query, body, signal })
        tags.push(String(headers.etag ?? ''))
      }
      const list = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`)
      const body = Buffer.from(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`)
      const done = await this.#requests.text({ method: 'POST', key, query: { uploadId }, body, signal })
      // S3 may answer 200 at once, and send an error in the body later.
      if (!done.text.includes('CompleteMultipartUploadResult'))
        this.#requests.fail('it did not complete the multipart upload')
    } catch (error) {
      await this.#requests.text({ method: 'DELETE', key, query: { uploadId } }).catch(() => undefined)
      throw error
    }
  }
}

const textOf = (name: string, xml: string): string | undefined =>
  new RegExp(`<${name}>([^<]+)</${name}>`).exec(xml)?.[1]

async function* joined(first: readonly Buffer[], rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* first
  yield* rest
}

/** Cuts a stream into parts of one size; the last may be shorter. */
async function* piecesOf(content: AsyncIterable<Buffer>, partBytes: number): AsyncGenerator<Buffer, undefined> {
  let held: Buffer[] = []
  let size = 0
  for await (const chunk of content) {
    let rest = chunk
    while (size + rest.length >= partBytes) {
      const cut = partBytes - size
      yield Buffer.concat([...held, rest.subarray(0, cut)])
      rest = rest.subarray(cut)
      held = []
      size = 0
    }
    if (rest.length > 0) held.push(rest)
    size += rest.length
  }
  if (size > 0) yield Buffer.concat(held)
  return undefined
}

import { createHash } from 'node:crypto'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { readCredentials } from './credentials.js'
import { BackupKeys, ObjectStorage, seal, sealedBytes, unseal } from './index.js'
import { ObjectServer } from './testing/object-server.js'

const MIB = 2 ** 20
let server: ObjectServer
let storage: ObjectStorage
const dir = mkdtempSync(join(tmpdir(), 'homeport-objects-'))

beforeAll(async () => {
  server = await ObjectServer.start()
  storage = new ObjectStorage(server.options())
})
beforeEach(() => {
  server.fault = () => undefined
})
afterAll(async () => {
  await storage.close()
  await server.stop()
  rmSync(dir, { recursive: true, force: true })
})

async function* bytes(length: number, chunk = 100_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < length; at += chunk) yield Buffer.alloc(Math.min(chunk, length - at), at % 251)
}

async function digest(content: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of content) hash.update(chunk)
  return hash.digest('hex')
}

async function collected<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

async function whole(content: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe('object storage', () => {
  it.each([0, 5, 8 * MIB, 17 * MIB + 7])('keeps %i bytes', async (length) => {
    await storage.put('folder/a', bytes(length), length)
    expect(await digest(storage.get('folder/a'))).toBe(await digest(bytes(length)))
  })

  it('lists below a folder, over several pages, and deletes', async () => {
    for (const name of ['x/1', 'x/2', 'y/1']) await storage.put(name, bytes(9), 9)
    expect(await collected(storage.list('x/', 1))).toEqual([
      { key: 'x/1', sizeBytes: 9 },
      { key: 'x/2', sizeBytes: 9 },
    ])
    await storage.remove('x/1')
    await storage.remove('x/1')
    expect((await collected(storage.list('x/'))).map(({ key }) => key)).toEqual(['x/2'])
    await expect(whole(storage.get('x/1'))).rejects.toMatchObject({ code: 'object_missing' })
  })

  it('says what is wrong with bucket, credentials and address', async () => {
    const options = server.options()
    const broken = [
      [{ ...options, place: { bucket: 'nowhere', prefix: '' } }, '404 NoSuchBucket (create the bucket)'],
      [
        { ...options, credentials: { file: undefined, environment: {} } },
        'no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
      ],
      [{ ...options, credentials: { file: join(dir, 'none'), environment: {} } }, 'none cannot be read'],
      [{ ...options, endpoint: 'http://127.0.0.1:1' }, 'the connection failed (ECONNREFUSED)'],
      [
        {
          ...options,
          credentials: {
            file: undefined,
            environment: { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'wrong-secret' },
          },
        },
        '403 SignatureDoesNotMatch (check the credentials',
      ],
    ] as const
    for (const [wrong, said] of broken) {
      const one = new ObjectStorage(wrong)
      const error = await one.check().catch((found: unknown) => found)
      expect(error).toMatchObject({ code: 'object_storage_failed' })
      expect(String(error)).toContain(said)
      expect(String(error)).not.toContain('wrong-secret')
      await one.close()
    }
  })

  it('reads credentials from a file', async () => {
    const file = join(dir, 'credentials')
    writeFileSync(
      file,
      '[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n[other]\naws_access_key_id = x\n',
    )
    const one = new ObjectStorage({ ...server.options(), credentials: { file, environment: {} } })
    await one.check()
    await one.close()
  })

  it('takes nothing from a second profile of that file', async () => {
    const file = join(dir, 'profiles')
    const own = 'aws_access_key_id = a\naws_secret_access_key = b'
    const read = (text: string) => {
      writeFileSync(file, text)
      return readCredentials({ file, environment: {} }, 's3://place')
    }
    const { sessionToken } = await read(`[default]\n${own}\n\n[other]\naws_session_token = x\n`)
    expect(sessionToken).toBe(undefined)
    expect((await read(`# no profile\n${own}\n`)).accessKeyId).toBe('a')
    await expect(read(`[default]\n[other]\n${own}\n`)).rejects.toThrow('has no aws_access_key_id')
  })

  it('reports a storage that refuses, and leaves nothing of an upload in parts', async () => {
    server.fault = ({ url }) =>
      url?.includes('partNumber=2') ? { kind: 'status', status: 503, code: 'SlowDown' } : undefined
    await expect(storage.put('parts', bytes(20 * MIB), 20 * MIB)).rejects.toThrow('503 SlowDown')
    server.fault = () => undefined
    await expect(whole(storage.get('parts'))).rejects.toMatchObject({ code: 'object_missing' })
    expect(server.uploads.size).toBe(0)
  })

  it('aborts the uploads in parts that a killed server has left of an object', async () => {
    // A kill also prevents the request that aborts the upload.
    server.fault = ({ url, method }) =>
      url?.includes('partNumber=2') || (method === 'DELETE' && url?.includes('uploadId'))
        ? { kind: 'status', status: 503, code: 'SlowDown' }
        : undefined
    for (const key of ['left/1', 'left/1', 'left/10'])
      await expect(storage.put(key, bytes(20 * MIB), 20 * MIB)).rejects.toThrow('503')
    expect([...server.uploads.values()].sort()).toEqual(['tests/left/1', 'tests/left/1', 'tests/left/10'])
    server.fault = () => undefined
    await storage.put('left/1', bytes(20 * MIB), 20 * MIB)
    expect([...server.uploads.values()]).toEqual(['tests/left/10'])
    // Parts cannot be listed by every storage, or by these credentials.
    server.fault = ({ url, method }) =>
      method === 'GET' && url?.includes('uploads') ? { kind: 'status', status: 501, code: 'NotImplemented' } : undefined
    await storage.put('left/10', bytes(20 * MIB), 20 * MIB)
    server.fault = () => undefined
    await storage.abortUploads('left/', (key) => key === 'left/10')
    expect(server.uploads.size).toBe(0)
  })

  it.each(['uploads', 'partNumber=1'])('closes what it reads when the storage refuses `%s`', async (refused) => {
    server.fault = ({ url }) => (url?.includes(refused) ? { kind: 'status', status: 503, code: 'SlowDown' } : undefined)
    let isClosed = false
    async function* content(): AsyncGenerator<Buffer> {
      try {
        yield* bytes(20 * MIB)
      } finally {
        isClosed = true
      }
    }
    await expect(storage.put('parts', content(), 20 * MIB)).rejects.toThrow('503 SlowDown')
    expect(isClosed).toBe(true)
  })

  it('takes an upload that lasts longer than a request may stand still', async () => {
    // The system buffers the last sixth, which the server has to read in less than the timeout: so it hurries.
    server.fault = () => ({ kind: 'slow', pauseMs: 25, bytes: 18 * MIB })
    const one = new ObjectStorage({ ...server.options(), timeoutMs: 5_000 })
    // Announced as so large that it is sent in one part.
    await one.put('slow', bytes(24 * MIB), 24 * MIB * 9_000)
    await one.close()
    server.fault = () => undefined
    expect(await digest(storage.get('slow'))).toBe(await digest(bytes(24 * MIB)))
  })

  it('reports a download that ends too early', async () => {
    await storage.put('short', bytes(MIB), MIB)
    server.fault = () => ({ kind: 'cut', afterBytes: 300_000 })
    await expect(digest(storage.get('short'))).rejects.toMatchObject({ code: 'object_storage_failed' })
  })
})

describe('sealed files', () => {
  const file = async (length: number, keys: BackupKeys): Promise<Buffer> =>
    whole(seal(bytes(length), keys.current, 'name'))
  const open = (content: Buffer, keys: BackupKeys, name = 'name'): Promise<Buffer> =>
    whole(
      unseal(
        (async function* () {
          for (let at = 0; at < content.length; at += 1000) yield content.subarray(at, at + 1000)
        })(),
        keys,
        name,
      ),
    )
  let keys: BackupKeys
  beforeAll(async () => {
    keys = await BackupKeys.open(dir)
  })

  it.each([0, 1, 65_535, 65_536, 65_537, 300_000])('returns %i bytes', async (length) => {
    const sealed = await file(length, keys)
    expect(sealed.length).toBe(sealedBytes(length))
    expect((await open(sealed, keys)).equals(await whole(bytes(length)))).toBe(true)
  })

  it('refuses every kind of damage', async () => {
    const sealed = await file(200_000, keys)
    const chunk = 65_536 + 16
    const flipped = (at: number): Buffer => Buffer.from(sealed.map((byte, i) => (i === at ? byte ^ 1 : byte)))
    const damaged: Buffer[] = [
      ...[0, 20, 47, 48, 70_000, sealed.length - 1].map(flipped),
      ...[0, 10, 48, 48 + chunk, 48 + 2 * chunk, sealed.length - 1].map((end) => sealed.subarray(0, end)),
      Buffer.concat([sealed, Buffer.alloc(16)]),
      Buffer.concat([sealed.subarray(0, 48), sealed.subarray(48 + chunk)]),
      Buffer.concat([
        sealed.subarray(0, 48),
        sealed.subarray(48 + chunk, 48 + 2 * chunk),
        sealed.subarray(48, 48 + chunk),
      ]),
    ]
    for (const one of damaged) await expect(open(one, keys)).rejects.toMatchObject({ code: 'sealed_unusable' })
    await expect(open(sealed, keys, 'other')).rejects.toMatchObject({ code: 'sealed_unusable' })
  })

  it('names a missing key, and reads with one that was added', async () => {
    const folder = mkdtempSync(join(dir, 'other-'))
    const other = await BackupKeys.open(folder)
    const sealed = await file(10, keys)
    await expect(open(sealed, other)).rejects.toMatchObject({ code: 'sealed_key_missing' })
    // The operator has appended a key, and not restarted yet.
    const appended = `hpbk1_${Buffer.alloc(32, 7).toString('base64url')}`
    appendFileSync(join(folder, 'backup-keys'), `${appended}\n`)
    await other.learn(keys.texts)
    expect(readFileSync(join(folder, 'backup-keys'), 'utf8')).toContain(appended)
    expect(await open(sealed, other)).toHaveLength(10)
    expect(other.texts).toHaveLength(2)
    expect(other.current.id).not.toEqual(keys.current.id)
  })
})

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { usedBytes } from '../../base/testing/memory.js'
import { DatabaseMeter } from '../../telemetry/index.js'
import type { ServedDatabase } from '../deps.js'
import { RawClient, type Rig, startRig } from '../testing/rig.js'

const MIB = 2 ** 20

let rig: Rig
let meter: DatabaseMeter

const start = async (limits: Partial<ServedDatabase> = {}): Promise<void> => {
  meter = new DatabaseMeter()
  const usage = { usageOf: () => ({ meter, admission: { kind: 'open' as const } }) }
  rig = await startRig({ maxRequestBytes: 400 * MIB, maxEntryBytes: 2 ** 30, ...limits }, undefined, usage)
}

const client = (): Promise<RawClient> => new RawClient(rig.port).login()
const head = (name: string, key: string, bytes: number, count = 3): string =>
  `*${count}\r\n$${name.length}\r\n${name}\r\n$${key.length}\r\n${key}\r\n$${bytes}\r\n`
const write = (name: string, key: string, bytes: number): string => `${head(name, key, bytes)}${'x'.repeat(bytes)}\r\n`

async function whenWritable(socket: Socket): Promise<void> {
  const over = new AbortController()
  await Promise.race(['drain', 'close'].map((event) => once(socket, event, over))).catch(() => {})
  over.abort()
}

/** Sends this many bytes as fast as they are read, while the connection is open. */
async function pour({ socket }: RawClient, bytes: number): Promise<void> {
  const piece = Buffer.alloc(64 * 1024, 'x')
  for (let left = bytes; left > 0; left -= piece.length) {
    const isTaken = socket.write(left < piece.length ? piece.subarray(0, left) : piece)
    if (!isTaken && !socket.closed) await whenWritable(socket)
  }
}

/** Sends half a command and waits until the engine has most of that half. */
async function pourHalf(uploader: RawClient, asker: RawClient): Promise<void> {
  uploader.send(head('SET', 'a', 8 * MIB))
  await pour(uploader, 4 * MIB)
  await waitFor(async () => (await engineInput(asker)) > 3 * MIB, { what: 'the engine to get half of the value' })
}

/** Sends a command with a value of this many bytes. @returns the most bytes that were held meanwhile. */
async function heldBy(raw: RawClient, command: string, bytes: number, reply: string): Promise<number> {
  const before = usedBytes()
  let most = 0
  raw.send(command)
  for (let part = 1; part <= 4; part++) {
    await pour(raw, bytes / 4)
    // Measuring is expensive, because it collects all garbage twice.
    if (part % 2 === 0) most = Math.max(most, usedBytes())
  }
  await raw.send('\r\n').expect(reply)
  return most - before
}

/** Bytes that the engine has received so far. */
async function engineInput(asker: RawClient): Promise<number> {
  asker.send('INFO stats\r\n')
  const sent = /total_net_input_bytes:(\d+)\r\n[\s\S]*total_error_replies/
  await waitFor(() => sent.test(asker.received), { what: 'the statistics of the engine' })
  const bytes = Number(sent.exec(asker.received)?.[1])
  asker.received = ''
  return bytes
}

describe('a command with a large value', () => {
  beforeEach(() => start())

  it('is sent to the engine as it arrives, whatever its size, and blocks no other client', async () => {
    const bytes = 200 * MIB
    const [uploader, other] = [await client(), await client()]
    await other.send('PING\r\n').expect('+PONG\r\n')
    const [before, requestsBefore] = [usedBytes(), meter.month.requests]
    let most = 0
    uploader.send(head('SET', 'a', bytes))
    for (let part = 0; part < 10; part++) {
      await pour(uploader, bytes / 10)
      if (part % 3 === 2) most = Math.max(most, usedBytes())
      await other.send('PING\r\n').expect('+PONG\r\n')
    }
    await uploader.send('\r\n').expect('+OK\r\n')
    expect(most - before).toBeLessThan(16 * MIB)
    await other.send('STRLEN a\r\n').expect(`:${bytes}\r\n`)
    expect(meter.month.requests - requestsBefore).toBe(12)
    expect(meter.bytesIn).toBeGreaterThan(bytes)
  })

  it('keeps its place among other commands', async () => {
    const raw = await client()
    raw.send(`GET a\r\n${write('SET', 'a', 2 * MIB)}STRLEN a\r\nGET b\r\n${write('APPEND', 'a', MIB)}STRLEN a\r\n`)
    await raw.expect(`$-1\r\n+OK\r\n:${2 * MIB}\r\n$-1\r\n:${3 * MIB}\r\n:${3 * MIB}\r\n`)
    await raw.send(`CLIENT REPLY SKIP\r\n${write('SET', 'a', MIB)}STRLEN a\r\n`).expect(`:${MIB}\r\n`)
    await raw.send(`MULTI\r\n${write('SET', 'a', 2 * MIB)}STRLEN a\r\nEXEC\r\n`)
    await raw.expect(`+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:${2 * MIB}\r\n`)
  })

  it('can have several, and small ones after them', async () => {
    const raw = await client()
    const value = `$${MIB}\r\n${'y'.repeat(MIB)}\r\n`
    await raw.send(`${head('RPUSH', 'list', MIB, 5)}${'x'.repeat(MIB)}\r\n${value}$1\r\nz\r\n`).expect(':3\r\n')
    await raw.send('LRANGE list 2 2\r\nSET a ').expect('*1\r\n$1\r\nz\r\n')
    raw.send('b\r\n')
    await raw.expect('+OK\r\n')
  })

  it('may follow others that are not answered, and each gets its reply', async () => {
    const raw = await client()
    for (let sent = 0; sent < 40; sent++) raw.send(write('SET', 'a', MIB + sent))
    await raw
      .send(`STRLEN a\r\n${write('SET', 'a', MIB)}GET b\r\n`)
      .expect(`${'+OK\r\n'.repeat(40)}:${MIB + 39}\r\n+OK\r\n$-1\r\n`)
    raw.received = ''
    const before = meter.bytesIn
    rig.engine.signal('SIGSTOP')
    raw.send(`${write('SET', 'a', MIB)}${head('SET', 'a', 2 * MIB)}${'x'.repeat(MIB)}`)
    await waitFor(() => meter.bytesIn > before + MIB, { what: 'the first to be sent' })
    await rig.engine.kill()
    await rig.engine.start()
    raw.send(`${'x'.repeat(MIB)}\r\nGET b\r\n`)
    await waitFor(() => raw.received.endsWith('$-1\r\n'), { what: 'the replies' })
    expect(raw.received).toMatch(/^-[^\r]+\r\n(-[^\r]+|\+OK)\r\n\$-1\r\n$/)
  })

  it('is passed on in pieces wherever the limits can be checked before the value', async () => {
    const bytes = 24 * MIB
    const raw = await client()
    const script = "return redis.call('SET', KEYS[1], ARGV[1])"
    const evaluate = `*5\r\n$4\r\nEVAL\r\n$${script.length}\r\n${script}\r\n$1\r\n1\r\n$1\r\na\r\n$${bytes}\r\n`
    const setRange = `*4\r\n$8\r\nSETRANGE\r\n$1\r\na\r\n$1\r\n5\r\n$${bytes}\r\n`
    const cases = [
      [evaluate, '+OK\r\n'],
      [setRange, `:${bytes + 5}\r\n`],
      [`*5\r\n$4\r\nMSET\r\n$1\r\nb\r\n$1\r\n1\r\n$1\r\na\r\n$${bytes}\r\n`, '+OK\r\n'],
      [head('PUBLISH', 'news', bytes), ':0\r\n'],
    ]
    for (const [command, reply] of cases)
      expect(await heldBy(raw, command ?? '', bytes, reply ?? '')).toBeLessThan(12 * MIB)
    await raw.send('MULTI\r\n').expect('+OK\r\n')
    expect(await heldBy(raw, head('SET', 'a', bytes), bytes, '+QUEUED\r\n')).toBeLessThan(12 * MIB)
    await raw
      .send('CLIENT GETNAME\r\nSTRLEN a\r\nEXEC\r\n')
      .expect(`+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n$-1\r\n:${bytes}\r\n`)
  })

  it('is passed on in pieces on a pinned lane too', async () => {
    const bytes = 24 * MIB
    const raw = new RawClient(rig.port)
    raw.send('HELLO 3 AUTH default client-secret\r\n')
    await waitFor(() => raw.received.endsWith('modules\r\n*0\r\n'), { what: 'the reply to HELLO' })
    raw.received = ''
    await raw.send('CLIENT TRACKING ON\r\n').expect('+OK\r\n')
    expect(await heldBy(raw, head('SET', 'a', bytes), bytes, '+OK\r\n')).toBeLessThan(12 * MIB)
    await raw.send('STRLEN a\r\n').expect(`:${bytes}\r\n`)
  })

  it('of a script does not count as time of the script', async () => {
    await start({ scriptTimeoutMs: 250, scriptMsPerMinute: 60_000 })
    const raw = await client()
    raw.send(`*4\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n$${2 * MIB}\r\n`)
    await pour(raw, 2 * MIB)
    await raw.send('\r\nGET none\r\n').expect(':1\r\n$-1\r\n')
    expect(meter.month.requests).toBe(2)
  })

  it('leaves nothing behind when its client disconnects halfway', async () => {
    const [uploader, other] = [await client(), await client()]
    await pourHalf(uploader, other)
    uploader.socket.resetAndDestroy()
    await waitFor(() => rig.gateway.releaseEngines('db-one', 'when-unused'), { what: 'its connection to be closed' })
    await other.send('GET a\r\n').expect('$-1\r\n')
    expect(rig.complaints).toEqual([])
  })

  it('leaves nothing behind either when its client has gone before it could begin', async () => {
    await start({ maxCommandsPerSecond: 5 })
    const [raw, other] = [await client(), await client()]
    // The rate holds the command while the end of the connection arrives.
    raw.send(`PING\r\nPING\r\n${head('SET', 'a', 8 * MIB)}half of it`)
    raw.socket.end()
    await raw.expectClosed()
    other.send('CLIENT LIST\r\n')
    await waitFor(() => other.received.includes('cmd=client|list'), { what: 'the list of clients' })
    expect(other.received.match(/^id=/gm)).toHaveLength(1)
  })

  it('is answered with one error when the engine dies halfway, and later commands are served', async () => {
    const raw = await client()
    await pourHalf(raw, await client())
    await rig.engine.kill()
    await rig.engine.start()
    await pour(raw, 4 * MIB)
    raw.send('\r\nGET a\r\n')
    await waitFor(() => raw.received.endsWith('$-1\r\n'), { what: 'both replies' })
    expect(raw.received).toMatch(/^-ERR [^\r]+ Nothing was applied[^\r]+\r\n\$-1\r\n$/)
  })

  it('does not keep the connection of a client that stops sending it', async () => {
    await start({ idleTimeoutMs: 1_500 })
    const raw = await client()
    raw.send(head('SET', 'a', 8 * MIB))
    await pour(raw, MIB)
    await raw.expectClosed()
    await waitFor(() => rig.gateway.releaseEngines('db-one', 'when-unused'), { what: 'its lane to be closed' })
  })

  it('that turns out to be malformed closes the connection with one protocol error', async () => {
    const raw = await client()
    raw.send(`${write('SET', 'a', MIB).replace('*3', '*4')}nonsense`)
    await raw.expect("-ERR Protocol error: expected '$', got 'n'\r\n")
    await raw.expectClosed()
    await (await client()).send('GET a\r\n').expect('$-1\r\n')
  })
})

describe('the limits of a command with a large value', () => {
  it('are checked before a byte of it is sent to the engine', async () => {
    await start({ maxRequestBytes: 16 * MIB, maxEntryBytes: 4 * MIB })
    const [raw, other] = [await client(), await client()]
    const before = await engineInput(other)
    const bytes = 5 * MIB
    const refusal = `-ERR max single record size exceeded. Limit: ${4 * MIB} bytes, Actual: ${bytes} bytes\r\n`
    await raw.send(`${write('SET', 'a', bytes)}PING\r\n`).expect(`${refusal}+PONG\r\n`)
    expect((await engineInput(other)) - before).toBeLessThan(MIB)
  })

  it('include the earlier size of the entry', async () => {
    await start({ maxRequestBytes: 16 * MIB, maxEntryBytes: 4 * MIB })
    const raw = await client()
    await raw.send(write('APPEND', 'a', 3 * MIB)).expect(`:${3 * MIB}\r\n`)
    raw.send(`${write('APPEND', 'a', 2 * MIB)}STRLEN a\r\n`)
    await waitFor(() => raw.received.endsWith(`:${3 * MIB}\r\n`), { what: 'both replies' })
    expect(raw.received).toMatch(/^-ERR max single record size exceeded\. /)
  })

  it('also abort it when a later value is too long', async () => {
    await start({ maxRequestBytes: 3 * MIB })
    const raw = await client()
    const value = `$${2 * MIB}\r\n${'y'.repeat(2 * MIB)}\r\n`
    raw.send(`${head('RPUSH', 'list', 2 * MIB, 4)}${'x'.repeat(2 * MIB)}\r\n${value}EXISTS list\r\n`)
    await waitFor(() => raw.received.endsWith(':0\r\n'), { what: 'both replies' })
    expect(raw.received).toMatch(/^-ERR max request size exceeded\. Limit: 3145728 bytes, Actual: \d+ bytes\r\n:0\r\n$/)
    expect(meter.month.requests).toBe(1)
  })
})

import { createConnection, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { usedBytes } from '../../base/testing/memory.js'
import { DatabaseMeter } from '../../telemetry/index.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

const MIB = 2 ** 20

const setCommand = (key: string, value: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`*3\r\n$3\r\nSET\r\n$${key.length}\r\n${key}\r\n$${value.length}\r\n`), value, CRLF])
const CRLF = Buffer.from('\r\n')
/** Short replies after which many commands of a client may be pending. */
const WIDENED_BY = 2_000

describe('an engine that does not read', () => {
  it.each([
    ['1 MiB', MIB],
    ['100 KB', 100_000],
  ])('makes clients with values of %s wait, and gets all of them once it reads', async (_size, bytes) => {
    const rig = await startRig()
    const COMMANDS = Math.ceil((100 * MIB) / bytes)
    const command = setCommand('a', Buffer.alloc(bytes, 'v'))
    const raw = await new RawClient(rig.port).login()
    const idle = await new RawClient(rig.port).login()
    rig.engine.signal('SIGSTOP')
    let taken = 0
    // One after the other: Node would pass all that waits to the system together.
    const sendNext = (): void => {
      if (taken < COMMANDS) raw.socket.write(command, () => ++taken && sendNext())
    }
    sendNext()
    let before = 0
    const isStuck = (): boolean => {
      const isSame = taken > 0 && taken === before
      before = taken
      return isSame
    }
    await waitFor(isStuck, { what: 'the client to wait', everyMs: 250 })
    expect(taken * bytes).toBeLessThan(48 * MIB)
    await idle.send('SELECT 0\r\n').expect('+OK\r\n')
    rig.engine.signal('SIGCONT')
    const replies = '+OK\r\n'.repeat(COMMANDS)
    await waitFor(() => raw.received.length >= replies.length, { what: 'every reply' })
    expect(raw.received).toBe(replies)
  })
})

/** A client that reads only on request, and compares everything it reads with one value. */
class Reader {
  readonly socket: Socket
  readonly #reply: Buffer
  #read = 0
  #target = Number.POSITIVE_INFINITY
  /** Whether everything read so far was correct. */
  isRight = true

  constructor(port: number, value: Buffer) {
    this.#reply = Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, CRLF])
    this.socket = createConnection({ port, host: '127.0.0.1' })
    this.socket.write(`AUTH ${CREDENTIALS.password}\r\n`)
    this.socket.on('error', () => {})
    atCleanup(() => void this.socket.destroy())
  }

  /** Complete replies that were read. */
  get replies(): number {
    return Math.floor(this.#read / this.#reply.length)
  }

  /** Logs in, requests the value this many times, and stops reading. Reads `first` short replies before that. */
  async ask(key: string, times: number, first = 0): Promise<void> {
    await new Promise((resolve) => this.socket.once('data', resolve))
    await this.#ping(first)
    this.socket.on('data', (chunk: Buffer) => this.#check(chunk)).pause()
    this.socket.write(`GET ${key}\r\n`.repeat(times))
  }

  /** Reads until it has at least this many replies in all, or is disconnected. */
  async readUntil(count: number): Promise<void> {
    this.#target = count
    this.socket.resume()
    const done = (): boolean => this.replies >= count || this.socket.closed
    await waitFor(done, { what: `${count} replies` })
  }

  async #ping(times: number): Promise<void> {
    let bytes = 0
    const count = (chunk: Buffer): void => {
      bytes += chunk.length
    }
    this.socket.on('data', count).write('PING\r\n'.repeat(times))
    await waitFor(() => bytes === '+PONG\r\n'.length * times, { what: 'the short replies' })
    this.socket.off('data', count)
  }

  #check(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const from = this.#read % this.#reply.length
      const length = Math.min(chunk.length - at, this.#reply.length - from)
      if (chunk.compare(this.#reply, from, from + length, at, at + length) !== 0) this.isRight = false
      this.#read += length
      at += length
    }
    if (this.replies >= this.#target) this.socket.pause()
  }
}

describe('a client that does not read', () => {
  const startBounded = (lostBytes: number, meter = new DatabaseMeter()): Promise<Rig> => {
    const usage = { usageOf: () => ({ meter, admission: { kind: 'open' as const } }) }
    return startRig({}, undefined, usage, [], { readerBounds: { slowBytes: MIB / 4, lostBytes } })
  }
  /** Every position and every value differs, so a byte at a wrong place is noticed. */
  const value = (letter: string, bytes: number): Buffer =>
    Buffer.concat(Array.from({ length: bytes / 8 }, (_, index) => Buffer.from(letter + index.toString().padStart(7))))

  it('gets no more replies on a shared lane than it may leave unread, and all of them later', async () => {
    const rig = await startBounded(16 * MIB)
    const other = await new RawClient(rig.port).login()
    await other.send(setCommand('a', value('a', MIB))).expect('+OK\r\n')
    const reader = new Reader(rig.port, value('a', MIB))
    await reader.ask('a', 64)
    for (let count = 16; count <= 64; count += 16) {
      await other.send('PING\r\n').expect('+PONG\r\n')
      await reader.readUntil(count)
    }
    expect(reader).toMatchObject({ replies: 64, isRight: true })
    expect(rig.complaints).toEqual([])
  })

  it('is disconnected on a shared lane once it has left too much unread', async () => {
    const rig = await startBounded(4 * MIB)
    const other = await new RawClient(rig.port).login()
    await other.send(setCommand('a', value('a', MIB))).expect('+OK\r\n')
    const reader = new Reader(rig.port, value('a', MIB))
    await other.send('PING\r\n').expect('+PONG\r\n')
    const before = usedBytes()
    await reader.ask('a', 64, WIDENED_BY)
    const isCut = (): boolean => rig.complaints.includes('a client that does not read its replies was disconnected')
    await waitFor(isCut, { what: 'the client to be disconnected' })
    await other.send('PING\r\n').expect('+PONG\r\n')
    expect(usedBytes() - before).toBeLessThan(8 * MIB)
  })

  it('gets a dedicated lane that waits for it, and the right bytes however slowly it reads', async () => {
    const meter = new DatabaseMeter()
    const rig = await startBounded(512 * MIB, meter)
    const other = await new RawClient(rig.port).login()
    await other.send(setCommand('a', value('a', MIB / 2))).expect('+OK\r\n')
    const reader = new Reader(rig.port, value('a', MIB / 2))
    const before = usedBytes()
    await reader.ask('a', 200)
    // The first window of replies is more than the system takes.
    await waitFor(() => meter.bytesOut > 16 * MIB, { what: 'the client to be slow' })
    for (let count = 40; count < 200; count += 40) {
      await reader.readUntil(count)
      await other.send('PING\r\n').expect('+PONG\r\n')
      expect(usedBytes() - before).toBeLessThan(8 * MIB)
    }
    await reader.readUntil(200)
    expect(reader).toMatchObject({ replies: 200, isRight: true })
    expect(rig.complaints).toEqual([])
  })

  it('never gets bytes of another client, in any order of reading', async () => {
    const rig = await startBounded(4 * MIB)
    const other = await new RawClient(rig.port).login()
    const letters = ['a', 'b', 'c', 'd', 'e', 'f']
    const readers = letters.map((letter, index) => new Reader(rig.port, value(letter, 3_200 * 4 ** index)))
    for (const [index, letter] of letters.entries()) {
      await other.send(setCommand(letter, value(letter, 3_200 * 4 ** index))).expect('+OK\r\n')
    }
    await Promise.all(readers.map((reader, index) => reader.ask(letters[index] ?? '', 25)))
    await other.send('PING\r\n').expect('+PONG\r\n')
    for (const reader of readers) {
      await reader.readUntil(25)
      expect(reader.isRight).toBe(true)
    }
    expect(readers.filter(({ replies }) => replies === 25).length).toBeGreaterThan(3)
  })
})

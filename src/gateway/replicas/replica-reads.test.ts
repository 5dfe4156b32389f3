import { beforeEach, describe, expect, it } from 'vitest'
import { HomeportError } from '../../contract/errors/errors.js'
import type { EngineLink } from '../engine/engine-link.js'
import { encodeCommand } from '../resp/encode.js'
import type { ReplicaLane } from './replica-lane.js'
import { type PendingRead, ReplicaReads } from './replica-reads.js'

let delivered: string
let home: readonly PendingRead[]
let failures: number
let reads: ReplicaReads

beforeEach(() => {
  delivered = ''
  home = []
  failures = 0
  // Nothing is sent: the tests write the replies.
  const lane = {
    link: { send: () => {} } as unknown as EngineLink,
    watch: { sent: () => {} },
  } as unknown as ReplicaLane
  reads = new ReplicaReads(lane, {
    deliverReply: (chunk, start, end) => (delivered += chunk.toString('latin1', start, end)),
    retryOnPrimary: (pending) => (home = pending),
    fail: () => failures++,
  })
})

function send(...keys: readonly string[]): void {
  const bytes = Buffer.concat(keys.map((key) => encodeCommand(['GET', key])))
  reads.send(bytes, 0, bytes.length, keys.length)
}

function answer(text: string): void {
  const bytes = Buffer.from(text)
  reads.deliver(bytes, 0, bytes.length, 1)
}

const textOf = (item: PendingRead | undefined): string =>
  item?.kind === 'reads' ? item.bytes.toString('latin1', item.start, item.end) : `note ${item?.bytes}`

describe('reads that are pending on the replica', () => {
  it('are answered in order, with notes in place', () => {
    send('a', 'b')
    reads.note(Buffer.from('+note\r\n'))
    send('c')
    answer('$1\r\n1\r\n')
    expect(delivered).toBe('$1\r\n1\r\n')
    answer('$1\r\n2\r\n')
    answer('$-1\r\n')
    reads.note(Buffer.from('+last\r\n'))
    expect(delivered).toBe('$1\r\n1\r\n$1\r\n2\r\n+note\r\n$-1\r\n+last\r\n')
  })

  it.each(['-LOADING Redis is loading the dataset in memory\r\n', '-MASTERDOWN Link with MASTER is down\r\n'])(
    'go to the primary from the first one that is answered with %j, and later replies of the replica are ignored',
    (refusal) => {
      send('a', 'b', 'c')
      reads.note(Buffer.from('+note\r\n'))
      send('d')
      answer('$1\r\n1\r\n')
      answer(refusal)
      answer('$1\r\n3\r\n')
      reads.fail(1, new HomeportError('engine_lost', {}), false)
      expect(delivered).toBe('$1\r\n1\r\n')
      const rest = [encodeCommand(['GET', 'b']), encodeCommand(['GET', 'c'])].join('')
      expect(home.map(textOf)).toEqual([rest, 'note +note\r\n', encodeCommand(['GET', 'd']).toString()])
      expect(home[0]).toMatchObject({ count: 2 })
    },
  )

  it('go to the primary when the connection is lost, unless part of a reply was delivered', () => {
    send('a', 'b')
    reads.fail(2, new HomeportError('engine_lost', {}), false)
    expect([home.length, failures]).toEqual([1, 0])
  })

  it('fail when part of a reply was delivered, which cannot be undone', () => {
    send('a', 'b')
    const bytes = Buffer.from('$10\r\nab')
    reads.deliver(bytes, 0, bytes.length, 0)
    reads.fail(2, new HomeportError('engine_lost', {}), true)
    expect([home.length, failures]).toEqual([0, 1])
  })

  it('may have ordinary errors as replies', () => {
    send('a')
    answer('-WRONGTYPE Operation against a key holding the wrong kind of value\r\n')
    expect([delivered.slice(0, 10), home.length]).toEqual(['-WRONGTYPE', 0])
  })
})

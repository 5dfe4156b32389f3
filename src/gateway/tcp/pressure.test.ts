import { describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { RawClient, startRig } from '../testing/rig.js'

const MIB = 2 ** 20

const setCommand = (key: string, value: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`*3\r\n$3\r\nSET\r\n$${key.length}\r\n${key}\r\n$${value.length}\r\n`), value, CRLF])
const CRLF = Buffer.from('\r\n')

describe('an engine that does not read', () => {
  it('makes clients wait, is sent no more than a bound for them, and gets everything once it reads', async () => {
    const rig = await startRig()
    const COMMANDS = 150
    const command = setCommand('a', Buffer.alloc(MIB, 'v'))
    const raw = await new RawClient(rig.port).login()
    const idle = await new RawClient(rig.port).login()
    rig.engine.signal('SIGSTOP')
    const sentBefore = raw.socket.bytesWritten - raw.socket.writableLength
    for (let count = 0; count < COMMANDS; count++) raw.send(command)
    let taken = -1
    const isStuck = (): boolean => {
      const before = taken
      taken = raw.socket.bytesWritten - raw.socket.writableLength - sentBefore
      return taken > 0 && taken === before
    }
    await waitFor(isStuck, { what: 'the client to be made to wait', everyMs: 250 })
    expect(taken).toBeLessThan(48 * MIB)
    await idle.send('SELECT 0\r\n').expect('+OK\r\n')
    rig.engine.signal('SIGCONT')
    const replies = '+OK\r\n'.repeat(COMMANDS)
    await waitFor(() => raw.received.length >= replies.length, { what: 'every reply', deadlineMs: 25_000 })
    expect(raw.received).toBe(replies)
  })
})

import { Redis } from 'iovalkey'
import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, smallDisk, waitFor } from '../../../test/support/index.js'
import { COMMANDS } from '../../contract/databases/commands.js'
import { ENGINE_PASSWORDS, startEngine } from '../testing/engine.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'
import { needsSpace } from './command-effect.js'

const FULL =
  'ERR The disk of the server is nearly full, so databases refuse writes that add data. Reads and deletes still work: ' +
  'delete data, or ask the operator to free space on the disk of the data directory.'

/** Commands for which the engine's flag does not count: it covers a whole container, and a script may do anything. */
const NOT_BY_FLAG = ['EVAL', 'EVALSHA', 'FCALL', 'FUNCTION', 'XGROUP']

describe('without space on the disk', () => {
  let hasSpace = true
  let rig: Rig

  beforeAll(async () => {
    rig = await startRig({}, undefined, undefined, [], { hasSpace: () => hasSpace })
  })

  const rest = async (path: string, body: unknown): Promise<{ status: number; body: unknown }> => {
    const headers = { authorization: `Bearer ${CREDENTIALS.token}` }
    const response = await fetch(rig.restUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, body: await response.json() }
  }

  it('writes that add data are refused with the reason; reads, deletions and scripts still work', async () => {
    hasSpace = true
    const raw = await new RawClient(rig.port).login()
    await raw.send('MSET a 1 b 2 c 3\r\nHSET h f v\r\n').expect('+OK\r\n:1\r\n')
    hasSpace = false
    await raw.send('SET d 4\r\nHSET h g w\r\nINCR a\r\n').expect(`-${FULL}\r\n`.repeat(3))
    await raw
      .send('GET a\r\nDEL a\r\nUNLINK b\r\nHDEL h f\r\nEXPIRE c 0\r\n')
      .expect('$1\r\n1\r\n:1\r\n:1\r\n:1\r\n:1\r\n')
    await raw.send("EVAL \"return redis.call('DEL','c')\" 0\r\nFLUSHALL\r\nPING\r\n").expect(':0\r\n+OK\r\n+PONG\r\n')
    hasSpace = true
    await raw.send('SET d 4\r\n').expect('+OK\r\n')
  })

  it('a transaction that adds data is discarded', async () => {
    hasSpace = false
    const raw = await new RawClient(rig.port).login()
    await raw.send('MULTI\r\nDEL a\r\nSET a 1\r\nEXEC\r\n').expect(`+OK\r\n+QUEUED\r\n-${FULL}\r\n-EXECABORT`)
  })

  it('REST answers 503 for a command, and in its slot of a pipeline', async () => {
    hasSpace = false
    expect(await rest('/', ['SET', 'k', 'v'])).toEqual({ status: 503, body: { error: FULL } })
    const commands = [['DEL', 'k'], ['SET', 'k', 'v'], ['DBSIZE']]
    const replies = [{ result: 0 }, { error: FULL }, { result: expect.any(Number) }]
    expect(await rest('/pipeline', commands)).toEqual({ status: 200, body: replies })
  })

  it('a large value is refused before it arrives', async () => {
    hasSpace = false
    const raw = await new RawClient(rig.port).login()
    raw.send(`*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3000000\r\n${'x'.repeat(3_000_000)}\r\nPING\r\n`)
    await raw.expect(`-${FULL}\r\n+PONG\r\n`)
  })
})

describe('an engine that has no space to write', () => {
  it('reports it to the owner of the disk', async (context) => {
    let lacks = 0
    const settings = ['--appendonly', 'yes', '--dir', smallDisk(context, 2)]
    const rig = await startRig({}, undefined, undefined, settings, { onLackOfSpace: () => void lacks++ })
    const raw = await new RawClient(rig.port).login()
    const isReported = (): boolean => {
      raw.send(`*3\r\n$3\r\nSET\r\n$7\r\nfilling\r\n$200000\r\n${'x'.repeat(200_000)}\r\n`.repeat(5))
      return lacks > 0
    }
    await waitFor(isReported, { what: 'the report of the engine', everyMs: 100 })
    expect(raw.received).toContain('-MISCONF')
  })
})

it('the gateway agrees with the flags of the engine about every command that writes', async () => {
  const { socketPath } = await startEngine()
  const engine = new Redis({ path: socketPath, username: 'default', password: ENGINE_PASSWORDS.default })
  atCleanup(() => engine.disconnect())
  const listed = (await engine.call('COMMAND')) as [name: string, arity: number, flags: string[]][]
  const flags = new Map(listed.map(([name, , marks]) => [name.toUpperCase(), marks]))
  const differing = COMMANDS.filter((command) => {
    const marks = flags.get(command.name)
    if (!marks || !command.allowed || command.access !== 'write' || NOT_BY_FLAG.includes(command.name)) return false
    return marks.includes('denyoom') !== needsSpace(command)
  })
  expect(differing.map(({ name }) => name)).toEqual([])
})

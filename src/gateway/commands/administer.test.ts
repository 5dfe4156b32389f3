import { beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Administration } from '../deps.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'
import { filterInfo } from './administer.js'

/** How long ACL USERS blocks in this test, as it does where many users have long patterns. */
const WORK_MS = 2

function workFor(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

let rig: Rig

const administration: Administration = {
  run: async ({ name }) => {
    if (name !== 'ACL|USERS') throw new HomeportError('command_not_available', { name })
    workFor(WORK_MS)
    return { kind: 'ok' }
  },
  refusalToAsk: ({ user, name }) =>
    user === 'default' || name === 'INFO'
      ? undefined
      : new HomeportError('command_forbidden', { name: name.toLowerCase() }),
}

beforeAll(async () => {
  rig = await startRig({}, undefined, undefined, ['--slowlog-log-slower-than', '0'], { administration })
})

/** The replies to these lines, without that to the last ECHO. */
async function answers(lines: string, login = `AUTH ${CREDENTIALS.password}\r\n`): Promise<string> {
  const raw = new RawClient(rig.port)
  await raw.send(login).expect('+OK\r\n')
  raw.send(`${lines}ECHO end\r\n`)
  await waitFor(() => raw.received.endsWith('$3\r\nend\r\n'), { what: 'the last reply' })
  return raw.received.slice(0, -9)
}

async function overRest(path: string, body: unknown): Promise<unknown> {
  const headers = { authorization: `Bearer ${CREDENTIALS.token}` }
  return (await fetch(rig.restUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
}

describe('many commands about the database', () => {
  const COUNT = 250

  it.each([
    ['in a pipeline', 'ACL USERS\r\n'.repeat(COUNT), '+OK\r\n'.repeat(COUNT)],
    [
      'in a transaction',
      `MULTI\r\n${'ACL USERS\r\n'.repeat(COUNT)}EXEC\r\n`,
      `+OK\r\n${'+QUEUED\r\n'.repeat(COUNT)}*${COUNT}\r\n${'+OK\r\n'.repeat(COUNT)}`,
    ],
  ])('let others run in between %s', async (_, commands, replies) => {
    const [busy, other] = [await new RawClient(rig.port).login(), await new RawClient(rig.port).login()]
    busy.send(commands)
    await waitFor(() => busy.received !== '', { what: 'the first reply' })
    await other.send('ECHO a\r\n').expect('$1\r\na\r\n')
    expect(busy.received.length).toBeLessThan(replies.length)
    await busy.expect(replies)
  })

  it('let others run in between over REST', async () => {
    let isAnswered = false
    const answer = overRest(
      '/pipeline',
      Array.from({ length: COUNT }, () => ['ACL', 'USERS']),
    ).finally(() => {
      isAnswered = true
    })
    expect(await overRest('/', ['PING'])).toEqual({ result: 'PONG' })
    expect(isAnswered).toBe(false)
    expect(await answer).toHaveLength(COUNT)
  })
})

describe('a command about the engine', () => {
  it('is answered after earlier commands of the client, in order, also in a transaction', async () => {
    const before = await answers('CONFIG RESETSTAT\r\nSET a 1\r\nSET a 2\r\nINFO commandstats\r\nGET a\r\n')
    expect(before).toMatch(
      /^\+OK\r\n\+OK\r\n\+OK\r\n\$\d+\r\n# Commandstats\r\n[\s\S]*cmdstat_set:calls=2,[\s\S]*\$1\r\n2\r\n$/,
    )
    const inside = await answers('MULTI\r\nINCR n\r\nINFO keyspace\r\nROLE\r\nINCR n\r\nEXEC\r\n')
    expect(inside).toMatch(
      /^\+OK\r\n(?:\+QUEUED\r\n){4}\*4\r\n:1\r\n\$\d+\r\n# Keyspace\r\ndb0:[^$]*\*3\r\n\$6\r\nmaster\r\n:\d+\r\n\*0\r\n:2\r\n$/,
    )
    expect(await answers('MULTI\r\nINFO\r\nNOSUCH\r\nEXEC\r\n')).toMatch(
      /^\+OK\r\n\+QUEUED\r\n-ERR unknown[^$]*-EXECABORT/,
    )
  })

  it('hides addresses of engines and commands of Homeport itself', async () => {
    await answers('SET slow 1\r\n')
    const log = await answers('SLOWLOG GET 100\r\nSLOWLOG LEN\r\nSLOWLOG HELP\r\n')
    expect(log).toContain('$3\r\nSET\r\n$4\r\nslow\r\n$1\r\n1\r\n$9\r\n0.0.0.0:0\r\n')
    expect(log).not.toMatch(/unix:|\.sock|HELLO|observer/)
    expect(await answers('ACL DRYRUN homeport-control get x\r\n')).toBe("-ERR User 'homeport-control' not found\r\n")
    expect(await answers('ACL DRYRUN default get x\r\nLATENCY LATEST\r\nMEMORY DOCTOR\r\n')).toMatch(
      /^\+OK\r\n\*0\r\n\$\d+/,
    )
  })

  it('needs the permission for it', async () => {
    const login = `AUTH default_ro ${CREDENTIALS.readerPassword}\r\n`
    expect(await answers('INFO keyspace\r\n', login)).toMatch(/^\$\d+\r\n# Keyspace/)
    expect(await answers('SLOWLOG GET\r\n', login)).toBe(
      "-NOPERM this user has no permissions to run the 'slowlog' command\r\n",
    )
  })

  it('keeps its place in a REST pipeline', async () => {
    const found = await overRest('/pipeline', [
      ['SET', 'rest', '1'],
      ['INFO', 'keyspace'],
      ['LASTSAVE'],
      ['GET', 'rest'],
    ])
    expect(found).toEqual([
      { result: 'OK' },
      { result: expect.stringContaining('db0:keys=') },
      { result: expect.any(Number) },
      { result: '1' },
    ])
    expect(await overRest('/multi-exec', [['ROLE'], ['GET', 'rest']])).toEqual([
      { result: ['master', expect.any(Number), []] },
      { result: '1' },
    ])
    expect(await overRest('/', ['COMMAND', 'COUNT'])).toEqual({ result: expect.any(Number) })
  })
})

it('INFO hides the sockets of an engine and the addresses of its replicas', () => {
  const text = [
    '# Server',
    'redis_version:7.2.4',
    'server_name:valkey',
    'valkey_version:9.1.2',
    'listener0:name=tcp,bind=127.0.0.1,port=4711',
    'listener1:name=unix,bind=/srv/homeport/run/x.sock',
    'slave0:ip=eu-west-1,port=0,state=online',
    'connected_slaves:1',
  ]
  const shown = ['# Server', 'redis_version:7.2.4', 'server_name:valkey', 'valkey_version:9.1.2', 'connected_slaves:1']
  expect(filterInfo(text.join('\r\n'))).toBe(shown.join('\r\n'))
})

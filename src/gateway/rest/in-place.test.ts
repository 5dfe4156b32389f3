import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Administration } from '../deps.js'
import { post, run } from '../testing/limited.js'
import { CREDENTIALS, type Rig, startRig } from '../testing/rig.js'

let rig: Rig
/** The values that the commands about the database found in the key `seen` when they ran. */
let found: unknown[] = []

const administration: Administration = {
  run: async ({ name, args }) => {
    if (name === 'ACL|SETUSER') throw new HomeportError('command_malformed', { problem: 'a wrong rule' })
    found.push((await run(rig, 'GET', 'seen')).body)
    return { kind: 'list', items: args.map((text) => ({ kind: 'text', text })) }
  },
  refusalToAsk: () => undefined,
}

beforeAll(async () => {
  rig = await startRig({}, undefined, undefined, [], { administration })
})

beforeEach(async () => {
  found = []
  await run(rig, 'FLUSHALL')
})

async function resp2(path: string, body: unknown): Promise<string> {
  const headers = { authorization: `Bearer ${CREDENTIALS.token}`, 'upstash-response-format': 'resp2' }
  const response = await fetch(rig.restUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
  expect(response.status).toBe(200)
  return response.text()
}

describe('commands about the database itself', () => {
  it('run in a pipeline after the commands before them and answer in their slots', async () => {
    const answer = await post(rig, '/pipeline', [
      ['SET', 'seen', 1],
      ['CONFIG', 'GET', 'notify-keyspace-events'],
      ['INCR', 'seen'],
      ['ACL', 'SETUSER', 'x', 'odd'],
      ['ACL', 'GETUSER', 'y'],
      ['NOSUCH'],
      ['CLIENT', 'ID'],
      ['GET', 'seen'],
    ])
    expect(answer).toEqual({
      status: 200,
      body: [
        { result: 'OK' },
        { result: ['notify-keyspace-events'] },
        { result: 2 },
        { error: 'ERR a wrong rule' },
        { result: ['y'] },
        { error: "ERR unknown command 'NOSUCH', with args beginning with: " },
        { error: expect.stringMatching(/^ERR Command "CLIENT" is not allowed in REST/) },
        { result: '2' },
      ],
    })
    expect(found).toEqual([{ result: '1' }, { result: '2' }])
  })

  it('run after a transaction and answer in their slots', async () => {
    const answer = await post(rig, '/multi-exec', [
      ['CONFIG', 'GET', 'a', 'b'],
      ['SET', 'seen', 1],
      ['ACL', 'SETUSER', 'x', 'odd'],
      ['INCR', 'seen'],
    ])
    const body = [{ result: ['a', 'b'] }, { result: 'OK' }, { error: 'ERR a wrong rule' }, { result: 2 }]
    expect(answer).toEqual({ status: 200, body })
    expect(found).toEqual([{ result: '2' }])
    expect((await post(rig, '/multi-exec', [['ACL', 'GETUSER', 'only']])).body).toEqual([{ result: ['only'] }])
  })

  it('do not run when the transaction is discarded, and discard it when they are malformed', async () => {
    const discarded = await post(rig, '/multi-exec', [['ACL', 'GETUSER', 'x'], ['GET']])
    expect(discarded.status).toBe(400)
    const malformed = await post(rig, '/multi-exec', [
      ['SET', 'seen', 1],
      ['ACL', 'GETUSER'],
    ])
    const error = "ERR wrong number of arguments for 'acl|getuser' command"
    expect(malformed).toEqual({ status: 400, body: { error } })
    expect(found).toEqual([])
    expect((await run(rig, 'EXISTS', 'seen')).body).toEqual({ result: 0 })
  })
})

describe('INFO', () => {
  const HOST = /executable|config_file|process_id|tcp_port/

  it.each(['/pipeline', '/multi-exec'])(
    'hides the host in %s and leaves the replies around it intact',
    async (path) => {
      const { body } = await post(rig, path, [
        ['SET', 'a', 'b'],
        ['INFO', 'server'],
        ['GET', 'a'],
        ['INFO', 'nosuch'],
      ])
      const results = (body as { result: string }[]).map(({ result }) => result)
      expect(results).toEqual(['OK', expect.stringMatching(/^# Server\r\nredis_version/), 'b', '# Nosuch\r\n'])
      expect(JSON.stringify(body)).not.toMatch(HOST)
    },
  )

  it('hides the host in RESP2', async () => {
    const single = await resp2('/', ['INFO', 'server'])
    expect(single).toMatch(/^\$\d+\r\n# Server\r\nredis_version/)
    expect(single).not.toMatch(HOST)
    const pipeline = await resp2('/pipeline', [['PING'], ['INFO', 'server'], ['PING']])
    expect(pipeline).toMatch(/^\+PONG\r\n\$\d+\r\n# Server\r\n[\s\S]*\+PONG\r\n$/)
    expect(pipeline).not.toMatch(HOST)
  })
})

it('a pipeline in RESP2 has a reply for every command, including refused ones', async () => {
  const replies = await resp2('/pipeline', [
    ['SET', 'a', 1],
    ['NOSUCH'],
    ['ACL', 'GETUSER', 'x'],
    ['GET', 'a'],
    ['GET'],
  ])
  expect(replies).toBe(
    "+OK\r\n-ERR unknown command 'NOSUCH', with args beginning with: \r\n*1\r\n$1\r\nx\r\n$1\r\n1\r\n-ERR wrong number of arguments for 'get' command\r\n",
  )
  expect(await resp2('/pipeline', [['NOSUCH']])).toBe("-ERR unknown command 'NOSUCH', with args beginning with: \r\n")
})

describe('SELECT', () => {
  it('accepts the only database, like an engine', async () => {
    expect(await run(rig, 'SELECT', '0')).toEqual({ status: 200, body: { result: 'OK' } })
    expect(await run(rig, 'select', 0)).toEqual({ status: 200, body: { result: 'OK' } })
    expect(await run(rig, 'SELECT', 1)).toEqual({ status: 400, body: { error: 'ERR DB index is out of range' } })
    const problem = "ERR wrong number of arguments for 'select' command"
    expect(await run(rig, 'SELECT')).toEqual({ status: 400, body: { error: problem } })
    const commands = [
      ['SET', 'a', 1],
      ['SELECT', '0'],
      ['SELECT', 'x'],
      ['INCR', 'a'],
    ]
    const results = [
      { result: 'OK' },
      { result: 'OK' },
      { error: 'ERR value is not an integer or out of range' },
      { result: 2 },
    ]
    expect((await post(rig, '/pipeline', commands)).body).toEqual(results)
    expect((await post(rig, '/multi-exec', commands)).body).toEqual(results)
    expect((await post(rig, '/multi-exec', [['SELECT']])).body).toEqual({ error: problem })
  })
})

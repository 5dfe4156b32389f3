import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Administration, AdministrationRequest } from '../deps.js'
import { frame } from '../testing/limited.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig
let asked: AdministrationRequest[] = []

/** Answers late, so that anything that does not wait for it comes first. */
const administration: Administration = {
  run: async (request) => {
    await new Promise((resolve) => setImmediate(resolve))
    asked.push(request)
    if (request.name === 'ACL|SETUSER') throw new HomeportError('command_malformed', { problem: 'a wrong rule' })
    return { kind: 'list', items: request.args.map((text) => ({ kind: 'text', text })) }
  },
  refusalToAsk: () => undefined,
}

beforeAll(async () => {
  rig = await startRig({}, undefined, undefined, [], { administration })
})

beforeEach(() => {
  asked = []
})

const client = (): Promise<RawClient> => new RawClient(rig.port).login()
const queued = (count: number): string => '+QUEUED\r\n'.repeat(count)
const EXECABORT = '-EXECABORT Transaction discarded because of previous errors.\r\n'

/** Waits until the received text ends with `end`, and takes all of it. */
async function take(raw: RawClient, end: string): Promise<string> {
  await waitFor(() => raw.received.endsWith(end), { what: `the end ${JSON.stringify(end)}` })
  const { received } = raw
  raw.received = ''
  return received
}

describe('commands that the gateway answers, in a transaction', () => {
  it('are queued, and answered in their places', async () => {
    const raw = await client()
    raw.send(
      'CLIENT GETNAME\r\nMULTI\r\nCLIENT SETNAME me\r\nSET a 1\r\nINCR a\r\nCLIENT GETNAME\r\nSELECT 0\r\nSELECT 1\r\n',
    )
    raw.send('CONFIG GET notify-keyspace-events\r\nINCR a\r\nEXEC\r\nCLIENT GETNAME\r\n')
    const settings = '*1\r\n$22\r\nnotify-keyspace-events\r\n'
    await raw.expect(
      `$-1\r\n+OK\r\n${queued(8)}*8\r\n+OK\r\n+OK\r\n:2\r\n$2\r\nme\r\n+OK\r\n-ERR DB index is out of range\r\n${settings}:3\r\n$2\r\nme\r\n`,
    )
  })

  it('can be its only commands', async () => {
    const raw = await client()
    raw.send('MULTI\r\nCLIENT GETNAME\r\nEXEC\r\nMULTI\r\nEXEC\r\nPING\r\n')
    await raw.expect('+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n+OK\r\n*0\r\n+PONG\r\n')
  })

  it('hide the host in INFO, at every place', async () => {
    const raw = await client()
    raw.send('MULTI\r\nGET none\r\nINFO server\r\nINFO nosuch\r\nECHO x\r\nEXEC\r\n')
    const reply = await take(raw, '$1\r\nx\r\n')
    expect(reply).toMatch(/^\+OK\r\n(\+QUEUED\r\n){4}\*4\r\n\$-1\r\n\$\d+\r\n# Server\r\nredis_version:/)
    expect(reply).toContain('$10\r\n# Nosuch\r\n\r\n$1\r\nx\r\n')
    expect(reply).not.toMatch(/executable|config_file|process_id|tcp_port/)
  })

  it('keep their order and that of commands after EXEC, though some are answered late', async () => {
    const raw = await client()
    raw.send(`MULTI\r\n${frame('ACL', 'GETUSER', 'one')}PING\r\n${frame('ACL', 'SETUSER', 'x', 'odd')}`)
    raw.send(`${frame('ACL', 'GETUSER', 'two')}EXEC\r\nPING behind\r\n`)
    await raw.expect(
      `+OK\r\n${queued(4)}*4\r\n*1\r\n$3\r\none\r\n+PONG\r\n-ERR a wrong rule\r\n*1\r\n$3\r\ntwo\r\n$6\r\nbehind\r\n`,
    )
    expect(asked.map(({ name }) => name)).toEqual(['ACL|GETUSER', 'ACL|SETUSER', 'ACL|GETUSER'])
  })

  it('do not run when the transaction fails', async () => {
    const [raw, other] = await Promise.all([client(), client()])
    raw.send('MULTI\r\nCLIENT SETNAME a\r\nACL GETUSER x\r\nDISCARD\r\nCLIENT GETNAME\r\n')
    await raw.expect(`+OK\r\n${queued(2)}+OK\r\n$-1\r\n`)
    raw.send('MULTI\r\nCLIENT SETNAME a\r\nCLIENT GETNAME x\r\nEXEC\r\nCLIENT GETNAME\r\n')
    const arity = "-ERR wrong number of arguments for 'client|getname' command\r\n"
    await raw.expect(`+OK\r\n${queued(1)}${arity}${EXECABORT}$-1\r\n`)
    await raw.send('WATCH w\r\nMULTI\r\nCLIENT SETNAME a\r\nGET w\r\n').expect(`+OK\r\n+OK\r\n${queued(2)}`)
    await other.send('SET w 1\r\n').expect('+OK\r\n')
    await raw.send('EXEC\r\nCLIENT GETNAME\r\n').expect('*-1\r\n$-1\r\n')
    expect(asked).toEqual([])
  })

  it('keep their places after nested MULTI and WATCH', async () => {
    const raw = await client()
    raw.send('MULTI\r\nECHO 1\r\nMULTI\r\nWATCH a\r\nCLIENT GETNAME\r\nECHO 2\r\nEXEC\r\n')
    // Redis continues the transaction, Valkey discards it.
    const outcome = /(\+QUEUED\r\n){2}(\*3\r\n\$1\r\n1\r\n\$-1\r\n\$1\r\n2\r\n|-EXECABORT .*\r\n)$/
    await waitFor(() => outcome.test(raw.received), { what: 'the outcome of the transaction' })
  })

  it('close the connection of a client that kills itself, after the whole reply', async () => {
    const raw = await client()
    const self = `127.0.0.1:${raw.socket.localPort}`
    raw.send(`MULTI\r\nECHO 1\r\nCLIENT KILL ADDR ${self} SKIPME no\r\nECHO 2\r\nEXEC\r\n`)
    await raw.expectClosed()
    expect(raw.received).toBe(`+OK\r\n${queued(3)}*3\r\n$1\r\n1\r\n:1\r\n$1\r\n2\r\n`)
  })

  it('use the protocol version of the client', async () => {
    const raw = new RawClient(rig.port)
    raw.send(`HELLO 3 AUTH default ${CREDENTIALS.password}\r\n`)
    await take(raw, 'modules\r\n*0\r\n')
    await raw.send('MULTI\r\nCLIENT GETNAME\r\nGET none\r\nEXEC\r\n').expect(`+OK\r\n${queued(2)}*2\r\n_\r\n_\r\n`)
    raw.send('MULTI\r\nINFO cluster\r\nEXEC\r\n')
    await raw.expect(`+OK\r\n${queued(1)}*1\r\n=34\r\ntxt:# Cluster\r\ncluster_enabled:0\r\n\r\n`)
  })

  it('are limited in number, and all below the limit are answered', async () => {
    const raw = await client()
    raw.send(`MULTI\r\n${'CLIENT ID\r\n'.repeat(10_001)}EXEC\r\nPING\r\n`)
    const reply = await take(raw, `${EXECABORT}+PONG\r\n`)
    const refused = '-ERR too many commands such as CLIENT and CONFIG in one transaction. Limit: 10000\r\n'
    expect(reply).toBe(`+OK\r\n${queued(10_000)}${refused}${EXECABORT}+PONG\r\n`)
    raw.send(`MULTI\r\n${'CLIENT GETNAME\r\nECHO x\r\n'.repeat(5_000)}EXEC\r\n`)
    const pairs = '$-1\r\n$1\r\nx\r\n'.repeat(5_000)
    expect(await take(raw, `*10000\r\n${pairs}`)).toBe(`+OK\r\n${queued(10_000)}*10000\r\n${pairs}`)
  })
})

it('a watched key stays watched when EXEC is sent without MULTI', async () => {
  const [raw, other] = await Promise.all([client(), client()])
  await raw
    .send('WATCH kept\r\nEXEC\r\nDISCARD\r\n')
    .expect('+OK\r\n-ERR EXEC without MULTI\r\n-ERR DISCARD without MULTI\r\n')
  await other.send('SET kept 1\r\n').expect('+OK\r\n')
  await raw.send('MULTI\r\nGET kept\r\nEXEC\r\n').expect('+OK\r\n+QUEUED\r\n*-1\r\n')
})

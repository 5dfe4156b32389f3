import { beforeAll, describe, expect, it } from 'vitest'
import { mainThreadMs, unitMs, waitFor } from '../../../test/support/index.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig

beforeAll(async () => {
  rig = await startRig()
})

const client = (): Promise<RawClient> => new RawClient(rig.port).login()

async function idOf(raw: RawClient): Promise<string> {
  raw.send('CLIENT ID\r\n')
  await waitFor(() => /^:\d+\r\n$/.test(raw.received), { what: 'the id' })
  const id = raw.received.slice(1, -2)
  raw.received = ''
  return id
}

const command = (...words: readonly string[]): string =>
  `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`

it('a command that the gateway answers is refused when it is very long', async () => {
  const raw = await client()
  const long = 'x'.repeat(300_000)
  const answered = [
    ['AUTH', long],
    ['HELLO', '3', 'SETNAME', long],
    ['CLIENT', 'SETNAME', long],
    ['ACL', 'GENTOKEN', 'me', long],
    ['CONFIG', 'GET', long],
    ['INFO', long],
  ]
  for (const words of answered) {
    const sent = command(...words)
    await raw.send(sent).expect(`-ERR max request size exceeded. Limit: 262144 bytes, Actual: ${sent.length} bytes\r\n`)
  }
  await raw.send(command('ECHO', long)).expect(`$300000\r\n${long}\r\n`)
  await raw.send(command('SCRIPT', 'LOAD', `return 1 --${long}`)).expect('$40\r\n')
})

it('a name of a client or of its library has a limited length', async () => {
  const raw = await client()
  const name = 'n'.repeat(1_024)
  await raw.send(`CLIENT SETNAME ${name}\r\nCLIENT SETINFO lib-ver ${name}\r\n`).expect('+OK\r\n+OK\r\n')
  const tooLong = 'cannot be longer than 1024 characters.\r\n'
  await raw
    .send(`CLIENT SETNAME ${name}n\r\nHELLO 2 SETNAME ${name}n\r\n`)
    .expect(`-ERR Client names ${tooLong}`.repeat(2))
  await raw.send(`CLIENT SETINFO lib-name ${name}n\r\n`).expect(`-ERR lib-name ${tooLong}`)
  await raw.send('CLIENT GETNAME\r\n').expect(`$1024\r\n${name}\r\n`)
})

describe('CLIENT KILL', () => {
  it('goes by the last of several options with one word, however many there are', async () => {
    const [owner, one, other] = await Promise.all([client(), client(), client()])
    const [first, last] = [await idOf(one), await idOf(other)]
    const begun = mainThreadMs()
    const filters = Array.from({ length: 10_000 }, () => ['TYPE', 'normal']).flat()
    await owner.send(command('CLIENT', 'KILL', ...filters, 'ID', first, 'ID', last)).expect(':1\r\n')
    expect((mainThreadMs() - begun) / unitMs()).toBeLessThan(100)
    await other.expectClosed()
    await one.send('PING\r\n').expect('+PONG\r\n')
  })

  it('closes connections of other clients, by address or by a filter', async () => {
    const [owner, byAddress, byId, subscriber] = await Promise.all([client(), client(), client(), client()])
    const { localPort } = byAddress.socket
    await owner.send(`CLIENT KILL 127.0.0.1:${localPort}\r\n`).expect('+OK\r\n')
    await byAddress.expectClosed()
    await owner.send(`CLIENT KILL ID ${await idOf(byId)} USER default\r\n`).expect(':1\r\n')
    await byId.expectClosed()
    await subscriber.send('SUBSCRIBE a\r\n').expect('*3\r\n')
    await owner.send('CLIENT KILL TYPE pubsub\r\nPING\r\n').expect(':1\r\n+PONG\r\n')
    await subscriber.expectClosed()
  })

  it('of its own connection is answered before the connection closes', async () => {
    const raw = await client()
    const id = await idOf(raw)
    await raw.send(`GET a\r\nCLIENT KILL ID ${id}\r\n`).expect('$-1\r\n:0\r\n')
    await raw.send(`GET a\r\nCLIENT KILL ID ${id} SKIPME no\r\nGET a\r\n`).expect('$-1\r\n:1\r\n')
    await raw.expectClosed()
    expect(raw.received).toBe('')
  })

  it('only affects clients of the same user, except when the owner sends it', async () => {
    const owner = await client()
    const reader = new RawClient(rig.port)
    await reader.send(`AUTH default_ro ${CREDENTIALS.readerPassword}\r\n`).expect('+OK\r\n')
    const id = await idOf(owner)
    await reader.send(`CLIENT KILL ID ${id}\r\nCLIENT LIST ID ${id}\r\n`).expect(':0\r\n$0\r\n\r\n')
    await owner.send(`CLIENT KILL ID ${await idOf(reader)}\r\n`).expect(':1\r\n')
    await reader.expectClosed()
  })
})

describe('a CLIENT command with an invalid argument', () => {
  it('gets the same error as from an engine, also for other spellings of a number', async () => {
    const raw = await client()
    const unknownUser = "-ERR No such user 'nosuch'\r\n"
    await raw.send('CLIENT KILL USER nosuch\r\nCLIENT KILL USER nosuch ID x\r\n').expect(unknownUser.repeat(2))
    await raw.send('CLIENT KILL USER default_ro\r\n').expect(':0\r\n')
    for (const id of ['01', '+1', '0x10', '1e3', '0', '-1', '9223372036854775808']) {
      await raw.send(`CLIENT KILL ID ${id}\r\n`).expect('-ERR client-id should be greater than 0\r\n')
    }
    await raw.send('CLIENT LIST ID 0 -1\r\nCLIENT LIST ID 1.0\r\n').expect('$0\r\n\r\n-ERR Invalid client ID\r\n')
    const noInteger = '-ERR value is not an integer or out of range\r\n'
    await raw.send('SELECT 00\r\nSELECT 9223372036854775808\r\nSELECT -0\r\n').expect(noInteger.repeat(3))
    await raw
      .send('SELECT 2147483648\r\n')
      .expect('-ERR value is out of range, value must between -2147483648 and 2147483647\r\n')
  })

  it('shows only the owner which users exist', async () => {
    const served = { ...rig.database, userMarks: { alice: 'x' } }
    rig.directory.put(served)
    const [owner, reader] = [await client(), new RawClient(rig.port)]
    await reader.send(`AUTH default_ro ${CREDENTIALS.readerPassword}\r\n`).expect('+OK\r\n')
    await owner.send('CLIENT KILL USER alice\r\n').expect(':0\r\n')
    await reader.send('CLIENT KILL USER alice\r\n').expect("-ERR No such user 'alice'\r\n")
    rig.directory.put(rig.database)
  })
})

describe('CLIENT REPLY', () => {
  it('OFF stops replies until ON, and SKIP leaves out one reply', async () => {
    const raw = await client()
    raw.send('SET a 1\r\nCLIENT REPLY OFF\r\nINCR a\r\nINCR a\r\nNOSUCH\r\nCLIENT REPLY ON\r\nGET a\r\n')
    await raw.expect('+OK\r\n+OK\r\n$1\r\n3\r\n')
    raw.send('CLIENT REPLY SKIP\r\nINCR a\r\nINCR a\r\nCLIENT REPLY SKIP\r\nCLIENT ID\r\nGET a\r\n')
    await raw.expect(':5\r\n$1\r\n5\r\n')
    await raw.send('CLIENT REPLY MAYBE\r\nCLIENT REPLY\r\n')
    await raw.expect("-ERR syntax error\r\n-ERR wrong number of arguments for 'client|reply' command\r\n")
  })

  it('SKIP after SKIP leaves out the reply to the command after both', async () => {
    const raw = await client()
    raw.send('SET a 1\r\nCLIENT REPLY SKIP\r\nCLIENT REPLY SKIP\r\nINCR a\r\nINCR a\r\n')
    await raw.expect('+OK\r\n:3\r\n')
  })

  it('SKIP leaves out the error of a command that is too long, and nothing else', async () => {
    const raw = await client()
    const long = 11 * 1024 * 1024
    raw.send('CLIENT REPLY SKIP\r\n').send(`*2\r\n$3\r\nGET\r\n$${long}\r\n`).send(Buffer.alloc(long, 'x'))
    await raw.send('\r\nECHO x\r\n').expect('$1\r\nx\r\n')
  })

  it('SKIP leaves out the reply to RESET, too', async () => {
    const raw = await new RawClient(rig.port).login()
    await raw.send('CLIENT REPLY SKIP\r\nRESET\r\nPING\r\n').expect('-NOAUTH')
    const pinned = await new RawClient(rig.port).login()
    pinned.send('HELLO 3\r\nCLIENT TRACKING ON\r\n')
    await waitFor(() => pinned.received.endsWith('+OK\r\n'), { what: 'the replies' })
    pinned.received = ''
    await pinned.send('CLIENT REPLY SKIP\r\nRESET\r\nPING\r\n').expect('-NOAUTH')
  })

  it('ends with RESET', async () => {
    const raw = await client()
    await raw.send('CLIENT REPLY OFF\r\nPING\r\nRESET\r\nPING\r\n').expect('+RESET\r\n-NOAUTH')
  })

  it('OFF passes messages and confirmations, which are not replies', async () => {
    const [raw, other] = await Promise.all([client(), client()])
    raw.send('CLIENT REPLY OFF\r\nSUBSCRIBE quiet\r\nPING\r\n')
    await raw.expect('*3\r\n$9\r\nsubscribe\r\n$5\r\nquiet\r\n:1\r\n')
    await other.send('PUBLISH quiet 1\r\n').expect(':1\r\n')
    await raw.expect('*3\r\n$7\r\nmessage\r\n$5\r\nquiet\r\n$1\r\n1\r\n')
    raw.send('UNSUBSCRIBE\r\nPING\r\nCLIENT REPLY ON\r\nECHO x\r\n')
    await raw.expect('*3\r\n$11\r\nunsubscribe\r\n$5\r\nquiet\r\n:0\r\n+OK\r\n$1\r\nx\r\n')
  })

  it.each(['MONITOR', 'CLIENT TRACKING ON'])(
    'skips the reply to %s, after which the engine pushes messages',
    async (name) => {
      const raw = await client()
      await raw
        .send(`CLIENT REPLY SKIP\r\n${name}\r\nCLIENT ID x\r\n`)
        .expect("-ERR wrong number of arguments for 'client|id'")
    },
  )

  it('skips a reply also before a subscription in the same pipeline', async () => {
    const raw = await client()
    raw.send('CLIENT TRACKING ON\r\nCLIENT REPLY SKIP\r\nPING skipped\r\nUNSUBSCRIBE a\r\nPING\r\n')
    await raw.expect('+OK\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n+PONG\r\n')
  })

  it('SKIP does not leave out a confirmation', async () => {
    const raw = await client()
    raw.send('CLIENT REPLY SKIP\r\nSUBSCRIBE a\r\nPING\r\n')
    await raw.expect('*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n')
  })

  it('can change while a connection is subscribed', async () => {
    const [raw, other] = [new RawClient(rig.port), await client()]
    raw.send(`HELLO 3 AUTH default ${CREDENTIALS.password}\r\n`)
    await waitFor(() => raw.received.endsWith('modules\r\n*0\r\n'), { what: 'the reply to HELLO' })
    raw.received = ''
    raw.send('SUBSCRIBE loud\r\nECHO 1\r\nCLIENT REPLY OFF\r\nECHO 2\r\nNOSUCH\r\nCLIENT REPLY ON\r\nECHO 3\r\n')
    await raw.expect('>3\r\n$9\r\nsubscribe\r\n$4\r\nloud\r\n:1\r\n$1\r\n1\r\n+OK\r\n$1\r\n3\r\n')
    raw.send('CLIENT REPLY OFF\r\nECHO 4\r\n')
    await other.send('PUBLISH loud x\r\n').expect(':1\r\n')
    await raw.expect('>3\r\n$7\r\nmessage\r\n$4\r\nloud\r\n$1\r\nx\r\n')
  })

  it('applies to transactions and blocking commands', async () => {
    const raw = await client()
    raw.send('DEL list\r\nCLIENT REPLY OFF\r\nMULTI\r\nRPUSH list x y\r\nEXEC\r\nBLPOP list 1\r\nCLIENT REPLY ON\r\n')
    await raw.send('LRANGE list 0 -1\r\n').expect(':0\r\n+OK\r\n*1\r\n$1\r\ny\r\n')
    raw.send('CLIENT REPLY SKIP\r\nBLPOP list 1\r\nEXISTS list\r\n')
    await raw.expect(':0\r\n')
  })
})

it('CLIENT INFO and LIST are verbatim texts in RESP3', async () => {
  const raw = new RawClient(rig.port)
  raw.send(`HELLO 3 AUTH default ${CREDENTIALS.password} SETNAME me\r\n`)
  await waitFor(() => raw.received.endsWith('modules\r\n*0\r\n'), { what: 'the reply to HELLO' })
  raw.received = ''
  raw.send('CLIENT INFO\r\n')
  await waitFor(() => raw.received.endsWith('\n\r\n'), { what: 'the reply' })
  expect(raw.received).toMatch(/^=\d+\r\ntxt:id=\d+ addr=127\.0\.0\.1:\d+ .* name=me .* resp=3 /)
})

it('the gateway reads HELLO with thousands of options in time', async () => {
  const raw = await client()
  const begun = mainThreadMs()
  const words = ['HELLO', '2', ...Array.from({ length: 12_000 }, () => ['SETNAME', 'me']).flat(), 'MORE']
  raw.send(command(...words))
  await raw.expect("-ERR Syntax error in HELLO option 'MORE'\r\n")
  expect((mainThreadMs() - begun) / unitMs()).toBeLessThan(100)
})

it('HELLO refuses a name with spaces', async () => {
  const raw = new RawClient(rig.port)
  raw.send(`HELLO 3 AUTH default ${CREDENTIALS.password} SETNAME "a b"\r\n`)
  await raw.expect('-ERR Client names cannot contain spaces, newlines or special characters.\r\n')
})

describe('a line of CLIENT LIST', () => {
  /** The fields of a client's line as the owner sees it, once the line matches. */
  async function fieldsOf(id: string, fits: RegExp): Promise<Map<string, string>> {
    const owner = await client()
    const asked = (): boolean => {
      if (fits.test(owner.received)) return true
      owner.received = ''
      owner.send(`CLIENT LIST ID ${id}\r\n`)
      return false
    }
    await waitFor(asked, { what: `a line that matches ${fits}`, everyMs: 50 })
    const line = owner.received.split('\r\n').find((text) => fits.test(text)) ?? ''
    owner.socket.destroy()
    return new Map(
      line
        .trim()
        .split(' ')
        .map((field) => field.split('=', 2) as [string, string]),
    )
  }

  it('has every field of an engine, in its order, and names the last command', async () => {
    const raw = await client()
    const fields = await fieldsOf(await idOf(raw), /cmd=client\|id/)
    const numbers =
      'fd age idle db sub psub ssub multi qbuf qbuf-free argv-mem multi-mem rbs rbp obl oll omem tot-mem redir resp'
    for (const name of numbers.split(' '))
      expect([name, fields.get(name)]).toEqual([name, expect.stringMatching(/^-?\d+$/)])
    expect(Object.fromEntries(fields)).toMatchObject({
      flags: 'N',
      multi: '-1',
      redir: '-1',
      user: 'default',
      events: 'r',
    })
    raw.send('NOSUCH\r\n')
    await fieldsOf(fields.get('id') ?? '', /cmd=NULL/)
  })

  it.each([
    ['SUBSCRIBE a b\r\nPSUBSCRIBE c*\r\nSSUBSCRIBE d\r\nUNSUBSCRIBE b\r\n', / flags=P .* sub=1 psub=1 ssub=1 /],
    ['PSUBSCRIBE a* b*\r\nPUNSUBSCRIBE a*\r\n', / flags=P .* sub=0 psub=1 ssub=0 /],
    ['MULTI\r\nGET a\r\nCLIENT ID\r\nGET b\r\n', / flags=x .* multi=3 /],
    ['BLPOP nothing 0\r\n', / flags=b .* cmd=blpop /],
    ['MONITOR\r\n', / flags=O /],
    ['HELLO 3\r\nCLIENT TRACKING ON\r\nBLPOP nothing 0\r\n', / flags=bt .* redir=0 /],
    ['HELLO 3\r\nCLIENT TRACKING ON\r\n', / flags=t .* cmd=client\|tracking .* resp=3 /],
  ])('shows the state of the connection after %j', async (commands, expected) => {
    const raw = await client()
    const id = await idOf(raw)
    raw.send(commands)
    expect((await fieldsOf(id, expected)).get('id')).toMatch(/\d/)
  })

  it('does not list a client that tracks or monitors as a subscriber', async () => {
    const raw = await client()
    const id = await idOf(raw)
    await raw.send('MONITOR\r\n').expect('+OK\r\n')
    const owner = await client()
    await owner.send(`CLIENT KILL TYPE pubsub ID ${id}\r\nCLIENT KILL TYPE normal ID ${id}\r\n`).expect(':0\r\n:1\r\n')
    await raw.expectClosed()
  })
})

it('INFO counts the clients of the database, as CLIENT LIST does', async () => {
  const own = await startRig()
  const raw = await new RawClient(own.port).login()
  for (const _ of [1, 2]) await new RawClient(own.port).login()
  raw.send('INFO clients\r\n')
  await waitFor(() => raw.received.includes('connected_clients:3\r\n'), { what: 'three clients' })
})

it('CLIENT INFO counts its own command as input', async () => {
  const raw = await client()
  raw.send('*2\r\n$6\r\nclient\r\n$4\r\ninfo\r\n')
  await waitFor(() => raw.received.includes(' qbuf=26 '), { what: 'the length of the command' })
})

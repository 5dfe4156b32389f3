import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig

beforeAll(async () => {
  rig = await startRig()
})

const client = (): RawClient => new RawClient(rig.port)

beforeEach(async () => {
  const flusher = await client().login()
  await flusher.send('FLUSHALL\r\n').expect('+OK\r\n')
  flusher.socket.destroy()
})

describe('login', () => {
  it('refuses every command before it', async () => {
    await client().send('GET a\r\nPING\r\nNOSUCH\r\n').expect('-NOAUTH Authentication required.\r\n'.repeat(3))
  })

  it('accepts the password with and without a user name', async () => {
    await client().send('AUTH client-secret\r\n').expect('+OK\r\n')
    await client().send('AUTH default client-secret\r\n').expect('+OK\r\n')
    const wrong = '-WRONGPASS invalid username-password pair or user is disabled.\r\n'
    await client().send('AUTH nope\r\nAUTH default_ro client-secret\r\n').expect(wrong.repeat(2))
  })

  it('answers HELLO with the version of the engine', async () => {
    const raw = client().send('HELLO 3 AUTH default client-secret SETNAME me\r\n')
    const greeting = /^%7\r\n\$6\r\nserver\r\n\$\d\r\n(redis|valkey)\r\n\$7\r\nversion\r\n\$\d+\r\n\d+\.\d+\.\d+\r\n/
    await waitFor(() => greeting.test(raw.received), { what: 'the greeting' })
  })
})

describe('stateless commands', () => {
  it('are answered in order, with replies of the gateway between them', async () => {
    const raw = await client().login()
    raw.send('SET a 1\r\nSELECT 0\r\nGET a\r\nCONFIG REWRITE\r\nSELECT 1\r\nINCR a\r\n')
    await raw.expect(
      "+OK\r\n+OK\r\n$1\r\n1\r\n-ERR Command is not available: 'CONFIG REWRITE'\r\n" +
        '-ERR DB index is out of range\r\n:2\r\n',
    )
  })
})

describe('SELECT', () => {
  it('accepts the only database, in every spelling', async () => {
    const raw = await client().login()
    const typed = '*2\r\n$6\r\nselect\r\n$1\r\n0\r\n'
    raw.send(`SELECT "0"\r\nselect '0'\r\n${typed}SELECT 1\r\nSELECT 00\r\nSELECT -1\r\nSELECT 99999999999\r\n`)
    const outOfRange = '-ERR DB index is out of range\r\n'
    const noNumber = '-ERR value is not an integer or out of range\r\n'
    const tooLarge = '-ERR value is out of range, value must between -2147483648 and 2147483647\r\n'
    await raw.expect(`+OK\r\n+OK\r\n+OK\r\n${outOfRange}${noNumber}${outOfRange}${tooLarge}`)
    raw.send('MULTI\r\nSELECT "0"\r\nSELECT 1\r\nEXEC\r\n')
    await raw.expect(`+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n${outOfRange}`)
  })
})

describe('transactions', () => {
  it('run on a dedicated lane, in one pipeline with the commands around them', async () => {
    const raw = await client().login()
    raw.send('SET a 1\r\nMULTI\r\nINCR a\r\nINCR a\r\nEXEC\r\nGET a\r\n')
    await raw.expect('+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:2\r\n:3\r\n$1\r\n3\r\n')
  })

  it('are discarded when one of their commands was refused', async () => {
    const raw = await client().login()
    raw.send('MULTI\r\nSET a 1\r\nSHUTDOWN\r\nEXEC\r\nGET a\r\n')
    await raw.expect(
      "+OK\r\n+QUEUED\r\n-ERR Command is not available: 'SHUTDOWN'\r\n" +
        '-EXECABORT Transaction discarded because of previous errors.\r\n$-1\r\n',
    )
  })
})

describe('a dedicated lane', () => {
  it('is reset before another client gets it', async () => {
    const first = await client().login()
    await first.send('WATCH a\r\nGET a\r\n').expect('+OK\r\n$-1\r\n')
    await first.send('MULTI\r\nSET b 1\r\nDISCARD\r\n').expect('+OK\r\n+QUEUED\r\n+OK\r\n')
    await first.send('SET a 1\r\n').expect('+OK\r\n')
    const second = await client().login()
    await second.send('MULTI\r\nGET a\r\nEXEC\r\n').expect('+OK\r\n+QUEUED\r\n*1\r\n$1\r\n1\r\n')
  })

  it('does not survive RESET, which also logs out', async () => {
    const raw = await client().login()
    raw.send('MULTI\r\nSET a 1\r\nRESET\r\nGET a\r\n')
    await raw.expect('+OK\r\n+QUEUED\r\n+RESET\r\n-NOAUTH Authentication required.\r\n')
    await (await raw.login()).send('GET a\r\n').expect('$-1\r\n')
  })

  it('handles a nested MULTI and a MULTI with arguments as the engine does', async () => {
    const raw = await client().login()
    raw.send('MULTI now\r\nGET a\r\nMULTI\r\nMULTI\r\nEXEC\r\nEXEC\r\n')
    await raw.expect("-ERR wrong number of arguments for 'multi' command\r\n$-1\r\n+OK\r\n")
    // Redis continues the transaction, Valkey discards it.
    const nested =
      /^-ERR (MULTI calls can not be nested\r\n\*0|Command .*not allowed inside.*\r\n-EXECABORT .*)\r\n-ERR EXEC without MULTI\r\n$/
    await waitFor(() => nested.test(raw.received), { what: 'the reply to the nested MULTI' })
  })
})

describe('subscriptions', () => {
  const confirmed = '*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n'

  it('keep replies of the gateway in their place', async () => {
    const raw = await client().login()
    raw.send('GET x\r\nCLIENT SETNAME me\r\nSUBSCRIBE a\r\nGET x\r\nSHUTDOWN\r\nUNSUBSCRIBE\r\nCLIENT GETNAME\r\n')
    await raw.expect(`$-1\r\n+OK\r\n${confirmed}-ERR Can't execute 'get': only (P|S)SUBSCRIBE`)
    raw.received = raw.received.slice(raw.received.indexOf('\r\n') + 2)
    await raw.expect("-ERR Command is not available: 'SHUTDOWN'\r\n")
    await raw.expect('*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n$2\r\nme\r\n')
  })

  it('share a RESP3 connection with commands', async () => {
    const [raw, publisher] = [client(), await client().login()]
    raw.send('HELLO 3 AUTH default client-secret\r\n')
    await waitFor(() => raw.received.endsWith('modules\r\n*0\r\n'), { what: 'the reply to HELLO' })
    raw.received = ''
    await raw.send('SUBSCRIBE a\r\nHGETALL h\r\n').expect(`${confirmed.replace('*3', '>3')}%0\r\n`)
    await publisher.send('PUBLISH a hi\r\n').expect(':1\r\n')
    await raw.expect('>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n')
  })

  it('UNSUBSCRIBE is confirmed also without subscriptions', async () => {
    const raw = await client().login()
    await raw.send('UNSUBSCRIBE a b\r\nPING\r\n')
    await raw.expect(
      '*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n+PONG\r\n',
    )
  })
})

it('a client that tracks keys gets an invalidation when another one changes them', async () => {
  const [raw, writer] = [client(), await client().login()]
  raw.send('HELLO 3 AUTH default client-secret\r\n')
  await waitFor(() => raw.received.endsWith('modules\r\n*0\r\n'), { what: 'the reply to HELLO' })
  raw.received = ''
  await raw.send('CLIENT TRACKING ON\r\nGET a\r\n').expect('+OK\r\n_\r\n')
  await writer.send('SET a 1\r\n').expect('+OK\r\n')
  await raw.expect('>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n')
})

describe('a client that does not read', () => {
  const KEYS = 60
  const value = 'v'.repeat(1_000_000)

  it('gets every reply once it reads, and its commands wait before', async () => {
    const raw = await client().login()
    raw.send(`*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$${value.length}\r\n${value}\r\n`)
    await raw.expect('+OK\r\n')
    const before = process.memoryUsage.rss()
    raw.socket.pause()
    for (let i = 0; i < KEYS * 10; i++) raw.send('GET big\r\n')
    const other = await client().login()
    await waitFor(
      async () =>
        (await other
          .send('PING\r\n')
          .expect('+PONG\r\n')
          .then(() => rig.complaints.length)) === 0,
      {
        what: 'another client to be served meanwhile',
      },
    )
    expect(process.memoryUsage.rss() - before).toBeLessThan(500_000_000)
    let received = 0
    raw.socket.removeAllListeners('data')
    raw.socket.on('data', (text) => {
      received += text.length
    })
    raw.socket.resume()
    const expected = KEYS * 10 * (value.length + `$${value.length}\r\n\r\n`.length)
    await waitFor(() => received === expected, { what: 'every reply', deadlineMs: 100_000 })
  })
})

it('the gateway answers commands that were sent before the client closed its sending side', async () => {
  const raw = await client().login()
  raw.socket.end('SET a 1\r\nINCR a\r\n')
  await raw.expect('+OK\r\n:2\r\n')
  await raw.expectClosed()
})

it('the gateway closes the connection after bytes that are no command', async () => {
  const raw = await client().login()
  raw.send('*1\r\n+PING\r\n')
  await raw.expect("-ERR Protocol error: expected '$', got '+'\r\n")
  await raw.expectClosed()
  expect(rig.complaints).toEqual([])
})

it('the gateway answers what a subscriber sent before bytes that are no command', async () => {
  const raw = await client().login()
  raw.send('SUBSCRIBE a\r\nPING\r\n*x\r\n')
  await raw.expect('*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n')
  await raw.expect('-ERR Protocol error: invalid multibulk length\r\n')
  await raw.expectClosed()
})

it('runs nothing that arrives after bytes that are no command', async () => {
  const [raw, other] = [await client().login(), await client().login()]
  raw.socket.setNoDelay(true)
  rig.engine.signal('SIGSTOP')
  atCleanup(() => rig.engine.signal('SIGCONT'))
  raw.send('SET a first\r\n*x\r\n')
  // The gateway answers this command itself: then it has read everything that was sent before.
  const listed = async (): Promise<string> => {
    other.received = ''
    other.send('CLIENT LIST\r\n')
    await waitFor(() => other.received.includes('cmd=client|list'), { what: 'the list of clients' })
    return other.received
  }
  await waitFor(async () => (await listed()).includes('cmd=set'), { what: 'the gateway to take the command' })
  raw.send('SET a late\r\n')
  await listed()
  rig.engine.signal('SIGCONT')
  await raw.expect('+OK\r\n-ERR Protocol error: invalid multibulk length\r\n')
  await raw.expectClosed()
  expect(raw.received).toBe('')
  await (await client().login()).send('GET a\r\n').expect('$5\r\nfirst\r\n')
})

it('the gateway notices that a client has gone that waits for a reply and has sent much more', async () => {
  const quick = await startRig({ idleTimeoutMs: 400 })
  const [raw, other] = [await new RawClient(quick.port).login(), await new RawClient(quick.port).login()]
  raw.send('BLPOP none 0\r\nSUBSCRIBE a\r\n').send(`*2\r\n$4\r\nECHO\r\n$2000000\r\n${'x'.repeat(1_000_000)}`)
  const listed = async (): Promise<string> => {
    other.received = ''
    other.send('CLIENT LIST\r\n')
    await waitFor(() => other.received.includes('cmd=client|list'), { what: 'the list of clients' })
    return other.received
  }
  await waitFor(async () => /qbuf=\d{6,} .*cmd=subscribe/.test(await listed()), { what: 'much input to be held' })
  raw.socket.destroy()
  await waitFor(async () => !(await listed()).includes('cmd=subscribe'), { what: 'the client to be gone' })
})

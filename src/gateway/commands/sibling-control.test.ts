import { once } from 'node:events'
import { Redis } from 'iovalkey'
import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { frame } from '../testing/limited.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig

beforeAll(async () => {
  rig = await startRig()
})

const client = (): Promise<RawClient> => new RawClient(rig.port).login()

async function client3(): Promise<RawClient> {
  const raw = new RawClient(rig.port)
  raw.send(`HELLO 3 AUTH default ${CREDENTIALS.password}\r\n`)
  await waitFor(() => raw.received.endsWith('modules\r\n*0\r\n'), { what: 'the reply to HELLO' })
  raw.received = ''
  return raw
}

async function reader(): Promise<RawClient> {
  const raw = new RawClient(rig.port)
  await raw.send(`AUTH default_ro ${CREDENTIALS.readerPassword}\r\n`).expect('+OK\r\n')
  return raw
}

async function idOf(raw: RawClient): Promise<string> {
  raw.send('CLIENT ID\r\n')
  await waitFor(() => /^:\d+\r\n$/.test(raw.received), { what: 'the id' })
  const id = raw.received.slice(1, -2)
  raw.received = ''
  return id
}

/** Repeats a command until its reply matches, and reads that reply. */
async function until(asker: RawClient, command: string, fits: RegExp): Promise<void> {
  const isAnswered = (): boolean => {
    const { received } = asker
    if (!received.endsWith('\r\n')) return false
    asker.received = ''
    if (!fits.test(received)) asker.send(`${command}\r\n`)
    return fits.test(received)
  }
  asker.send(`${command}\r\n`)
  await waitFor(isAnswered, { what: `${command} to be answered with ${fits}` })
}

/** Ends the blocking command of a client as soon as it waits. */
const unblock = (asker: RawClient, words: string): Promise<void> => until(asker, `CLIENT UNBLOCK ${words}`, /^:1\r\n$/)

const INVALIDATE = '__redis__:invalidate'
const LISTENING = `*3\r\n$9\r\nsubscribe\r\n$20\r\n${INVALIDATE}\r\n:1\r\n`
const invalidationOf = (key: string): string =>
  `*3\r\n$7\r\nmessage\r\n$20\r\n${INVALIDATE}\r\n*1\r\n$${key.length}\r\n${key}\r\n`

describe('CLIENT UNBLOCK', () => {
  it('ends a blocking command as after its timeout or with an error, and nothing else', async () => {
    const [waiting, other] = await Promise.all([client(), client()])
    const id = await idOf(waiting)
    await other.send(`CLIENT UNBLOCK ${id}\r\n`).expect(':0\r\n')
    waiting.send('BLPOP unblock:none 0\r\nECHO a\r\n')
    await unblock(other, id)
    await waiting.expect('*-1\r\n$1\r\na\r\n')
    waiting.send('BLPOP unblock:none 0\r\nECHO b\r\n')
    await unblock(other, `${id} error`)
    await waiting.expect('-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n$1\r\nb\r\n')
    waiting.send('XREAD BLOCK 0 STREAMS unblock:none $\r\n')
    await unblock(other, `${id} TIMEOUT`)
    await waiting.expect('*-1\r\n')
    await other.send(`CLIENT UNBLOCK ${id}\r\n`).expect(':0\r\n')
  })

  it('ends a blocking command on a connection that tracks', async () => {
    const [waiting, other] = await Promise.all([client3(), client()])
    const id = await idOf(waiting)
    await waiting.send('CLIENT TRACKING ON\r\nBLPOP unblock:none 0\r\n').expect('+OK\r\n')
    await unblock(other, id)
    await waiting.expect('_\r\n')
  })

  it('has no effect on a client that uses the same connection to the engine later', async () => {
    const [first, second, other] = await Promise.all([client(), client(), client()])
    const id = await idOf(first)
    first.send('BLPOP unblock:none 0\r\n')
    await unblock(other, id)
    await first.send('GET none\r\n').expect('*-1\r\n$-1\r\n')
    second.send('BLPOP unblock:second 0\r\n')
    await other.send(`CLIENT UNBLOCK ${id}\r\nRPUSH unblock:second x\r\n`).expect(':0\r\n:1\r\n')
    await second.expect('*2\r\n$14\r\nunblock:second\r\n$1\r\nx\r\n')
  })

  it('gives the errors of an engine, and does nothing for users who may not see the client', async () => {
    const [waiting, stranger, other] = await Promise.all([client(), reader(), client()])
    const id = await idOf(waiting)
    waiting.send('BLPOP unblock:none 0\r\n')
    await stranger.send(`CLIENT UNBLOCK ${id}\r\n`).expect(':0\r\n')
    await other
      .send('CLIENT UNBLOCK 99999 MAYBE\r\n')
      .expect('-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n')
    await other.send('CLIENT UNBLOCK x\r\n').expect('-ERR value is not an integer or out of range\r\n')
    await other.send('MULTI\r\nCLIENT UNBLOCK 99999\r\nEXEC\r\n').expect('+OK\r\n+QUEUED\r\n*1\r\n:0\r\n')
    await unblock(other, id)
    await waiting.expect('*-1\r\n')
  })
})

describe('CLIENT TRACKING REDIRECT sends invalidations to another client', () => {
  it('that subscribes in RESP2, before or after', async () => {
    const [tracker, listener, other] = await Promise.all([client(), client(), client()])
    const id = await idOf(listener)
    await tracker.send(`CLIENT TRACKING ON REDIRECT ${id}\r\nGET redirect:a\r\n`).expect('+OK\r\n$-1\r\n')
    await listener.send(`SUBSCRIBE ${INVALIDATE}\r\n`).expect(LISTENING)
    await other.send('SET redirect:a 1\r\n').expect('+OK\r\n')
    await listener.expect(invalidationOf('redirect:a'))
    await tracker
      .send(`CLIENT TRACKING OFF\r\nCLIENT TRACKING ON REDIRECT ${id} BCAST PREFIX redirect:\r\n`)
      .expect('+OK\r\n+OK\r\n')
    await other.send('SET redirect:b 1\r\n').expect('+OK\r\n')
    await listener.expect(invalidationOf('redirect:b'))
    await tracker
      .send('CLIENT TRACKING OFF\r\nMULTI\r\nCLIENT ID\r\nDISCARD\r\n')
      .expect('+OK\r\n+OK\r\n+QUEUED\r\n+OK\r\n')
  })

  it('that speaks RESP3 and had pending commands', async () => {
    const [tracker, listener, other] = await Promise.all([client(), client3(), client()])
    const id = await idOf(listener)
    listener.send('GET none\r\n'.repeat(500))
    await tracker.send(`CLIENT TRACKING ON REDIRECT ${id}\r\nGET redirect:c\r\n`).expect('+OK\r\n$-1\r\n')
    await listener.expect('_\r\n'.repeat(500))
    await other.send('SET redirect:c 1\r\n').expect('+OK\r\n')
    await listener.expect('>2\r\n$10\r\ninvalidate\r\n*1\r\n$10\r\nredirect:c\r\n')
    await listener.send('GET redirect:c\r\nCLIENT GETNAME\r\n').expect('$1\r\n1\r\n_\r\n')
  })

  it('and a question about it gets one reply also while a script keeps the engine busy', async () => {
    const busy = await startRig({}, undefined, undefined, ['--lua-time-limit', '20'])
    const login = (): Promise<RawClient> => new RawClient(busy.port).login()
    const [tracker, listener, other] = await Promise.all([login(), login(), login()])
    const id = await idOf(listener)
    await tracker.send(`CLIENT TRACKING ON REDIRECT ${id}\r\n`).expect('+OK\r\n')
    const now = "local t = redis.call('TIME') local now = t[1] * 1000 + t[2] / 1000"
    const script = `${now} local till = now + 1500 repeat ${now} until now > till return 1`
    other.send(frame('EVAL', script, '0'))
    await until(tracker, 'GET none', /^-BUSY .*\r\n$/)
    tracker.send('CLIENT GETREDIR\r\n')
    await other.expect(':1\r\n')
    tracker.send('PING\r\n')
    await waitFor(() => tracker.received.endsWith('+PONG\r\n'), { what: 'the next reply' })
    expect(tracker.received).toMatch(/^-BUSY [^\r]*\r\n\+PONG\r\n$/)
  })

  it('whose id in replies is the one of the gateway', async () => {
    const [tracker, listener] = await Promise.all([client3(), client()])
    const id = await idOf(listener)
    await tracker.send(`CLIENT TRACKING ON REDIRECT ${id}\r\nCLIENT GETREDIR\r\n`).expect(`+OK\r\n:${id}\r\n`)
    const facts = `%3\r\n$5\r\nflags\r\n~1\r\n$2\r\non\r\n$8\r\nredirect\r\n:${id}\r\n$8\r\nprefixes\r\n*0\r\n`
    await tracker.send('CLIENT TRACKINGINFO\r\n').expect(facts)
    tracker.send('MULTI\r\nCLIENT TRACKINGINFO\r\nCLIENT GETREDIR\r\nEXEC\r\n')
    await tracker.expect(`+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n${facts}:${id}\r\n`)
    tracker.send('CLIENT INFO\r\n')
    await waitFor(() => tracker.received.includes(` redir=${id} `), { what: 'the id in CLIENT INFO' })
    tracker.received = ''
    listener.socket.destroy()
    await until(tracker, 'SET redirect:d 1\r\nGET redirect:d', new RegExp(`tracking-redir-broken\r\n:${id}\r\n`))
  })

  it('and a question about it keeps CLIENT CACHING for the next command', async () => {
    const [tracker, listener] = await Promise.all([client3(), client()])
    const id = await idOf(listener)
    const caching = (word: string): string =>
      `+OK\r\n%3\r\n$5\r\nflags\r\n~3\r\n$2\r\non\r\n$5\r\noptin\r\n$11\r\ncaching-yes\r\n$8\r\nredirect\r\n:${word}\r\n$8\r\nprefixes\r\n*0\r\n`
    await tracker.send('CLIENT TRACKING ON OPTIN\r\n').expect('+OK\r\n')
    await tracker.send('CLIENT CACHING YES\r\nCLIENT TRACKINGINFO\r\n').expect(caching('0'))
    await tracker.send(`CLIENT TRACKING OFF\r\nCLIENT TRACKING ON REDIRECT ${id} OPTIN\r\n`).expect('+OK\r\n+OK\r\n')
    await tracker.send('CLIENT CACHING YES\r\nCLIENT TRACKINGINFO\r\n').expect(caching(id))
    await tracker
      .send('CLIENT CACHING YES\r\nCLIENT GETREDIR\r\nCLIENT TRACKINGINFO\r\n')
      .expect(caching(id).replace('+OK\r\n', `+OK\r\n:${id}\r\n`))
  })

  it('in a transaction too', async () => {
    const [tracker, listener, other] = await Promise.all([client(), client(), client()])
    await listener.send(`SUBSCRIBE ${INVALIDATE}\r\n`).expect(LISTENING)
    other.send('CLIENT LIST TYPE pubsub\r\n')
    await waitFor(() => other.received.endsWith('\n\r\n'), { what: 'the subscribers' })
    const port = listener.socket.localPort
    const id = new RegExp(`id=(\\d+) addr=127\\.0\\.0\\.1:${port} `).exec(other.received)?.[1] ?? ''
    other.received = ''
    tracker.send(`MULTI\r\nCLIENT TRACKING ON REDIRECT ${id}\r\nGET redirect:e\r\nEXEC\r\n`)
    await tracker.expect('+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$-1\r\n')
    await other.send('SET redirect:e 1\r\n').expect('+OK\r\n')
    await listener.expect(invalidationOf('redirect:e'))
  })

  it('unless no such client is visible', async () => {
    const [tracker, stranger, listener, blocked] = await Promise.all([client(), reader(), client(), client()])
    const nobody = '-ERR The client ID you want redirect to does not exist\r\n'
    await tracker.send('CLIENT TRACKING ON REDIRECT 99999\r\n').expect(nobody)
    await stranger.send(`CLIENT TRACKING ON REDIRECT ${await idOf(listener)}\r\n`).expect(nobody)
    const id = await idOf(blocked)
    blocked.send('BLPOP redirect:none 0\r\n')
    await until(tracker, `CLIENT TRACKING ON REDIRECT ${id}`, /waits in a blocking command/)
    await tracker.send('CLIENT TRACKING ON REDIRECT x\r\n').expect('-ERR value is not an integer or out of range\r\n')
    await tracker.send('CLIENT TRACKING ON REDIRECT\r\nECHO x\r\n').expect('-ERR syntax error\r\n$1\r\nx\r\n')
    await tracker.send('CLIENT TRACKING ON BCAST PREFIX redirect\r\n').expect('+OK\r\n')
  })

  it('as client libraries use it', async () => {
    const open = (): Redis => {
      const redis = new Redis({ port: rig.port, password: CREDENTIALS.password })
      atCleanup(() => redis.disconnect())
      return redis
    }
    const [data, listener, other] = [open(), open(), open()]
    const id = await listener.client('ID')
    await listener.subscribe(INVALIDATE)
    await data.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', String(id))
    await data.get('redirect:library')
    const message = once(listener, 'message')
    await other.set('redirect:library', '1')
    expect(String(await message)).toBe(`${INVALIDATE},redirect:library`)
  })
})

describe('HELLO in a transaction', () => {
  const agreed = (protocol: 2 | 3): RegExp => new RegExp(`\\$5\r\nproto\r\n:${protocol}\r\n`)

  it('changes the protocol version when EXEC runs it', async () => {
    const raw = await client()
    raw.send('MULTI\r\nGET none\r\nHELLO 3 SETNAME three\r\nGET none\r\nCLIENT GETNAME\r\nEXEC\r\nGET none\r\n')
    await raw.expect(`+OK\r\n${'+QUEUED\r\n'.repeat(4)}*4\r\n$-1\r\n%7\r\n`)
    await waitFor(() => raw.received.endsWith('*0\r\n_\r\n$5\r\nthree\r\n_\r\n'), { what: 'the remaining replies' })
    expect(raw.received).toMatch(agreed(3))
    raw.received = ''
    await raw
      .send('CLIENT TRACKING ON\r\nMULTI\r\nHELLO 2\r\nECHO x\r\nEXEC\r\n')
      .expect(`+OK\r\n+OK\r\n${'+QUEUED\r\n'.repeat(2)}*2\r\n*14\r\n`)
    await waitFor(() => raw.received.endsWith('*0\r\n$1\r\nx\r\n'), { what: 'the remaining replies' })
    expect(raw.received).toMatch(agreed(2))
    raw.received = ''
    await raw.send('GET none\r\nCLIENT GETNAME\r\n').expect('$-1\r\n$5\r\nthree\r\n')
  })

  it('changes nothing when EXEC fails, and only fails itself when it is invalid', async () => {
    const raw = await client()
    await raw.send('MULTI\r\nHELLO 3\r\nDISCARD\r\nGET none\r\n').expect('+OK\r\n+QUEUED\r\n+OK\r\n$-1\r\n')
    await raw
      .send('MULTI\r\nHELLO 9\r\nHELLO 2 SETNAME "a b"\r\nECHO x\r\nEXEC\r\n')
      .expect(`+OK\r\n${'+QUEUED\r\n'.repeat(3)}*3\r\n-NOPROTO`)
    await waitFor(() => raw.received.endsWith('characters.\r\n$1\r\nx\r\n'), { what: 'the remaining replies' })
    raw.received = ''
    await raw
      .send('MULTI\r\nHELLO 3 AUTH default x\r\nEXEC\r\n')
      .expect('+OK\r\n-ERR Command not allowed inside a transaction\r\n-EXECABORT')
  })
})

it('CLIENT NO-TOUCH is passed to the engine, on a dedicated lane', async () => {
  const raw = await client()
  raw.send('CLIENT NO-TOUCH ON\r\n')
  await waitFor(() => raw.received.endsWith('\r\n'), { what: 'the reply' })
  expect(raw.received).toMatch(/^\+OK|The engine of this database lacks it: Redis 7.2 and Valkey 7.2 have it\r\n$/)
})

import { beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig

beforeAll(async () => {
  rig = await startRig()
})

const client = (): Promise<RawClient> => new RawClient(rig.port).login()

/** Sends HELLO and reads its reply. */
async function hello(raw: RawClient, words: string): Promise<void> {
  raw.send(`HELLO ${words}\r\n`)
  await waitFor(() => raw.received.endsWith('modules\r\n*0\r\n'), { what: 'the reply to HELLO' })
  expect(raw.received).toMatch(words.startsWith('3') ? /^%7\r\n/ : /^\*14\r\n/)
  raw.received = ''
}

async function client3(): Promise<RawClient> {
  const raw = new RawClient(rig.port)
  await hello(raw, `3 AUTH default ${CREDENTIALS.password}`)
  return raw
}

describe('a connection that changes its protocol version', () => {
  it('keeps its watched keys', async () => {
    const [raw, other] = await Promise.all([client(), client()])
    await raw.send('WATCH hello:watched\r\n').expect('+OK\r\n')
    await hello(raw, '3')
    await other.send('INCR hello:watched\r\n').expect(':1\r\n')
    await raw.send('MULTI\r\nGET hello:watched\r\nEXEC\r\nGET none\r\n').expect('+OK\r\n+QUEUED\r\n_\r\n_\r\n')
    await hello(raw, '2')
    await raw.send('GET none\r\n').expect('$-1\r\n')
  })

  it('stays subscribed, and gets its messages in the new version', async () => {
    const [raw, other] = await Promise.all([client3(), client()])
    await raw.send('SUBSCRIBE turning\r\n').expect('>3\r\n$9\r\nsubscribe\r\n$7\r\nturning\r\n:1\r\n')
    await hello(raw, '2')
    await other.send('PUBLISH turning 1\r\n').expect(':1\r\n')
    await raw.expect('*3\r\n$7\r\nmessage\r\n$7\r\nturning\r\n$1\r\n1\r\n')
    await raw.send('GET none\r\n').expect("-ERR Can't execute 'get'")
    await waitFor(() => raw.received.endsWith('context\r\n'), { what: 'the rest of the refusal' })
    raw.received = ''
    await raw.send('UNSUBSCRIBE\r\nGET none\r\n').expect('*3\r\n$11\r\nunsubscribe\r\n$7\r\nturning\r\n:0\r\n$-1\r\n')
    await hello(raw, '3')
    await raw.send('GET none\r\n').expect('_\r\n')
  })

  it('does not mistake a message for the reply, whatever the message says', async () => {
    const [raw, other] = await Promise.all([client3(), client()])
    await raw.send('SUBSCRIBE said\r\n').expect('>3\r\n$9\r\nsubscribe\r\n$4\r\nsaid\r\n:1\r\n')
    const text = 'server\r\n$5\r\nredis\r\n$7\r\nversion\r\n$1\r\n9\r\n'
    other.send(`*3\r\n$7\r\nPUBLISH\r\n$4\r\nsaid\r\n$${text.length}\r\n${text}\r\n`.repeat(20))
    raw.send('HELLO 3\r\nHELLO 2\r\nPING\r\n')
    await waitFor(() => raw.received.includes('pong'), { what: 'the reply to PING' })
    await waitFor(() => raw.received.split('message').length === 21, { what: 'all messages' })
    expect(raw.received.match(/\$6\r\nserver\r\n\$5\r\nredis/g)).toHaveLength(2)
  })

  it('keeps tracking', async () => {
    const [raw, other] = await Promise.all([client3(), client()])
    await raw.send('CLIENT TRACKING ON\r\nGET hello:tracked\r\n').expect('+OK\r\n_\r\n')
    await hello(raw, '2')
    await raw.send('GET none\r\n').expect('$-1\r\n')
    await hello(raw, '3')
    await other.send('SET hello:tracked 1\r\n').expect('+OK\r\n')
    await raw.expect('>2\r\n$10\r\ninvalidate\r\n*1\r\n$13\r\nhello:tracked\r\n')
    await raw.send('CLIENT TRACKING OFF\r\nGET none\r\n').expect('+OK\r\n_\r\n')
  })

  it('keeps monitoring', async () => {
    const raw = await client()
    await raw.send('MONITOR\r\n').expect('+OK\r\n')
    raw.send('HELLO 3\r\nECHO x\r\n')
    await waitFor(() => raw.received.includes('$1\r\nx\r\n'), { what: 'the next reply' })
    expect(raw.received).toContain('%7\r\n$6\r\nserver\r\n')
  })
})

describe('a connection that logs in as another user', () => {
  it('keeps its watched keys', async () => {
    const [raw, other] = await Promise.all([client(), client()])
    await raw.send('WATCH auth:watched\r\n').expect('+OK\r\n')
    await raw.send(`AUTH default_ro ${CREDENTIALS.readerPassword}\r\n`).expect('+OK\r\n')
    await other.send('INCR auth:watched\r\n').expect(':1\r\n')
    await raw.send('MULTI\r\nGET auth:watched\r\nEXEC\r\nSET a 1\r\n').expect('+OK\r\n+QUEUED\r\n*-1\r\n-NOPERM')
  })

  it('stays subscribed, with the permissions of the new user', async () => {
    const [raw, other] = await Promise.all([client3(), client()])
    await raw.send('SUBSCRIBE kept\r\n').expect('>3\r\n$9\r\nsubscribe\r\n$4\r\nkept\r\n:1\r\n')
    await hello(raw, `3 AUTH default_ro ${CREDENTIALS.readerPassword}`)
    await other.send('PUBLISH kept 1\r\n').expect(':1\r\n')
    await raw.expect('>3\r\n$7\r\nmessage\r\n$4\r\nkept\r\n$1\r\n1\r\n')
    await raw.send('SET a 1\r\n').expect('-NOPERM')
  })

  it('keeps its state after a wrong password', async () => {
    const [raw, other] = await Promise.all([client(), client()])
    await raw.send('WATCH auth:kept\r\nAUTH wrong\r\n').expect('+OK\r\n-WRONGPASS')
    await other.send('INCR auth:kept\r\n').expect(':1\r\n')
    raw.send('MULTI\r\nGET auth:kept\r\nEXEC\r\n')
    await waitFor(() => raw.received.endsWith('+QUEUED\r\n*-1\r\n'), { what: 'the transaction to be aborted' })
  })
})

import { beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig

beforeAll(async () => {
  rig = await startRig()
})

const client = (): Promise<RawClient> => new RawClient(rig.port).login()

async function client3(port = rig.port): Promise<RawClient> {
  const raw = new RawClient(port)
  raw.send(`HELLO 3 AUTH default ${CREDENTIALS.password}\r\n`)
  await waitFor(() => raw.received.endsWith('modules\r\n*0\r\n'), { what: 'the reply to HELLO' })
  raw.received = ''
  return raw
}

const TRANSACTION = 'MULTI\r\nSELECT 0\r\nCLIENT GETNAME\r\nECHO x\r\nEXEC\r\n'
const QUEUED = '+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n'

/** Waits until `end` was received, and takes everything received. */
async function takeUntil(raw: RawClient, end: string): Promise<string> {
  await waitFor(() => raw.received.includes(end), { what: JSON.stringify(end) })
  const { received } = raw
  raw.received = ''
  return received
}

describe('a connection that has unsubscribed from everything', () => {
  it('works as before in RESP2, also for later commands of the same pipeline', async () => {
    const raw = await client()
    raw.send(
      `SUBSCRIBE a b\r\nPSUBSCRIBE c*\r\nUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\n${TRANSACTION}INFO cluster\r\nCLIENT REPLY SKIP\r\nPING\r\nGET none\r\n`,
    )
    await raw.expect('*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n')
    await raw.expect('*3\r\n$10\r\npsubscribe\r\n$2\r\nc*\r\n:3\r\n')
    await waitFor(() => raw.received.includes('punsubscribe'), { what: 'the confirmations' })
    await waitFor(() => raw.received.endsWith('$-1\r\n'), { what: 'the last reply' })
    expect(raw.received).toMatch(
      /\*3\r\n\$12\r\npunsubscribe\r\n\$2\r\nc\*\r\n:0\r\n\+OK\r\n(\+QUEUED\r\n){3}\*3\r\n\+OK\r\n\$-1\r\n\$1\r\nx\r\n\$30\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n\$-1\r\n$/,
    )
  })

  it('works as before in RESP3, where shard channels are counted separately', async () => {
    const raw = await client3()
    await raw.send('SUBSCRIBE a\r\nSSUBSCRIBE s\r\n').expect('>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n')
    await raw.expect('>3\r\n$10\r\nssubscribe\r\n$1\r\ns\r\n:1\r\n')
    await raw.send('UNSUBSCRIBE a\r\n').expect('>3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n')
    await raw.send('MULTI\r\nCLIENT GETNAME\r\nDISCARD\r\n').expect('+OK\r\n+QUEUED\r\n+OK\r\n')
    await raw.send('SUNSUBSCRIBE s\r\n').expect('>3\r\n$12\r\nsunsubscribe\r\n$1\r\ns\r\n:0\r\n')
    await raw.send(TRANSACTION).expect(`${QUEUED}*3\r\n+OK\r\n_\r\n$1\r\nx\r\n`)
  })

  it('still watches its keys', async () => {
    const [raw, other] = await Promise.all([client(), client()])
    raw.send('WATCH watched\r\nSUBSCRIBE a\r\nUNSUBSCRIBE a\r\n')
    await raw.expect('+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n')
    await other.send('INCR watched\r\n').expect(':1\r\n')
    await raw.send('MULTI\r\nGET watched\r\nEXEC\r\n').expect('+OK\r\n+QUEUED\r\n*-1\r\n')
  })

  it('can watch while it is subscribed in RESP3, and the transaction fails afterwards', async () => {
    const [raw, other] = await Promise.all([client3(), client()])
    raw.send('SUBSCRIBE a\r\nWATCH watched3\r\nUNSUBSCRIBE\r\n')
    await raw.expect('>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n+OK\r\n>3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n')
    await other.send('INCR watched3\r\n').expect(':1\r\n')
    await raw.send('MULTI\r\nGET watched3\r\nEXEC\r\n').expect('+OK\r\n+QUEUED\r\n_\r\n')
  })

  it('no longer keeps its database awake, and gets no messages', async () => {
    const [raw, other] = await Promise.all([client3(), client()])
    const { meter } = rig.gateway.usageOf(rig.database.databaseId) ?? {}
    const before = meter?.holds ?? 0
    await raw.send('SUBSCRIBE a\r\nPING\r\n').expect('>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n+PONG\r\n')
    expect(meter?.holds).toBe(before + 1)
    await raw.send('UNSUBSCRIBE\r\nPING\r\n').expect('>3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n+PONG\r\n')
    expect(meter?.holds).toBe(before)
    await other.send('PUBLISH a 1\r\n').expect(':0\r\n')
    await raw.send('HELLO 2\r\n')
    await takeUntil(raw, 'modules\r\n*0\r\n')
  })
})

it('a connection that no longer tracks works as before', async () => {
  const raw = await client3()
  await raw.send('CLIENT TRACKING ON\r\nCLIENT GETREDIR\r\n').expect('+OK\r\n:0\r\n')
  raw.send('CLIENT TRACKING ON\r\nMULTI\r\nCLIENT GETNAME\r\nDISCARD\r\nCLIENT TRACKING OFF\r\n')
  await raw.expect('+OK\r\n+OK\r\n+QUEUED\r\n+OK\r\n+OK\r\n')
  await raw.send(TRANSACTION).expect(`${QUEUED}*3\r\n+OK\r\n_\r\n$1\r\nx\r\n`)
})

it('a question about tracking does not keep the lane pinned', async () => {
  const raw = await client3()
  await raw.send('CLIENT GETREDIR\r\nCLIENT GETREDIR x\r\n').expect(':-1\r\n-ERR wrong number of arguments for ')
  await takeUntil(raw, "'client|getredir' command\r\n")
  raw.send('CLIENT TRACKINGINFO\r\n')
  await takeUntil(raw, 'prefixes\r\n*0\r\n')
  await raw.send(TRANSACTION).expect(`${QUEUED}*3\r\n+OK\r\n_\r\n$1\r\nx\r\n`)
})

it('a subscriber that unsubscribed in a transaction is still served', async () => {
  const raw = await client3()
  raw.send('SUBSCRIBE a\r\nMULTI\r\nUNSUBSCRIBE\r\nEXEC\r\n')
  await waitFor(() => /unsubscribe\r\n\$1\r\na\r\n:0\r\n/.test(raw.received), { what: 'the confirmation' })
  raw.received = ''
  await raw.send(`GET none\r\n${TRANSACTION}`).expect(`_\r\n${QUEUED}*3\r\n+OK\r\n_\r\n$1\r\nx\r\n`)
})

describe('a transaction on a pinned lane', () => {
  const tracked = async (): Promise<RawClient> => {
    const raw = await client3()
    await raw.send('CLIENT TRACKING ON\r\n').expect('+OK\r\n')
    return raw
  }

  it('has replies of the gateway in their places, and hides the host', async () => {
    const raw = await tracked()
    raw.send(`CLIENT SETNAME me\r\n${TRANSACTION}MULTI\r\nINFO cluster\r\nSELECT 9\r\nECHO y\r\nEXEC\r\nPING\r\n`)
    await raw.expect(`+OK\r\n${QUEUED}*3\r\n+OK\r\n$2\r\nme\r\n$1\r\nx\r\n+OK\r\n${'+QUEUED\r\n'.repeat(3)}*3\r\n`)
    await raw.expect(
      '=34\r\ntxt:# Cluster\r\ncluster_enabled:0\r\n\r\n-ERR DB index is out of range\r\n$1\r\ny\r\n+PONG\r\n',
    )
  })

  it('is distinguished from arrays and messages around it', async () => {
    const [raw, other] = await Promise.all([client3(), client()])
    await raw.send('SUBSCRIBE a\r\n').expect('>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n')
    await raw.send(`LRANGE none 0 -1\r\n${TRANSACTION}LRANGE none 0 -1\r\n`).expect(`*0\r\n${QUEUED}*3\r\n+OK\r\n_\r\n`)
    await raw.expect('$1\r\nx\r\n*0\r\n')
    await raw.send('MULTI\r\nCLIENT GETNAME\r\n').expect('+OK\r\n+QUEUED\r\n')
    await other.send('PUBLISH a 1\r\n').expect(':1\r\n')
    await raw.expect('>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\n1\r\n')
    await raw.send('EXEC\r\n').expect('*1\r\n_\r\n')
  })

  it('does not run commands of the gateway when it fails', async () => {
    const [raw, other] = await Promise.all([tracked(), client()])
    await raw.send('WATCH w3\r\nMULTI\r\nCLIENT SETNAME x\r\n').expect('+OK\r\n+OK\r\n+QUEUED\r\n')
    await other.send('SET w3 1\r\n').expect('+OK\r\n')
    await raw.send('EXEC\r\nCLIENT GETNAME\r\n').expect('_\r\n_\r\n')
    raw.send(
      'MULTI\r\nCLIENT SETNAME x\r\nNOSUCH\r\nEXEC\r\nMULTI\r\nCLIENT SETNAME x\r\nDISCARD\r\nCLIENT GETNAME\r\n',
    )
    await raw.expect("+OK\r\n+QUEUED\r\n-ERR unknown command 'NOSUCH', with args beginning with: \r\n-EXECABORT")
    await raw.expect(' Transaction discarded because of previous errors.\r\n+OK\r\n+QUEUED\r\n+OK\r\n_\r\n')
  })

  it('refuses commands of the gateway while lines of MONITOR come between', async () => {
    const raw = await client()
    raw.send('MONITOR\r\nMULTI\r\nCLIENT GETNAME\r\nDISCARD\r\nECHO end\r\n')
    const refusal = '-ERR Command not allowed in a transaction that subscribes, or while MONITOR runs\r\n'
    await waitFor(() => raw.received.includes(refusal), { what: 'the refusal' })
    await waitFor(() => raw.received.includes('$3\r\nend\r\n'), { what: 'the last reply' })
  })

  it('can itself pin the lane', async () => {
    const [raw, other] = await Promise.all([client3(), client()])
    raw.send('MULTI\r\nCLIENT GETNAME\r\nSUBSCRIBE q\r\nECHO x\r\nCLIENT GETNAME\r\nEXEC\r\n')
    await raw.expect(`+OK\r\n${'+QUEUED\r\n'.repeat(4)}*4\r\n_\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\nq\r\n:1\r\n`)
    await raw.expect('$1\r\nx\r\n_\r\n')
    await other.send('PUBLISH q 1\r\n').expect(':1\r\n')
    await raw.expect('>3\r\n$7\r\nmessage\r\n$1\r\nq\r\n$1\r\n1\r\n')
    await raw.send(`MULTI\r\nMONITOR\r\nEXEC\r\n`).expect('+OK\r\n+QUEUED\r\n*1\r\n-ERR MONITOR')
  })

  it('closes the connection of a client that kills itself, after the whole reply', async () => {
    const raw = await tracked()
    raw.send(`MULTI\r\nECHO 1\r\nCLIENT KILL ADDR 127.0.0.1:${raw.socket.localPort} SKIPME no\r\nECHO 2\r\nEXEC\r\n`)
    await raw.expectClosed()
    expect(raw.received).toBe('+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n$1\r\n1\r\n:1\r\n$1\r\n2\r\n')
  })
})

it('a tracking connection chooses its invalidations with CLIENT CACHING', async () => {
  const raw = await client3()
  raw.send(
    'CLIENT TRACKING ON OPTIN\r\nCLIENT CACHING YES\r\nGET opted\r\nGET other\r\nSET other 1\r\nSET opted 1\r\nPING\r\n',
  )
  await raw.expect('+OK\r\n+OK\r\n_\r\n_\r\n+OK\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$5\r\nopted\r\n+PONG\r\n')
})

it('CLIENT REPLY SKIP on a tracking connection skips one reply, and nothing else', async () => {
  const [raw, other] = await Promise.all([client3(), client()])
  raw.send('CLIENT TRACKING ON\r\nGET skipped\r\nCLIENT REPLY SKIP\r\nGET skipped\r\nECHO x\r\n')
  await raw.expect('+OK\r\n_\r\n$1\r\nx\r\n')
  await raw.send('CLIENT REPLY SKIP\r\nCLIENT GETNAME\r\nECHO y\r\nCLIENT REPLY SKIP\r\n').expect('$1\r\ny\r\n')
  await other.send('SET skipped 1\r\n').expect('+OK\r\n')
  await raw.expect('>2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\nskipped\r\n')
  await raw
    .send('ECHO z\r\nCLIENT REPLY SKIP\r\nSUBSCRIBE a\r\nECHO z\r\n')
    .expect('>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n$1\r\nz\r\n')
})

it("a subscriber in RESP2 gets the engine's error also for commands of the gateway", async () => {
  const raw = await client()
  await raw.send('SUBSCRIBE a\r\n').expect('*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n')
  const only = 'only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n'
  const own = [
    'SELECT 0',
    'CLIENT GETNAME',
    'CLIENT REPLY OFF',
    'ACL WHOAMI',
    'CONFIG GET x',
    'HELLO 3',
    'AUTH x',
    'COMMAND',
  ]
  for (const command of own) {
    const name =
      command.startsWith('C') || command.startsWith('ACL')
        ? command.split(' ').slice(0, 2).join('|')
        : command.split(' ')[0]
    await raw.send(`${command}\r\n`).expect(`-ERR Can't execute '${name?.toLowerCase()}': ${only}`)
  }
  await raw
    .send('CLIENT GETNAME x\r\nRESET x\r\nRESET\r\n')
    .expect("-ERR wrong number of arguments for 'client|getname' command\r\n")
  await raw.expect("-ERR wrong number of arguments for 'reset' command\r\n+RESET\r\n")
})

it.each(['SUBSCRIBE a', 'SUBSCRIBE b a'])(
  'a client that sent %s in a transaction counts as a subscriber',
  async (sent) => {
    const raw = await client()
    raw.send(`MULTI\r\nECHO x\r\n${sent}\r\nEXEC\r\n`)
    await takeUntil(raw, `$1\r\na\r\n:${sent.split(' ').length - 1}\r\n`)
    for (const command of ['hello 3', 'auth x', 'multi']) {
      await raw.send(`${command}\r\n`).expect(`-ERR Can't execute '${command.split(' ')[0]}': only`)
      await takeUntil(raw, 'in this context\r\n')
    }
    await raw.send('UNSUBSCRIBE a\r\n').expect('*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n')
  },
)

it('a reply of megabytes on a tracking connection keeps its place, also in a transaction', async () => {
  const { port } = await startRig({ maxRequestBytes: 20 * 2 ** 20 })
  const raw = await client3(port)
  const script = `EVAL "local t = {} for i = 1, 1500000 do t[i] = 1 end return t" 0\r\n`
  const numbers = `*1500000\r\n${':1\r\n'.repeat(1_500_000)}`
  raw.send(`CLIENT TRACKING ON\r\n${script}ECHO a\r\nCLIENT GETNAME\r\n`)
  raw.send(`MULTI\r\nCLIENT GETNAME\r\n${script}EXEC\r\nCLIENT GETNAME\r\nECHO z\r\n`)
  const received = await takeUntil(raw, '$1\r\nz\r\n')
  // Not with toBe: it would print megabytes.
  expect(
    received === `+OK\r\n${numbers}$1\r\na\r\n_\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n_\r\n${numbers}_\r\n$1\r\nz\r\n`,
  ).toBe(true)
})

it('MONITOR with an argument changes nothing', async () => {
  const raw = await client()
  await raw.send('MONITOR x\r\nGET none\r\n').expect("-ERR wrong number of arguments for 'monitor' command\r\n$-1\r\n")
})

describe('replies on a pinned lane', () => {
  it('obey the reply limit, with the error of the gateway', async () => {
    const limited = await startRig({ maxRequestBytes: 64 * 1024 })
    const raw = await client3(limited.port)
    raw.send('SUBSCRIBE news\r\nSETRANGE long 65530 0123456789\r\n')
    await raw.expect('>3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n:65540\r\n')
    await raw
      .send('GET long\r\nCOPY long long\r\nMGET long\r\n')
      .expect('-ERR max request size exceeded. Limit: 65536 bytes, ')
    await waitFor(() => raw.received.endsWith('Actual: 65554 bytes\r\n'), { what: 'all replies' })
    expect(raw.received).toBe(
      'Actual: 65550 bytes\r\n:0\r\n-ERR max request size exceeded. Limit: 65536 bytes, Actual: 65554 bytes\r\n',
    )
  })
})

describe('commands of a connection with state are still answered', () => {
  const subscribed = '*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n'
  const pong = '*2\r\n$4\r\npong\r\n$0\r\n\r\n'

  it('before RESET', async () => {
    const raw = await client()
    await raw.send('SUBSCRIBE a\r\nPING\r\nRESET\r\nPING\r\n').expect(`${subscribed}${pong}+RESET\r\n-NOAUTH`)
    const tracking = await client3()
    tracking.send('CLIENT TRACKING ON\r\nMULTI\r\nECHO x\r\nRESET\r\n')
    await tracking.expect('+OK\r\n+OK\r\n+QUEUED\r\n+RESET\r\n')
  })

  it('before QUIT', async () => {
    const raw = await client()
    await raw.send('SUBSCRIBE a\r\nPING\r\nQUIT\r\n').expect(`${subscribed}${pong}+OK\r\n`)
    await raw.expectClosed()
  })

  it('when the client sends no more', async () => {
    const [raw, other, watcher] = await Promise.all([client(), client(), client()])
    raw.socket.end('SUBSCRIBE a\r\nPING\r\n')
    other.socket.end('MULTI\r\nECHO x\r\nEXEC\r\nWATCH a\r\nECHO y\r\n')
    watcher.socket.end('RPUSH queue x\r\nBLPOP queue 0\r\nBLPOP queue 0\r\nECHO never\r\n')
    await raw.expect(`${subscribed}${pong}`)
    await other.expect('+OK\r\n+QUEUED\r\n*1\r\n$1\r\nx\r\n+OK\r\n$1\r\ny\r\n')
    await watcher.expect(':1\r\n*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n')
    for (const gone of [raw, other, watcher]) await gone.expectClosed()
    expect(watcher.received).toBe('')
  })
})

it('a login in a transaction is refused also on a pinned lane', async () => {
  const raw = await client3()
  raw.send(`CLIENT TRACKING ON\r\nMULTI\r\nAUTH ${CREDENTIALS.password}\r\nEXEC\r\nPING\r\n`)
  await raw.expect('+OK\r\n+OK\r\n-ERR Command not allowed inside a transaction\r\n')
  await raw.expect('-EXECABORT Transaction discarded because of previous errors.\r\n+PONG\r\n')
})

it('unsubscribing from channels that were not subscribed is confirmed for each name', async () => {
  const raw = await client()
  raw.send('UNSUBSCRIBE a b\r\nUNSUBSCRIBE\r\nGET none\r\n')
  await raw.expect('*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n')
  await raw.expect('*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n$-1\r\n')
})

it('a user without permission to unsubscribe gets one error, and no replies of other clients', async () => {
  const [raw, other] = [new RawClient(rig.port), new RawClient(rig.port)]
  for (const reader of [raw, other]) {
    await reader.send(`AUTH default_ro ${CREDENTIALS.readerPassword}\r\n`).expect('+OK\r\n')
  }
  raw.send('UNSUBSCRIBE a b c\r\n')
  const refusal = /^-NOPERM \S+ \S+ has no permissions to run the 'unsubscribe' command\r\n$/
  await waitFor(() => refusal.test(raw.received), { what: 'one refusal' })
  raw.received = ''
  await other.send('PING other\r\n').expect('$5\r\nother\r\n')
  await raw.send('GET none\r\n').expect('$-1\r\n')
})

describe('INFO', () => {
  it('hides the host from a subscriber in RESP3, whatever messages come between', async () => {
    const [raw, other] = await Promise.all([client3(), client()])
    await raw.send('SUBSCRIBE a\r\n').expect('>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n')
    other.send('PUBLISH a 1\r\n'.repeat(50))
    raw.send('INFO server\r\nINFO nosuch\r\nGET none\r\n')
    const got = await takeUntil(raw, '# Nosuch\r\n\r\n_\r\n')
    expect(got).toContain('redis_version:')
    expect(got).not.toContain('process_id')
    expect(got).not.toContain('config_file')
  })

  it('is refused for a subscriber in RESP2, and answered for a client that monitors', async () => {
    const [raw, watcher] = await Promise.all([client(), client()])
    await raw.send('SUBSCRIBE a\r\n').expect('*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n')
    raw.send('INFO server\r\n')
    expect(await takeUntil(raw, 'context\r\n')).toMatch(/^-ERR Can't execute 'info': only/)
    watcher.send('MONITOR\r\nINFO server\r\nPING\r\n')
    const info = await takeUntil(watcher, '+PONG\r\n')
    expect(info).toContain('redis_version:')
    expect(info).not.toContain('process_id')
  })
})

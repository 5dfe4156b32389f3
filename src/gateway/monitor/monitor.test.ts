import { once } from 'node:events'
import { Redis as UpstashRedis } from '@upstash/redis'
import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'
import { commandText } from './command-text.js'

let rig: Rig

beforeAll(async () => {
  rig = await startRig({ scriptMsPerMinute: 10_000, maxEntryBytes: 50_000 })
})

const addressOf = (raw: RawClient): string => `127.0.0.1:${raw.socket.localPort}`

/** A monitoring client, and the lines it has received without their times. */
async function monitor(): Promise<{ until: (line: string) => Promise<string[]> }> {
  const raw = await new RawClient(rig.port).login()
  await raw.send('MONITOR\r\n').expect('+OK\r\n')
  const until = async (last: string): Promise<string[]> => {
    const lines = (): string[] => raw.received.split('\r\n').map((line) => line.replace(/^\+\d+\.\d{6} /, ''))
    await waitFor(() => lines().includes(last), { what: last })
    const shown = lines()
    raw.received = shown.slice(shown.indexOf(last) + 1).join('\r\n')
    return shown.slice(0, shown.indexOf(last) + 1)
  }
  return { until }
}

describe('MONITOR shows', () => {
  it('commands of clients that ran, with their addresses, and none of Homeport', async () => {
    const shown = await monitor()
    const raw = new RawClient(rig.port)
    await once(raw.socket, 'connect')
    raw.send(
      `HELLO 2 AUTH default ${CREDENTIALS.password} SETNAME me\r\nset a "b\\x00\\n\\"q"\r\nGet  a\r\nget\r\nnosuch\r\n`,
    )
    raw.send('MULTI\r\nset a 1\r\nDISCARD\r\nMULTI\r\nset a 2\r\nexec\r\n')
    await waitFor(() => raw.received.endsWith('*1\r\n+OK\r\n'), { what: 'the transaction' })
    raw.send('client id\r\ninfo replication\r\nconfig get x\r\nacl list\r\nclient setname you\r\n')
    raw.send('eval "return redis.call(\'set\',KEYS[1],1)" 1 k\r\nselect 0\r\nBLPOP none 0.01\r\n')
    await waitFor(() => raw.received.endsWith('*-1\r\n'), { what: 'the end of waiting' })
    raw.send('ping end\r\n')
    const from = `[0 ${addressOf(raw)}]`
    const lines = await shown.until(`${from} "ping" "end"`)
    // A command that the gateway answers may be shown before or after those sent together with it.
    const isAnsweredHere = (line: string): boolean => /"(?:HELLO|client|select)"/.test(line)
    expect(lines.filter(isAnsweredHere)).toEqual([
      `${from} "HELLO" "2" "AUTH" "(redacted)" "(redacted)" "SETNAME" "me"`,
      `${from} "client" "id"`,
      `${from} "client" "setname" "you"`,
      `${from} "select" "0"`,
    ])
    expect(lines.filter((line) => !isAnsweredHere(line))).toEqual([
      `${from} "set" "a" "b\\x00\\n\\"q"`,
      `${from} "Get" "a"`,
      `${from} "MULTI"`,
      `${from} "DISCARD"`,
      `${from} "MULTI"`,
      `${from} "set" "a" "2"`,
      `${from} "exec"`,
      `${from} "info" "replication"`,
      `${from} "eval" "return redis.call('set',KEYS[1],1)" "1" "k"`,
      '[0 lua] "set" "k" "1"',
      `${from} "BLPOP" "none" "0.01"`,
      `${from} "ping" "end"`,
    ])
  })

  it('the same to all monitors, including commands over REST and streamed values', async () => {
    const views = [await monitor(), await monitor()]
    const raw = await new RawClient(rig.port).login()
    const large = 'x'.repeat(45_000)
    await raw.send(`*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$${large.length}\r\n${large.slice(0, 20_000)}`)
    await raw.send(`${large.slice(20_000)}\r\n`).expect('+OK\r\n')
    const redis = new UpstashRedis({ url: rig.restUrl, token: CREDENTIALS.token, enableTelemetry: false })
    await redis.pipeline().set('over', 'rest').get('over').exec()
    await raw.send('PING last\r\n').expect('$4\r\nlast\r\n')
    for (const view of views) {
      const lines = (await view.until(`[0 ${addressOf(raw)}] "PING" "last"`)).filter((line) => /large|over/.test(line))
      expect(lines).toEqual([
        `[0 ${addressOf(raw)}] "SET" "large" "${large}"`,
        expect.stringMatching(/^\[0 127\.0\.0\.1:[1-9]\d*\] "set" "over" "rest"$/i),
        expect.stringMatching(/^\[0 127\.0\.0\.1:[1-9]\d*\] "get" "over"$/i),
      ])
    }
  })

  it('nothing once the client has left, at no cost', async () => {
    const quiet = await startRig()
    const raw = await new RawClient(quiet.port).login()
    await raw.send('MONITOR\r\n').expect('+OK\r\n')
    await raw.send('RESET\r\n').expect('+RESET\r\n')
    await raw.login()
    await raw.send('SET a 1\r\nGET a\r\n').expect('+OK\r\n$1\r\n1\r\n')
    atCleanup(() => void raw.socket.destroy())
    expect(raw.received).toBe('')
  })
})

it('MONITOR is refused to more clients than a database may have with it, and accepted again once one leaves', async () => {
  const quiet = await startRig()
  const clients = await Promise.all(Array.from({ length: 33 }, () => new RawClient(quiet.port).login()))
  const last = clients.pop()
  for (const client of clients) await client.send('MONITOR\r\n').expect('+OK\r\n')
  await last?.send('MONITOR\r\nGET a\r\n').expect('-ERR max clients with MONITOR exceeded. Limit: 32\r\n$-1\r\n')
  expect((await fetch(`${quiet.restUrl}/monitor?_token=${CREDENTIALS.token}`)).status).toBe(429)
  clients[0]?.socket.destroy()
  const isGiven = async (): Promise<boolean> => {
    last?.send('MONITOR\r\n')
    await waitFor(() => last?.received !== '', { what: 'the reply' })
    const isRefused = last?.received.startsWith('-')
    if (last) last.received = ''
    return !isRefused
  }
  await waitFor(isGiven, { what: 'the place of the client that left' })
})

it('MONITOR shows nothing to a user who may not run it', async () => {
  const [reader, other] = [new RawClient(rig.port), await new RawClient(rig.port).login()]
  await reader.send(`AUTH default_ro ${CREDENTIALS.readerPassword}\r\n`).expect('+OK\r\n')
  reader.send('MONITOR\r\n')
  await waitFor(() => /^-NOPERM .*\r\n$/.test(reader.received), { what: 'the refusal' })
  await other.send('CLIENT SETNAME secret\r\nSELECT 0\r\n').expect('+OK\r\n+OK\r\n')
  reader.received = ''
  await reader.send('ECHO x\r\n').expect('$1\r\nx\r\n')
  reader.send('CLIENT INFO\r\n')
  await waitFor(() => reader.received.includes(' flags=N '), { what: 'a client that monitors nothing' })
})

it('MONITOR writes words like an engine, up to the given length', () => {
  expect(commandText([Buffer.from([0xff, 0x07, 0x5c]), 'a'], 100)).toBe('"\\xff\\a\\\\" "a"')
  expect(commandText(['x'.repeat(1_000_000), 'y'], 10).length).toBeLessThan(20)
})

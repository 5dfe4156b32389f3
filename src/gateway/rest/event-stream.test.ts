import { Redis } from '@upstash/redis'
import { beforeAll, expect, it } from 'vitest'
import { atCleanup, waitFor } from '../../../test/support/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { Lanes } from '../engine/lanes.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'
import { EventStream } from './event-stream.js'

let rig: Rig
let redis: Redis

beforeAll(async () => {
  rig = await startRig()
  redis = new Redis({ url: rig.restUrl, token: CREDENTIALS.token })
})

async function channels(): Promise<string> {
  const response = await fetch(`${rig.restUrl}/pubsub/channels`, {
    headers: { authorization: `Bearer ${CREDENTIALS.token}` },
  })
  return response.text()
}

it('an event stream delivers messages to @upstash/redis until it unsubscribes', async () => {
  const messages: unknown[] = []
  const subscriber = redis.subscribe<{ n: number }>(['news'])
  subscriber.on('message', ({ channel, message }) => messages.push([channel, message]))
  await waitFor(async () => (await channels()).includes('news'), { what: 'the subscription' })
  expect(await redis.publish('news', { n: 1 })).toBe(1)
  await waitFor(() => messages.length === 1, { what: 'the message' })
  expect(messages).toEqual([['news', { n: 1 }]])
  await subscriber.unsubscribe()
  await waitFor(async () => !(await channels()).includes('news'), { what: 'the subscription to end' })
})

it('an event stream delivers messages by pattern, as lines of text', async () => {
  const stream = await open('/psubscribe/n*')
  await waitFor(() => stream.text.includes('psubscribe,n*,1'), { what: 'the confirmation' })
  await redis.publish('news', 'a,b\nc')
  await waitFor(() => stream.text.includes('pmessage'), { what: 'the message' })
  expect(stream.text).toBe('data: psubscribe,n*,1\n\ndata: pmessage,n*,news,a,b c\n\n')
})

it('an event stream delivers every byte of a long message', async () => {
  const [stream, pattern] = await Promise.all([open('/subscribe/long'), open('/psubscribe/lon*')])
  await waitFor(() => `${stream.text}${pattern.text}`.match(/,1\n\n/g)?.length === 2, { what: 'the confirmations' })
  // Line breaks and characters of several bytes stand at all places where the message may be cut.
  const long = `${'é€😀\r\n'.repeat(150_000)}\n.`
  const shown = long.replaceAll(/[\r\n]+/g, ' ')
  expect(await redis.publish('long', long)).toBe(2)
  await redis.publish('long', 'short')
  for (const { text } of [stream, pattern]) expect(text).not.toContain('\r')
  await waitFor(() => [stream, pattern].every(({ text }) => text.endsWith('short\n\n')), { what: 'the messages' })
  const events = (message: string): string => `data: message,long,${message}\n\ndata: message,long,short\n\n`
  expect(stream.text === `data: subscribe,long,1\n\n${events(shown)}`).toBe(true)
  const matched = events(shown).replaceAll('message,long', 'pmessage,lon*,long')
  expect(pattern.text === `data: psubscribe,lon*,1\n\n${matched}`).toBe(true)
})

it('the gateway shows the beginning of a long command to MONITOR, on both protocols', async () => {
  const stream = await open('/monitor')
  const client = await new RawClient(rig.port).login()
  await client.send('MONITOR\r\n').expect('+OK\r\n')
  await waitFor(() => stream.text.startsWith('data: "OK"\n\n'), { what: 'the beginning' })
  await redis.set('long', 'x'.repeat(2_000_000))
  await redis.set('short', 'y')
  await waitFor(() => stream.text.includes('"short"') && client.received.includes('"short"'), { what: 'the commands' })
  expect(stream.text).toMatch(/\n\ndata: [\d.]+ \[0 [\d.:]+\] "set" "long" "x{99}/i)
  for (const text of [stream.text, client.received]) {
    expect(text).toMatch(/x\.\.\."\r?\n/)
    expect(text.length).toBeLessThan(70_000)
  }
})

it('an event stream ends with its connection even while it waits for earlier answers', async () => {
  const { port } = new URL(rig.restUrl)
  const raw = new RawClient(Number(port))
  const request = (channel: string): string =>
    `GET /subscribe/${channel} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${CREDENTIALS.token}\r\n\r\n`
  raw.send(request('one') + request('two'))
  await waitFor(async () => /one.*two|two.*one/.test(await channels()), { what: 'both subscriptions' })
  raw.socket.destroy()
  await waitFor(async () => !/one|two/.test(await channels()), { what: 'both subscriptions to end' })
})

it('the gateway shows commands to MONITOR', async () => {
  const stream = await open('/monitor')
  await waitFor(() => stream.text.startsWith('data: "OK"\n\n'), { what: 'the beginning' })
  await redis.set('watched', 'yes')
  await waitFor(() => stream.text.includes('"watched"'), { what: 'the command' })
  expect(stream.text).toMatch(/data: \d+\.\d+ \[0 127\.0\.0\.1:\d+\] "set" "watched" "yes"\n\n/)
})

it('an event stream answers a refusal with an ordinary error', async () => {
  const headers = { authorization: `Bearer ${CREDENTIALS.readerToken}` }
  const response = await fetch(`${rig.restUrl}/subscribe/news`, { method: 'POST', headers, body: '[]' })
  expect(response.status).toBe(400)
  expect(await response.json()).toEqual({ error: expect.stringMatching(/^NOPERM/) })
})

it('an event stream sends a heartbeat while it is silent', async () => {
  const clock = new ManualClock()
  const quiet = await startRig({}, undefined, undefined, [], { clock })
  const stream = await open('/subscribe/quiet', quiet)
  await waitFor(() => stream.text.includes('subscribe,quiet,1'), { what: 'the confirmation' })
  clock.advance(30_000)
  await waitFor(() => stream.text.endsWith('1\n\n:\n\n'), { what: 'a heartbeat' })
  clock.advance(30_000)
  await waitFor(() => stream.text.endsWith('1\n\n:\n\n:\n\n'), { what: 'another one' })
})

it('an event stream ends when the engine is lost', async () => {
  const stream = await open('/subscribe/news')
  await waitFor(() => stream.text.includes('subscribe,news,1'), { what: 'the confirmation' })
  await rig.engine.kill()
  await waitFor(() => stream.ended, { what: 'the stream to end' })
})

it('passes the messages of few subscribers on in one turn of the event loop, and all in order in the end', async () => {
  const written: string[] = []
  const streams = Array.from({ length: 20 }, () => fakeStream((text) => written.push(text)))
  for (const { receive } of streams) receive('+one\r\n')
  expect(written.length).toBeLessThan(5)
  for (const { receive } of streams) receive('+two\r\n')
  const isRead = streams.map(({ reading }) => reading.isPaused)
  expect(isRead.filter((isPaused) => isPaused).length).toBeGreaterThan(15)
  await waitFor(() => written.length === 2 * streams.length, { what: 'all messages' })
  expect(written.slice(0, streams.length).every((text) => text === 'data: one\n\n')).toBe(true)
  expect(streams.every(({ reading }) => !reading.isPaused)).toBe(true)
})

/** A stream whose engine sends what `receive` is called with, and whose client takes 4 ms of the process for each write. */
function fakeStream(write: (text: string) => void) {
  const reading = { isPaused: false }
  let toClient: (bytes: Buffer) => void = () => undefined
  const link = {
    streamTo: (reader: typeof toClient) => (toClient = reader),
    sendStreamed: () => undefined,
    pauseReading: () => (reading.isPaused = true),
    resumeReading: () => (reading.isPaused = false),
  }
  const response = { headersSent: true, writableLength: 0, on: () => undefined, write: busyWith(write) }
  const guard = { meter: {}, countConnection: () => undefined }
  const exchange = { response, guard, clock: new ManualClock(), written: () => undefined }
  const lanes = { lend: () => link } as unknown as Lanes
  new EventStream(lanes, undefined as never, exchange as never).open(['SUBSCRIBE', 'news'])
  return { reading, receive: (text: string) => toClient(Buffer.from(text)) }
}

function busyWith(write: (text: string) => void): (text: string) => void {
  return (text) => {
    write(text)
    const until = performance.now() + 4
    while (performance.now() < until) {
      // keeps the process busy
    }
  }
}

interface OpenStream {
  text: string
  ended: boolean
}

async function open(path: string, { restUrl }: Rig = rig): Promise<OpenStream> {
  const abort = new AbortController()
  atCleanup(() => abort.abort())
  const headers = { authorization: `Bearer ${CREDENTIALS.token}`, 'upstash-encoding': 'base64' }
  const response = await fetch(restUrl + path, { method: 'POST', headers, body: '[]', signal: abort.signal })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  const stream: OpenStream = { text: '', ended: false }
  void collect(response, stream)
  return stream
}

async function collect(response: Response, stream: OpenStream): Promise<void> {
  try {
    for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) stream.text += text
  } catch {
    // aborted at cleanup
  }
  stream.ended = true
}

import type { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Call, Reply } from '../http/index.js'
import { RecentLines } from '../telemetry/index.js'
import { ServerLogs } from './server-logs.js'

const OPERATOR = 'acc_1'

function started() {
  const lines = new RecentLines()
  const clock = new ManualClock(0)
  const logs = new ServerLogs({ lines, clock, isOperator: (id) => id === OPERATOR, startedAt: 7 })
  let added = 0
  const add = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const level = added % 2 === 0 ? 'info' : 'warn'
      lines.add(`${JSON.stringify({ level, time: 't', event: 'certificate_replaced', msg: String(added++) })}\n`)
    }
  }
  const access = {
    isAllowed: true,
    /** Needs its own `this`, like the method of a real call. */
    async isStillAllowed() {
      return this.isAllowed
    },
  }
  const ask = (given: Partial<Call> = {}): Promise<unknown> =>
    logs.route.handler(
      Object.assign(access, {
        caller: { accountId: OPERATOR } as Call['caller'],
        query: {},
        headers: {},
        params: {},
        body: undefined,
        signal: new AbortController().signal,
        ip: '',
        target: '',
        requestId: '',
        ...given,
      }),
    )
  const follow = async (lastId?: string, query: object = {}): Promise<Readable> => {
    const headers = { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) }
    return ((await ask({ headers, query })) as Reply<Readable>).value
  }
  return { logs, lines, clock, add, ask, follow, access }
}

const texts = (body: string): string[] => [...body.matchAll(/"msg":"(\d+)"/g)].map(([, msg]) => String(msg))
const next = async (stream: Readable): Promise<string> =>
  String((await stream.iterator({ destroyOnReturn: false }).next()).value)

it('a query returns the newest lines that match, oldest first', async () => {
  const { add, ask } = started()
  add(10)
  const answer = (await ask({ query: { level: 'warn', count: 2 } })) as { lines: { msg: string }[] }
  expect(answer.lines.map(({ msg }) => msg)).toEqual(['7', '9'])
  await expect(ask({ caller: { accountId: 'other' } as Call['caller'] })).rejects.toMatchObject({
    code: 'operator_only',
  })
})

it('a slow reader learns how many lines it has missed, and continues with the oldest line that is kept', async () => {
  const { add, follow } = started()
  add(3)
  const stream = await follow('7-1')
  expect(await next(stream)).toBe('event: following\nid: 7-1\ndata: {}\n\n')
  add(6_000)
  let seen = ''
  while (!seen.includes('"msg":"1003"')) seen += await next(stream)
  // Two of the first three lines may have been read before the others came.
  expect(seen).toMatch(/event: missed\ndata: \{"missed":100[02]\}/)
  expect(texts(seen)).toContain('1003')
  stream.destroy()
})

it('a reader that followed the previous process gets every line of this one', async () => {
  const { add, follow } = started()
  add(2)
  const stream = await follow('6-900', { count: 0 })
  expect([await next(stream), texts(await next(stream))]).toEqual([expect.stringContaining('id: 7-0'), ['0', '1']])
  stream.destroy()
})

it('twenty readers may follow the log, and end when they lose their access or when the server stops', async () => {
  const { logs, clock, follow, access } = started()
  const streams = await Promise.all(Array.from({ length: 20 }, () => follow()))
  await expect(follow()).rejects.toMatchObject({ code: 'too_many_log_readers' })
  const [first, ...others] = streams
  if (!first) throw new Error('there is no stream')
  expect(await next(first)).toContain('following')
  const end = next(first)
  access.isAllowed = false
  await expect
    .poll(() => {
      clock.advance(15_000)
      return first.readableEnded || first.destroyed
    })
    .toBe(true)
  expect(await end).toBe('undefined')
  const again = await follow()
  await logs.stop()
  for (const stream of [again, ...others]) {
    for await (const _ of stream);
    expect(stream.destroyed).toBe(true)
  }
})

it('a stream stays open, and its reader is checked, also while no line matches its filter', async () => {
  const { clock, add, follow, access } = started()
  const stream = await follow(undefined, { event: 'engine_started' })
  const seen: string[] = []
  const reading = (async () => {
    for await (const piece of stream) seen.push(String(piece))
  })()
  const inTheMeantime = <Seen>(look: () => Seen) =>
    expect.poll(() => {
      add(1)
      clock.advance(7_000)
      return look()
    })
  await inTheMeantime(() => seen).toContain(': still there\n\n')
  access.isAllowed = false
  await inTheMeantime(() => stream.readableEnded).toBe(true)
  await reading
})

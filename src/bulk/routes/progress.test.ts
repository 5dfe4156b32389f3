import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { describeOnStore } from '../../store/testing/index.js'
import { gatedStore, startBulk } from '../testing/harness.js'
import { startRuns } from '../testing/runs.js'

const ACTIONS = '/v2/workflows/bulkActions'
const authorization = 'Bearer acc'

interface Event {
  readonly name: string
  readonly id: string
  readonly data: { readonly state: string; readonly done: number; readonly matched: number }
}

/** Reads server-sent events into a list until the stream ends. */
async function readEvents(response: Response, events: Event[]): Promise<void> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const [, name, id, data] = /^event: (\w+)\nid: (.*)\ndata: (.*)$/.exec(block) ?? []
      if (name && id && data) events.push({ name, id, data: JSON.parse(data) })
    }
  }
}

describeOnStore('sqlite', 'the progress of a bulk action', (openStore) => {
  it('is streamed as events until the end; without the header, it is plain JSON', async () => {
    const real = await openStore()
    let open = () => {}
    const opened = new Promise<void>((resolve) => (open = resolve))
    let batches = 0
    const service = await startBulk(
      gatedStore(real, async (name) => {
        if (name === 'bulk.cancelBatch' && batches++ > 0) await opened
      }),
    )
    await startRuns(real, 'acc', 1_000)
    const answer = await service.ask('acc', 'DELETE', '/v2/workflows/runs', { async: true })
    const { actionId } = answer.body as { actionId: string }
    const url = `${service.url}${ACTIONS}/${actionId}`
    const leaving = new AbortController()
    const more = (signal = leaving.signal) =>
      fetch(url, { headers: { authorization, accept: 'text/event-stream' }, signal })
    const others = await Promise.all(Array.from({ length: 100 }, () => more()))
    expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await more()).status).toBe(429)
    leaving.abort()
    const free = async () => (await more(AbortSignal.timeout(60_000))).status === 200
    await waitFor(free, { what: 'streams that have ended to be uncounted' })
    const response = await fetch(url, { headers: { authorization, accept: 'text/event-stream' } })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    const events: Event[] = []
    const read = readEvents(response, events)
    await waitFor(() => events.some(({ data }) => data.done > 0), { what: 'the first progress' })
    expect(events[0]).toMatchObject({ name: 'progress', data: { state: 'running', matched: 1_000 } })
    open()
    await read
    expect(events.at(-1)).toMatchObject({ name: 'end', data: { state: 'finished', done: 1_000 } })
    const done = events.map(({ data }) => data.done)
    expect(done).toEqual([...done].sort((a, b) => a - b))
  })

  it('is one event for an ended action, and the stream closes when the server stops', async () => {
    const store = await openStore()
    const service = await startBulk(store)
    await startRuns(store, 'acc', 3)
    const { actionId } = await service.cancel('acc', { report: true })
    const headers = { authorization, accept: 'text/event-stream' }
    const over: Event[] = []
    await readEvents(await fetch(`${service.url}${ACTIONS}/${actionId}`, { headers }), over)
    expect(over.map(({ name }) => name)).toEqual(['end'])
    // `EventSource` reconnects after every end of a stream with the last event id, until it gets 204.
    const again = (id: string) =>
      fetch(`${service.url}${ACTIONS}/${actionId}`, { headers: { ...headers, 'last-event-id': id } })
    const seen = await again(over[0]?.id ?? '')
    expect([seen.status, await seen.text()]).toEqual([204, ''])
    const missed: Event[] = []
    await readEvents(await again('running-1'), missed)
    expect(missed).toEqual(over)

    await startRuns(store, 'acc', 100)
    const slow = await service.ask('acc', 'DELETE', '/v2/workflows/runs', { async: true, ratePerSecond: 1 })
    const { actionId: going } = slow.body as { actionId: string }
    const events: Event[] = []
    const read = readEvents(await fetch(`${service.url}${ACTIONS}/${going}`, { headers }), events)
    await waitFor(() => events.length > 0, { what: 'the first event' })
    await service.stop()
    await read
    expect(events.at(-1)).toMatchObject({ name: 'progress', data: { state: 'running' } })
  })

  it('closes for a reader whose token was revoked', async () => {
    const store = await openStore()
    const clock = new ManualClock()
    const service = await startBulk(store, clock)
    await startRuns(store, 'acc', 1_000)
    const slow = await service.ask('acc', 'DELETE', '/v2/workflows/runs', { async: true, ratePerSecond: 1 })
    const { actionId } = slow.body as { actionId: string }
    const headers = { authorization, accept: 'text/event-stream' }
    const events: Event[] = []
    let isOver = false
    const response = await fetch(`${service.url}${ACTIONS}/${actionId}`, { headers })
    const read = readEvents(response, events).then(() => (isOver = true))
    await waitFor(() => events.length > 0, { what: 'the first event' })
    service.revoked.add('acc')
    const isOverInTime = () => {
      clock.advance(5_000)
      return isOver
    }
    await waitFor(isOverInTime, { what: 'the end of the stream' })
    await read
    expect(events.at(-1)).toMatchObject({ name: 'progress', data: { state: 'running' } })
  })
})

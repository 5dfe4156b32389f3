import { expect, it } from 'vitest'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import type { DeliveryEnd, Publication, PublicationEnd, ReceivedTrace, Tracer } from '../../telemetry/index.js'
import { setQueueScenes } from '../testing/scene.js'

const T = Date.parse('2026-01-01T00:00:30Z')
const MINUTE = 60_000

/** Keeps what is reported to it. Contexts count up, so that each is distinguished from the others. */
class RecordedTraces implements Tracer {
  readonly publications: { readonly publication: Publication; end?: PublicationEnd }[] = []
  readonly deliveries: { readonly parent: ReceivedTrace; end?: DeliveryEnd }[] = []
  #spans = 0

  publication(publication: Publication) {
    const recorded: RecordedTraces['publications'][number] = { publication }
    this.publications.push(recorded)
    return {
      context: this.#next(),
      end: (end: PublicationEnd) => {
        recorded.end ??= end
      },
    }
  }

  delivery({ parent }: { readonly parent: ReceivedTrace }) {
    const recorded: RecordedTraces['deliveries'][number] = { parent }
    this.deliveries.push(recorded)
    return {
      context: this.#next(),
      add: () => undefined,
      answered: () => undefined,
      end: (end: DeliveryEnd) => {
        recorded.end ??= end
      },
    }
  }

  passed() {
    return { context: this.#next(), answered: () => undefined }
  }

  answered(): void {}

  #next() {
    this.#spans++
    return { traceparent: `00-${'a'.repeat(32)}-${String(this.#spans).padStart(16, '0')}-01` }
  }
}

describeOnEveryStore('traced fires of schedules', (openStore) => {
  let clock: ManualClock
  let traces: RecordedTraces
  const scene = setQueueScenes(openStore, {
    clock: () => {
      clock = new ManualClock(T)
      return clock
    },
    tracer: () => {
      traces = new RecordedTraces()
      return traces
    },
    tidy: async ({ client }) => {
      for (const { scheduleId } of await client.schedules.list()) await client.schedules.delete(scheduleId)
    },
  })

  it('begin a trace that their deliveries continue, attempt by attempt', async () => {
    scene.sink.answer = ({ headers }) => ({ status: headers['upstash-retried'] === '0' ? 500 : 200 })
    const { scheduleId } = await scene.client.schedules.create({
      destination: `${scene.sink.url}/fired`,
      cron: '* * * * *',
      retries: 1,
      retryDelay: '1000',
      headers: { traceparent: `00-${'b'.repeat(32)}-${'b'.repeat(16)}-01` },
    })
    clock.advance(MINUTE)
    await scene.arrived(1)
    await expect.poll(() => traces.deliveries[0]?.end?.kind).toBe('answered')
    clock.advance(2_000)
    await scene.arrived(2)
    await expect.poll(() => traces.deliveries[1]?.end).toMatchObject({ status: 200, next: { kind: 'delivered' } })
    const [fire] = traces.publications
    expect(fire).toMatchObject({
      publication: { operation: 'fire', scheduleId, parent: {} },
      end: { kind: 'accepted', messageIds: [expect.stringMatching(/^msg_/)], isDuplicate: false },
    })
    expect(traces.deliveries[0]?.end).toMatchObject({ status: 500, next: { kind: 'retried' } })
    const ofFire = { traceparent: `00-${'a'.repeat(32)}-${'1'.padStart(16, '0')}-01` }
    expect(traces.deliveries.map(({ parent }) => parent)).toEqual([ofFire, ofFire])
    expect(scene.sink.received.map(({ headers }) => headers.traceparent)).toEqual([
      ofFire.traceparent.replace(/1-01$/, '2-01'),
      ofFire.traceparent.replace(/1-01$/, '3-01'),
    ])
  })
})

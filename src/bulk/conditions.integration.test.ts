import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { MAX_VALUE_LENGTH } from '../contract/request-limits.js'
import { type Sink, startSink } from '../queue/testing/sink.js'
import type { Store } from '../store/index.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { type App, startApp } from '../workflow/testing/harness.js'
import { compileConditions } from './selector/conditions.js'
import { Refinement } from './selector/refine.js'
import { selectRuns } from './selector/select-runs.js'
import { DAMAGE_MODULE, damageMessage } from './testing/damage.js'
import { type Answer, type BulkServer, startBulkServer } from './testing/harness.js'
import { startRuns } from './testing/runs.js'
import { newest, selectNamed } from './transactions/bulk-select.js'

const ACTIONS = '/v2/workflows/bulkActions'

interface Found {
  readonly matched: number
  readonly unreadable?: number
  readonly sample: readonly string[]
}

describeOnSampledStore(
  'conditions of selectors',
  (openStore) => {
    let store: Store
    let server: BulkServer
    let sink: Sink
    let app: App
    beforeAll(async () => {
      sink = await startSink()
      sink.answer = ({ target }) => {
        if (target.startsWith('/silent')) return { silent: true }
        return target.startsWith('/dead') ? { status: 503, body: 'shard 7 is down' } : { status: 200 }
      }
      store = await openStore()
      server = await startBulkServer(store)
      app = await startApp(server, {
        '/sleep': { route: async (context) => context.sleep('nap', '1h') },
        '/event': { route: async (context) => context.waitForEvent('approval', 'order-1', { timeout: '1h' }) },
        '/parallel': {
          route: async (context) => {
            const waits = [context.sleep('doze', '1h'), context.waitForEvent('sign-off', 'order-2', { timeout: '1h' })]
            await Promise.all(waits)
          },
        },
        '/webhook': {
          route: async (context) => context.waitForWebhook('paid', await context.createWebhook('hook'), '1h'),
        },
        '/retry': {
          route: async (context) =>
            context.run('charge', () => {
              throw new Error('card "4711" refused')
            }),
        },
      })
    })
    afterAll(async () => {
      await app.close()
      await server.stop()
      await sink.close()
    })
    const start = (kind: string, selector: object, more = {}): Promise<Answer> =>
      server.ask('POST', ACTIONS, { kind, selector, ...more })
    const found = async (kind: string, selector: object): Promise<Found> => {
      const { status, body } = await start(kind, selector, { dryRun: true })
      expect([status, body]).toEqual([200, expect.anything()])
      return body as Found
    }
    const problem = async (kind: string, selector: object, more = {}): Promise<string> => {
      const { status, body } = await start(kind, selector, more)
      expect(status).toBe(400)
      return (body as { error: string }).error
    }
    const trigger = async (url: string, headers: Record<string, string>, body?: unknown): Promise<string> => {
      const answer = await server.ask('POST', `/v2/trigger/${url}`, body, headers)
      return (answer.body as { workflowRunId: string }).workflowRunId
    }
    const reasonOf = async (workflowRunId: string): Promise<string | undefined> => {
      const { body } = await server.ask('GET', `/v2/workflows/logs?workflowRunId=${workflowRunId}`)
      return (body as { runs: { because?: { kind: string }[] }[] }).runs[0]?.because?.[0]?.kind
    }

    it('selects runs by what they wait for, in the words of `because`', async () => {
      const label = { 'Upstash-Label': 'standing', 'Upstash-Retry-Delay': '3600000' }
      const runs: Record<string, string> = {
        sleeping: await trigger(`${app.url}/sleep`, label),
        event: await trigger(`${app.url}/event`, label),
        webhook: await trigger(`${app.url}/webhook`, label),
        retry: await trigger(`${app.url}/retry`, label),
        delayed: await trigger(`${sink.url}/x`, { ...label, 'Upstash-Delay': '1h' }),
        'in-flight': await trigger(`${sink.url}/silent`, label),
      }
      for (const [kind, runId] of Object.entries(runs)) {
        await waitFor(async () => (await reasonOf(runId)) === kind, { what: `a run to be ${kind}` })
      }
      const standing = (more: object) => found('cancelRuns', { label: 'standing', ...more })
      const ofWait = (name: string) => (name === 'in-flight' ? 'in-delivery' : name)
      for (const [kind, runId] of Object.entries(runs)) {
        expect(await standing({ state: ofWait(kind) })).toMatchObject({ matched: 1, sample: [runId] })
      }
      expect(await standing({ state: ['sleeping', 'event', 'no-step'] })).toMatchObject({ matched: 2 })
      expect(await standing({ state: 'no-step' })).toMatchObject({ matched: 0 })
      for (const [name, kind] of [
        ['nap', 'sleeping'],
        ['order-1', 'event'],
        ['approval', 'event'],
        ['paid', 'webhook'],
        ['charge', 'retry'],
      ] as const) {
        expect([name, await standing({ waitingFor: name })]).toMatchObject([name, { sample: [runs[kind]] }])
      }
      expect(await standing({ errorContains: ['card "4711"'] })).toMatchObject({ sample: [runs.retry] })
      expect(await standing({ attemptsAtLeast: 1 })).toMatchObject({ sample: [runs.retry] })
      expect(await standing({ attemptsAtMost: 0 })).toMatchObject({ matched: 5 })
      expect(await standing({ olderThan: '1h' })).toMatchObject({ matched: 0 })
      expect(await standing({ youngerThan: '1h', count: 4 })).toMatchObject({ matched: 4 })

      // The query of the SDKs' own operation takes them too, and the record of the action has them.
      const cancelled = await server.ask('DELETE', '/v2/workflows/runs?label=standing&state=sleeping,event&report=true')
      expect(cancelled).toMatchObject({ status: 200, body: { cancelled: 2 } })
      const { actionId } = cancelled.body as { actionId: string }
      expect((await server.ask('GET', `${ACTIONS}/${actionId}`)).body).toMatchObject({
        selector: { label: ['standing'], state: ['sleeping', 'event'] },
      })
      expect(await standing({})).toMatchObject({ matched: 4 })
      await server.ask('DELETE', '/v2/workflows/runs', { label: 'standing' })
    })

    it('selects a run by any of its parallel branches', async () => {
      const runId = await trigger(`${app.url}/parallel`, { 'Upstash-Label': 'both' })
      const both = (more: object) => found('cancelRuns', { label: 'both', ...more })
      await waitFor(async () => (await both({ state: 'sleeping' })).matched === 1, { what: 'the sleep' })
      await waitFor(async () => (await both({ state: 'event' })).matched === 1, { what: 'the wait' })
      for (const name of ['doze', 'sign-off', 'order-2']) {
        expect(await both({ waitingFor: ['else', name] })).toMatchObject({ sample: [runId] })
      }
      const others = { state: ['retry', 'no-step', 'in-delivery'] }
      await waitFor(async () => (await both(others)).matched === 0, { what: 'the delivery of its plan to end' })
    })

    it('takes the oldest that match, however many pages do not', async () => {
      // Nothing delivers what is due.
      const idle = await openStore()
      const dueAt = Date.now() - 60_000
      const labels = '|paged|'
      const ids = await startRuns(idle, 'acc_paged', 5_300, (index) => ({ labels, ...(index < 5_100 && { dueAt }) }))
      const bound = await idle.run(newest, {})
      const select = (most: number | undefined) => {
        const compiled = compileConditions('runs', { state: ['delayed'] })
        if (!compiled) throw new Error('there is a condition')
        const refinement = new Refinement(idle, compiled, Date.now())
        const target = { kind: 'matching' as const, filter: { label: ['paged'] } }
        return selectRuns(idle, { target, refinement, accountId: 'acc_paged', bound, most, sample: 20 })
      }
      expect((await select(undefined)).matched).toBe(200)
      const { matched, first } = await select(30)
      const { found: seqs } = await idle.run(selectNamed, {
        accountId: 'acc_paged',
        ids: ids.slice(5_100, 5_120),
        bound,
      })
      expect([matched, first]).toEqual([30, [...Array.from(seqs)].sort((one, other) => one - other)])
    })

    it('selects runs that wait for others, also among runs with very many', async () => {
      const labels = '|parents|'
      const parents = await startRuns(store, server.accountId, 4, { labels })
      const link = (index: number, stepName: string) => {
        const runId = parents[index] ?? ''
        return {
          messageId: `msg_${index}`,
          runId,
          url: 'https://x.test/work',
          createdAt: 0,
          step: { stepId: 1, stepName },
        }
      }
      const [child = ''] = await startRuns(store, server.accountId, 1, { parent: link(0, 'ask') })
      await startRuns(store, server.accountId, 1_001, { parent: link(1, 'ask all') })
      await startRuns(store, server.accountId, 1_001, { parent: link(2, 'ask all') })
      const waiting = (more: object) => found('cancelRuns', { label: 'parents', ...more })
      expect(await waiting({ state: 'invoked-run' })).toMatchObject({ sample: parents.slice(0, 3) })
      expect(await waiting({ waitingFor: [child] })).toMatchObject({ sample: [parents[0]] })
      expect(await waiting({ waitingFor: ['ask all'] })).toMatchObject({ sample: parents.slice(1, 3) })
      expect(await waiting({ state: 'delayed' })).toMatchObject({ matched: 4 })
    })

    it('selects runs by their payload, and tells which it could not read', async () => {
      const headers = { 'Upstash-Label': 'payload', 'Upstash-Delay': '1h' }
      const send = (body: unknown) => trigger(`${sink.url}/x`, headers, body)
      const german = await send({ order: { total: 150, items: [{ sku: 'a' }, { sku: 'b' }] }, country: 'DE' })
      await send({ order: { total: 99 }, country: 'DE' })
      await send({ country: 'FR', __proto__: { polluted: true } })
      // Neither JSON nor small enough.
      const text = { ...server.auth, 'upstash-label': 'payload', 'upstash-delay': '1h' }
      await fetch(`${server.url}/v2/trigger/${sink.url}/x`, { method: 'POST', headers: text, body: 'hello' })
      await send({ country: 'DE', order: { total: 1_000 }, filling: 'x'.repeat(300_000) })
      const matching = (payload: string) => found('cancelRuns', { label: 'payload', payload })
      expect(await matching('$.order.total > 100 and $.country = "DE"')).toMatchObject({
        matched: 1,
        unreadable: 2,
        sample: [german],
      })
      expect(await matching("$.order.items[*].sku = 'b'")).toMatchObject({ matched: 1 })
      expect(await matching('not ($.order exists)')).toMatchObject({ matched: 1 })
      expect(await matching('$.constructor exists or $.__proto__.polluted exists')).toMatchObject({ matched: 0 })
      const { body } = await server.ask('DELETE', '/v2/workflows/runs', {
        label: 'payload',
        payload: '$.country = "DE"',
      })
      expect(body).toEqual({ cancelled: 2, unreadable: 2 })
      const later = await start('cancelRuns', { label: 'payload', payload: '$.country = "FR"' })
      expect(later).toMatchObject({ status: 202, body: { matched: 1, unreadable: 2 } })
      const { actionId } = later.body as { actionId: string }
      const action = await server.ask('GET', `/v2/workflows/bulkActions/${actionId}`)
      expect(action.body).toMatchObject({ matched: 1, unreadable: 2 })
    })

    it('selects messages and dead letters', async () => {
      const publish = async (target: string, body: object, headers: Record<string, string>) => {
        const answer = await server.ask('POST', `/v2/publish/${sink.url}${target}`, body, headers)
        return (answer.body as { messageId: string }).messageId
      }
      const label = { 'Upstash-Label': 'msg', 'Upstash-Retry-Delay': '3600000' }
      const retrying = await publish('/dead', { size: 2 }, label)
      const later = await publish('/x', { size: 3 }, { ...label, 'Upstash-Delay': '1h' })
      const dead = await publish('/dead', { size: 4 }, { ...label, 'Upstash-Retries': '0' })
      const messages = (more: object) => found('cancelMessages', { label: 'msg', ...more })
      const letters = (more: object) => found('deleteDeadLetters', { label: 'msg', ...more })
      await waitFor(async () => (await messages({ state: 'retry' })).matched === 1, { what: 'the first retry' })
      await waitFor(async () => (await letters({})).matched === 1, { what: 'the dead letter' })
      expect(await messages({ state: ['retry'] })).toMatchObject({ sample: [retrying] })
      expect(await messages({ state: ['delayed'] })).toMatchObject({ sample: [later] })
      expect(await messages({ attemptsAtLeast: 1, errorContains: 'shard 7' })).toMatchObject({ sample: [retrying] })
      expect(await messages({ payload: '$.size in (3, 4)' })).toMatchObject({ sample: [later] })
      expect(await messages({ youngerThan: '1h', olderThan: '0.001s' })).toMatchObject({ matched: 2 })
      expect(await letters({ errorContains: ['nothing', 'shard'], attemptsAtLeast: 1 })).toMatchObject({
        sample: [dead],
      })
      expect(await letters({ errorContains: 'Shard' })).toMatchObject({ matched: 0 })
      // A stack trace, for example: of messages as long as of runs.
      const long = 'x'.repeat(MAX_VALUE_LENGTH)
      expect(await messages({ errorContains: ['shard 7', long] })).toMatchObject({ sample: [retrying] })
      expect(await problem('cancelMessages', { errorContains: `${long}x` })).toContain('8192 characters')
      expect(await letters({ payload: '$.size = 4', youngerThan: '1h' })).toMatchObject({ sample: [dead] })
      expect(await letters({ attemptsAtLeast: 2 })).toMatchObject({ matched: 0 })
      expect(await letters({ olderThan: '1h' })).toMatchObject({ matched: 0 })
      expect(await start('deleteDeadLetters', { label: 'msg', payload: '$.size = 4' })).toMatchObject({
        status: 202,
        body: { matched: 1 },
      })
      await waitFor(async () => (await letters({})).matched === 0, { what: 'the deletion' })
    })

    it('leaves out payloads that have changed since they were written, and counts them', async () => {
      const headers = { 'Upstash-Label': 'bits', 'Upstash-Delay': '1h' }
      const items = Array.from({ length: 3 }, (_, index) => {
        return { destination: `${sink.url}/x`, headers, body: JSON.stringify({ index, of: 3 }) }
      })
      const published = (await server.ask('POST', '/v2/batch', items)).body as { messageId: string }[]
      const selector = { label: 'bits', payload: '$.of = 3' }
      expect(await found('cancelMessages', selector)).toMatchObject({ matched: 3 })
      const [damaged = ''] = published.map(({ messageId }) => messageId)
      await store.run(damageMessage, { messageId: damaged, body: Buffer.from('{"index": 9, "of": 3}') })
      expect(await found('cancelMessages', selector)).toMatchObject({ matched: 2, unreadable: 1 })
      const { body } = await start('cancelMessages', selector)
      expect(body).toMatchObject({ matched: 2, unreadable: 1 })
      await waitFor(async () => (await found('cancelMessages', { label: 'bits' })).matched === 1, { what: 'the end' })
    })

    it('selects failed runs', async () => {
      const headers = { 'Upstash-Label': 'failed', 'Upstash-Retries': '0' }
      const red = await trigger(`${sink.url}/dead`, headers, { colour: 'red' })
      await trigger(`${sink.url}/dead`, headers, { colour: 'blue' })
      const dead = (more: object) => found('deleteDeadRuns', { label: 'failed', ...more })
      await waitFor(async () => (await dead({})).matched === 2, { what: 'the runs to fail' })
      expect(await dead({ payload: '$.colour = "red"', errorContains: 'shard 7 is' })).toMatchObject({ sample: [red] })
      expect(await dead({ attemptsAtLeast: 1, attemptsAtMost: 1, count: 1 })).toMatchObject({ matched: 1 })
      expect(await dead({ attemptsAtLeast: 2 })).toMatchObject({ matched: 0 })
      expect(await dead({ olderThan: '1d' })).toMatchObject({ matched: 0 })
      expect(await found('restartRuns', { label: 'failed', payload: '$.colour != "red"' })).toMatchObject({
        matched: 1,
      })
      // The callbacks of both runs fail after the runs have.
      const blue = () => found('retryFailureCallbacks', { payload: '$.colour = "blue"' })
      await waitFor(async () => (await blue()).matched === 1, { what: 'the failure callback to fail' })
    })

    it.each<[string, object, object, string]>([
      ['cancelRuns', { state: 'asleep' }, {}, '`state` must be one of delayed, sleeping,'],
      ['cancelRuns', { olderThan: '2 hours' }, {}, '`olderThan` must be a duration such as 30s'],
      ['cancelRuns', { olderThan: '2h', youngerThan: '1h' }, {}, '`youngerThan` must be the longer one'],
      ['cancelRuns', { attemptsAtLeast: 3, attemptsAtMost: 2 }, {}, '`attemptsAtLeast` (3) must not be more than'],
      [
        'cancelRuns',
        { payload: '$.a >' },
        {},
        '`payload` is not a valid expression: at character 6, the end: expected a value',
      ],
      ['cancelRuns', { payload: 5 }, {}, '`payload` must be an expression'],
      ['cancelRuns', { workflowRunIds: ['a'], state: 'event' }, {}, 'leave out `state`'],
      ['cancelRuns', { payload: '$.a = 1' }, { fenceUntil: 8e12 }, 'A fence cannot test `payload`'],
      ['cancelMessages', { waitingFor: ['a'] }, {}, '`waitingFor` is not a condition on pending messages.'],
      ['cancelMessages', { state: 'sleeping' }, {}, 'state'],
      ['cancelMessages', { payload: 'a = 1' }, {}, '`payload` is not a valid expression: at character 1, `a = 1`'],
      [
        'cancelMessages',
        { messageIds: ['a'], olderThan: '1s' },
        {},
        '`messageIds` names the items; leave out `olderThan`',
      ],
      [
        'deleteDeadRuns',
        { state: ['retry'] },
        {},
        '`state` is not a condition on failed runs. Conditions on them: olderThan',
      ],
      ['retryDeadLetters', { youngerThan: '0s' }, {}, '`youngerThan` must be a duration'],
    ])('refuses, and changes nothing: %s %j', async (kind, selector, more, text) => {
      expect(await problem(kind, selector, more)).toContain(text)
    })
  },
  [DAMAGE_MODULE],
)

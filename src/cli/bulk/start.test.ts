import { beforeAll, expect, it, vi } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { type BulkServer, startBulkServer } from '../../bulk/testing/harness.js'
import { startRuns } from '../../bulk/testing/runs.js'
import { BULK_KINDS } from '../../contract/bulk/actions.js'
import type { Store } from '../../store/index.js'
import { describeOnStore } from '../../store/testing/index.js'
import { runCli } from '../index.js'

async function run(...args: string[]) {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli(args, { out: (text) => void out.push(text), err: (text) => void err.push(text) })
  return { code, out: out.join(''), err: err.join('') }
}

const finishedCancel = (line: string) =>
  expect.stringMatching(new RegExp(`^${line}\\nto undo it: homeport bulk undo bulk_\\w+\\n$`))

describeOnStore('sqlite', '`homeport bulk start`', (openStore) => {
  let store: Store
  let server: BulkServer
  beforeAll(async () => {
    store = await openStore()
    server = await startBulkServer(store)
    vi.stubEnv('HOMEPORT_API_URL', 'http://127.0.0.1:9')
    vi.stubEnv('HOMEPORT_EMAIL', 'a@example.test')
    vi.stubEnv('HOMEPORT_API_KEY', 'not used')
    vi.stubEnv('QSTASH_URL', server.url)
    vi.stubEnv('QSTASH_TOKEN', server.token)
    return async () => {
      vi.unstubAllEnvs()
      await server.stop()
    }
  })

  it('starts an action of any kind by ids, filters or a selector, and follows it to its end', async () => {
    const ids = await startRuns(store, 'acc_test', 6, (index) => ({ labels: index < 2 ? '|red|' : '|blue|' }))
    const dry = await run('bulk', 'start', 'cancelRuns', '--label', 'blue', '--count', '3', '--dry-run')
    const lines = ids.slice(2, 5).map((id) => `  ${id}  https://x.test/work\n`)
    expect(dry).toMatchObject({ code: 0, out: `would cancel runs: 3 runs\n${lines.join('')}` })
    const named = await run('bulk', 'start', 'cancelRuns', ids[5] ?? '', '--yes', '--watch')
    expect(named).toMatchObject({ code: 0, out: finishedCancel('finished: 1 run, 1 cancelled') })
    const filtered = await run('bulk', 'start', 'cancelRuns', '--label', 'blue', '--host', 'x.test', '--yes', '--watch')
    expect(filtered).toMatchObject({ code: 0, out: finishedCancel('finished: 3 runs, 3 cancelled') })
    const selector = await run('bulk', 'start', 'cancelRuns', '--selector', '{"label":"red"}', '--yes', '--watch')
    expect(selector).toMatchObject({ code: 0, out: finishedCancel('finished: 2 runs, 2 cancelled') })
    const undo = await run('bulk', 'undo', /bulk_\w+/.exec(selector.out)?.[0] ?? '', '--watch')
    expect(undo).toMatchObject({ code: 0, out: 'finished: 2 cancelled runs, 2 brought back\n' })
    const watched = await run('bulk', 'watch', /bulk_\w+/.exec(selector.out)?.[0] ?? '', '--json')
    const states = watched.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(states.at(-1)).toMatchObject({ state: 'finished', matched: 2, done: 2 })

    for (let made = 0; made < 3; made++) {
      await server.ask(
        'POST',
        '/v2/publish/http://127.0.0.1:9/x',
        {},
        { 'upstash-delay': '1h', 'upstash-label': 'late' },
      )
    }
    const messages = await run('bulk', 'start', 'cancelMessages', '--url', 'http://127.0.0.1:9/x', '--yes', '--watch')
    expect(messages).toMatchObject({ code: 0, out: finishedCancel('finished: 3 messages, 3 cancelled') })
    for (const kind of BULK_KINDS.filter((one) => !one.startsWith('cancel') && !one.startsWith('undo'))) {
      const none = await run(
        'bulk',
        'start',
        kind,
        '--label',
        'none',
        '--flow-key',
        'none',
        '--from',
        '1h',
        '--dry-run',
      )
      expect(none).toMatchObject({ code: 0, out: expect.stringMatching(/^would .*: 0 [a-z ]+\n$/) })
    }
  })

  it('asks nothing when nothing matches, and starts no action', async () => {
    const none = await run('bulk', 'start', 'retryDeadLetters', '--label', 'none')
    expect(none).toEqual({ code: 0, out: 'No item matches. Nothing was changed.\n', err: '' })
    expect((await run('bulk', 'list', '--kind', 'retryDeadLetters')).out).toBe('No bulk actions match.\n')
  })

  it.each([['bulk start retryDeadLetters --label dead --yes --watch'], ['queue dlq retry --label dead']])(
    'sends dead letters again with other settings: %s',
    async (command) => {
      const published = { 'upstash-retries': '0', 'upstash-label': 'dead' }
      await server.ask('POST', '/v2/publish/http://127.0.0.1:9/x', {}, published)
      const messages = async (path: string) => (await server.ask('GET', path)).body as Record<string, object[]>
      await waitFor(async () => (await messages('/v2/dlq?label=dead')).messages?.length === 1, {
        what: 'a dead letter',
      })
      const settings = ['--delay', '1h', '--retries', '7', '--retry-delay', '1000']
      expect(await run(...command.split(' '), ...settings)).toMatchObject({ code: 0 })
      const { events } = await messages('/v2/events?label=dead&state=CREATED&count=1')
      expect(events).toMatchObject([{ maxRetries: 7, retryDelayExpression: '1000' }])
      const cancelled = await server.ask('DELETE', '/v2/messages?label=dead')
      expect(cancelled.body).toEqual({ cancelled: 1 })
    },
  )

  it('pauses runs of one whole URL with a held clock, and refuses clocks of other kinds', async () => {
    const later = { 'upstash-delay': '1h', 'upstash-label': 'held' }
    for (const path of ['a', 'ab']) await server.ask('POST', `/v2/trigger/http://127.0.0.1:9/${path}`, {}, later)
    const ofA = ['--url', 'http://127.0.0.1:9/a', '--label', 'held']
    const found = await run('bulk', 'start', 'pauseRuns', ...ofA, '--hold-clock', '--dry-run')
    expect(found).toMatchObject({ code: 0, out: expect.stringContaining('2 runs') })
    expect(await run('runs', 'pause', ...ofA, '--exact', '--hold-clock')).toMatchObject({ code: 0 })
    const { body } = await server.ask('GET', '/v2/workflows/logs?paused=true&label=held')
    expect(body).toMatchObject({ runs: [{ workflowUrl: 'http://127.0.0.1:9/a', paused: { clock: 'hold' } }] })
    expect(await run('bulk', 'start', 'pauseRuns', ...ofA, '--clock', 'now', '--dry-run')).toMatchObject({ code: 2 })
    expect(await run('runs', 'pause', '--exact')).toMatchObject({ code: 2 })
  })

  it('calls the failure functions of failed runs again, by ids and by filters', async () => {
    const published = { 'upstash-retries': '0', 'upstash-label': 'unheard' }
    const trigger = () => server.ask('POST', '/v2/trigger/http://127.0.0.1:9/x', {}, published)
    const { workflowRunId } = (await trigger()).body as { workflowRunId: string }
    await trigger()
    const path = '/v2/workflows/dlq?label=unheard&failureFunctionState=CALLBACK_FAIL'
    const allFailed = () =>
      waitFor(async () => ((await server.ask('GET', path)).body as { messages: object[] }).messages.length === 2, {
        what: 'both failure functions to fail',
      })
    await allFailed()
    const failed = await run('runs', 'failed', '--label', 'unheard')
    expect(failed.out).toMatch(/FAILURE FUNCTION.*\n.* failed .*\n.* failed /)
    const named = await run('runs', 'retry-callbacks', workflowRunId)
    expect(named).toMatchObject({ code: 0, out: 'finished: 1 failure function, 1 sent again\n' })
    await allFailed()
    const both = await run('runs', 'retry-callbacks', '--label', 'unheard')
    expect(both).toMatchObject({ code: 0, out: 'finished: 2 failure functions, 2 sent again\n' })
    expect(await run('runs', 'retry-callbacks')).toMatchObject({ code: 2 })
  })

  it('takes conditions and saved selectors', async () => {
    // Due for a while: what has just become due and nobody has offered, the server would report as missing.
    const at = Date.now() - 60_000
    await startRuns(store, 'acc_test', 3, (index) => ({ labels: '|when|', at, ...(index === 0 && { dueAt: at }) }))
    const save = await run(
      ...['bulk', 'selectors', 'save', 'late', 'cancelRuns', '--label', 'when', '--state', 'delayed,sleeping'],
    )
    expect(save).toMatchObject({ code: 0, out: expect.stringContaining('label when, state delayed or sleeping') })
    expect(await run('bulk', 'selectors', 'list')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/late +cancelRuns/),
    })
    const dry = await run('bulk', 'start', 'cancelRuns', '--saved', 'late', '--younger-than', '1h', '--dry-run')
    expect(dry).toMatchObject({ code: 0, out: expect.stringContaining('would cancel runs: 2 runs\n') })
    const payload = await run('runs', 'cancel', '--label', 'when', '--payload', '$.a = 1', '--dry-run')
    expect(payload.out).toBe('would cancel 0 runs\n3 items could not be read and so did not match.\n')
    const wrong = await run('bulk', 'start', 'cancelRuns', '--payload', '$.a', '--dry-run')
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('at character 4, the end') })
    const ids = await run('bulk', 'start', 'cancelRuns', 'wfr_1', '--state', 'retry', '--yes')
    expect(ids).toMatchObject({ code: 2, err: expect.stringContaining('leave out `state`') })
    const cancelled = await run('runs', 'cancel', '--saved', 'late', '--count', '1', '--yes', '--json')
    expect(JSON.parse(cancelled.out)).toEqual({ cancelled: 1 })
    expect(await run('bulk', 'selectors', 'delete', 'late')).toMatchObject({ code: 0 })
    expect(await run('bulk', 'selectors', 'show', 'late')).toMatchObject({
      err: expect.stringContaining('There is no saved selector "late"'),
    })
  })

  it('requires exactly one kind of selection', async () => {
    expect(await run('bulk', 'start', 'cancelRuns', '--yes')).toMatchObject({ code: 2 })
    const both = await run('bulk', 'start', 'cancelRuns', '--selector', '{}', '--label', 'red', '--yes')
    expect(both).toMatchObject({ code: 2, err: expect.stringContaining('Nothing was changed.') })
    const list = await run('bulk', 'start', 'cancelRuns', '--selector', '[]', '--yes')
    expect(list).toMatchObject({ code: 2, err: expect.stringContaining('must be a JSON object') })
    const foreign = await run('bulk', 'start', 'resumeRuns', '--host', 'x.test', '--yes')
    expect(foreign).toMatchObject({ code: 2, err: expect.stringContaining('host') })
  })
})

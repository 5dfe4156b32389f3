import { expect, it } from 'vitest'
import { atCleanup } from '../../test/support/cleanup.js'
import { waitFor } from '../../test/support/wait-for.js'
import { newId } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { ROOMY, startQueue } from '../queue/testing/harness.js'
import { describeOnEveryStore } from '../store/testing/index.js'
import { silentLogger } from '../telemetry/index.js'
import { createWorkflow, type Workflow } from './index.js'
import * as runsFinish from './transactions/runs-finish.js'
import * as runsLogs from './transactions/runs-logs.js'
import * as runsSubmit from './transactions/runs-submit.js'

const SWEEP_EVERY_MS = 600_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 0 }

describeOnEveryStore('retention of runs by size', (openStore) => {
  it('keeps the newest ended runs that fit, and every run that goes on', async () => {
    const store = await openStore()
    const clock = new ManualClock(Date.now())
    const accountId = newId('acc_', clock.now())
    let workflow: Workflow | undefined
    const service = await startQueue({
      store,
      clock,
      accountId,
      extend: (queue) => {
        workflow = createWorkflow({
          ...{ ...ROOMY, store, queue, clock, logger: silentLogger, publicUrl: 'http://127.0.0.1' },
          accountOfUser: () => undefined,
          // A run below takes more than 10,000 bytes.
          retentionBytes: 35_000,
        })
        return workflow.routes()
      },
    })
    atCleanup(() => service.stop())

    const start = async (runId: string): Promise<void> => {
      const at = clock.now()
      const first = {
        kind: 'step' as const,
        messageId: newId('msg_', at),
        body: Buffer.alloc(10_000, 'x'),
        meta: JSON.stringify({ delivery }),
        dueAt: at + 100 * SWEEP_EVERY_MS,
        delivery,
      }
      const run = { ...columns, run_id: runId, contact: 'known' as const }
      await store.run(runsSubmit.submit, { accountId, submissions: [{ kind: 'start', run, first }], at })
    }
    const kept = async () => {
      const page = { accountId, filter: {}, before: Number.MAX_SAFE_INTEGER, limit: 100 }
      return (await store.run(runsLogs.logPage, page)).runs.map(({ run_id }) => run_id).reverse()
    }
    const all = ['going on', 'a', 'b', 'c', 'd', 'e']
    for (const runId of all) await start(runId)
    for (const runId of all.slice(1)) {
      await store.run(runsFinish.finishRun, { accountId, runId, response: 'done', at: clock.now() })
    }
    await workflow?.start()
    atCleanup(async () => workflow?.stop())
    expect(await kept()).toEqual(all)
    await waitFor(
      async () => {
        clock.advance(SWEEP_EVERY_MS)
        return (await kept()).length === 4
      },
      { what: 'the sweep' },
    )
    expect(await kept()).toEqual(['going on', 'c', 'd', 'e'])
  })
})

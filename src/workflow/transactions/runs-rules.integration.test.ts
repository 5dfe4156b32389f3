import { expect, it } from 'vitest'
import { newId } from '../../base/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import * as runsRead from './runs-read.js'
import type { Submission } from './runs-submissions.js'
import * as runsSubmit from './runs-submit.js'

const AT = 1_700_000_000_000
const columns = { url: 'https://x.test/w', host: 'x.test', path: '/w', labels: '', flow_key: null, caller_ip: '::1' }
const delivery = { ...columns, method: 'POST', headers: '{}', config: '{}', max_retries: 3 }
const RULES = [
  { kind: 'singleton', key: 'k', mode: 'cancel' },
  { kind: 'debounce', key: 'k', delayMs: 1_000 },
] as const

describeOnEveryStore('a trigger with a key that is repeated at the same time', (openStore) => {
  it.each(RULES)('cancels nothing: %o', async (rule) => {
    const store = await openStore()
    const start = (runId: string): Submission => ({
      kind: 'start',
      rule,
      run: { run_id: runId, contact: 'known', ...columns },
      first: {
        kind: 'step',
        messageId: newId('msg_', AT),
        body: Buffer.from('p'),
        dueAt: AT,
        delivery,
        meta: JSON.stringify({ delivery }),
      },
    })
    const submit = (runId: string) =>
      store.run(runsSubmit.submit, { accountId: 'acc', submissions: [start(runId)], at: AT })
    for (const runId of ['a', 'b', 'c', 'd']) {
      await Promise.all(Array.from({ length: 6 }, () => submit(runId)))
      expect(await store.run(runsRead.find, { accountId: 'acc', runId })).toMatchObject({ state: 'RUN_STARTED' })
    }
  })
})

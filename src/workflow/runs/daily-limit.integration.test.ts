import { expect, it } from 'vitest'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { startWorkflows } from '../testing/harness.js'

const NOWHERE = 'http://127.0.0.1:9/'
const message = { destination: NOWHERE, headers: { 'Upstash-Delay': '7d' }, body: 'x' }
const trigger = {
  ...message,
  headers: { ...message.headers, 'Upstash-Workflow-Init': 'true', 'Upstash-Workflow-RunId': 'wfr_one' },
}

describeOnEveryStore('the refusal of a batch beyond the limit of messages a day', (openStore) => {
  it('names the runs of a batch that were stored when its messages exceed the limit', async () => {
    const service = await startWorkflows({ store: await openStore(), dailyMessages: 2 })
    const batch = async (items: readonly object[]) => {
      const init = { method: 'POST', headers: service.auth, body: JSON.stringify(items) }
      const answer = await fetch(`${service.url}/v2/batch`, init)
      return { status: answer.status, answer: (await answer.json()) as unknown }
    }
    const refused = { error: expect.stringContaining('2 messages a day') }
    try {
      const mixed = await batch([message, trigger, message])
      expect(mixed).toMatchObject({ status: 200, answer: [refused, { workflowRunId: 'wfr_one' }, refused] })
      expect(await service.log('wfr_one')).toBeDefined()
      expect(await batch([message, message])).toMatchObject({ status: 429, answer: refused })
      expect(await batch([message])).toMatchObject({ status: 200 })
    } finally {
      await service.stop()
    }
  })
})

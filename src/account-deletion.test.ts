import { expect, it } from 'vitest'
import { AccountDeletion } from './account-deletion.js'
import * as operator from './accounts/transactions/operator.js'
import { ManualClock } from './base/testing/manual-clock.js'
import * as accountPurge from './bulk/transactions/account-purge.js'
import type { Store } from './store/index.js'
import { silentLogger } from './telemetry/index.js'

it('has the queue forget the flow-control keys of the account, once its messages are dropped', async () => {
  const key = { account_id: 'acc', flow_key: 'k' }
  const [keys, messages] = [[key], [7]]
  const done: string[] = []
  const answers = new Map<unknown, () => unknown>([
    [operator.deleting, () => ['acc']],
    [accountPurge.settings, () => keys.splice(0)],
    [accountPurge.messages, () => messages.splice(0)],
    [accountPurge.runs, () => []],
    [operator.finishDelete, () => true],
  ])
  const clock = new ManualClock()
  const deletion = new AccountDeletion({
    ...{ clock, logger: silentLogger, reload: async () => undefined },
    store: { run: async (operation: unknown) => answers.get(operation)?.() } as unknown as Store,
    databases: { idsOf: async () => [], remove: async () => undefined },
    queue: {
      dropEverywhere: async () => void done.push('dropped'),
      forgetFlowKeys: async (gone) => void done.push(...gone.map(({ flow_key }) => `forgot ${flow_key}`)),
    },
  })
  let isOver = false
  const work = deletion.complete().then(() => {
    isOver = true
  })
  while (!isOver) {
    clock.advance(1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await work
  expect(done).toEqual(['dropped', 'forgot k'])
})

import { expect, it } from 'vitest'
import { systemClock } from '../../base/index.js'
import { singleNode } from '../../cluster/index.js'
import type { Store } from '../../store/index.js'
import type { Starting } from '../../workflow/index.js'
import * as bulkPaused from '../transactions/bulk-paused.js'
import { BulkNodes, type BulkNodesDeps } from './bulk-nodes.js'
import { Fences } from './fences.js'

const ACCOUNT = 'acc'
const URL_OF_WORKFLOW = 'https://x.test/report'
const run: Starting = {
  run_id: 'wfr_1',
  url: URL_OF_WORKFLOW,
  host: 'x.test',
  path: '/report',
  labels: '',
  flow_key: null,
  caller_ip: '',
}

it('no run begins unpaused although all pauses are read again while a workflow is being paused', async () => {
  const stored: bulkPaused.PausedRow[] = []
  let answer = () => {}
  const answered = new Promise<void>((resolve) => (answer = resolve))
  // The rows of all pauses are older than the new pause, and arrive late.
  const read = async (operation: unknown) => {
    const rows = [...stored]
    if (operation === bulkPaused.allPaused) await answered
    return operation === bulkPaused.allPaused || operation === bulkPaused.paused ? rows : []
  }
  const fences = new Fences()
  const cluster = singleNode()
  const deps = { store: { run: read } as unknown as Store, clock: systemClock, cluster, fences }
  const nodes = new BulkNodes(deps as unknown as BulkNodesDeps)

  const loaded = nodes.loadFences()
  await new Promise((resolve) => setImmediate(resolve))
  stored.push({ account_id: ACCOUNT, url: URL_OF_WORKFLOW, paused_at: 1, pause: '{"clock":"keep"}' })
  const followed = nodes.workflowsChanged(ACCOUNT)
  await new Promise((resolve) => setImmediate(resolve))
  answer()
  await Promise.all([loaded, followed])
  expect(await fences.pass(ACCOUNT, [run], 2, async (paused) => paused.map(({ url }) => url))).toEqual([
    URL_OF_WORKFLOW,
  ])
})

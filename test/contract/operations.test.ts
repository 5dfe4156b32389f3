import { afterAll, beforeAll, expect, it } from 'vitest'
import { ObjectServer } from '../../src/objects/testing/object-server.js'
import { useService } from '../e2e/support/service.js'
import { declaredEndpoints } from './declared.js'
import { accountExchanges, queueAccountExchanges } from './exchanges/accounts.js'
import { alertExchanges } from './exchanges/alerts.js'
import { consoleExchanges } from './exchanges/console.js'
import { backupExchanges, databaseExchanges, lastDatabaseExchanges } from './exchanges/databases.js'
import { nodeExchanges } from './exchanges/nodes.js'
import { lastExchanges, queueExchanges } from './exchanges/queue.js'
import { deadRunExchanges, groupExchanges, lineExchanges, scheduleExchanges } from './exchanges/queue-more.js'
import { openStage } from './exchanges/stage.js'
import { workflowExchanges } from './exchanges/workflow.js'

/**
 * Every operation is called successfully at least once, and its answer matches its description: `useService` fails the
 * test whose answer deviates. A new operation needs an exchange in `exchanges/`.
 */

const exchanges = {
  ...consoleExchanges,
  ...databaseExchanges,
  ...backupExchanges,
  ...accountExchanges,
  ...alertExchanges,
  ...lastDatabaseExchanges,
  ...queueExchanges,
  ...groupExchanges,
  ...lineExchanges,
  ...scheduleExchanges,
  ...workflowExchanges,
  ...deadRunExchanges,
  ...lastExchanges,
  ...queueAccountExchanges,
  ...nodeExchanges,
}
const endpoints = await declaredEndpoints()
const objects = await ObjectServer.start()
const service = useService({
  args: ['--backups', 's3://homeport/contract', '--backups-endpoint', objects.endpoint],
  env: objects.credentials.environment,
})
let stage: Awaited<ReturnType<typeof openStage>>

beforeAll(async () => {
  stage = await openStage(service)
})
afterAll(async () => {
  await stage?.close()
  await objects.stop()
})

it.each(Object.entries(exchanges))('%s answers as it is described', async (id, exchange) => {
  const { success, otherAnswers = [] } = endpoints.find((endpoint) => endpoint.id === id) ?? {}
  const answer = await exchange(stage)
  expect([success, ...otherAnswers].map((expected) => expected?.status)).toContain(answer.status)
  expect([...service.watch.called]).toContain(id)
})

it('no served operation is left out', () => {
  const served = [...service.watch.documents.values()].flatMap(({ paths }) =>
    Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId)),
  )
  expect(served.filter((id) => !service.watch.called.has(id))).toEqual([])
})

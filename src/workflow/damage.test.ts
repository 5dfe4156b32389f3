import { expect, it, onTestFinished } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { openStore } from '../store/index.js'
import { changeBehind } from '../store/testing/damage.js'
import { type AppRoutes, startApp, startWorkflows } from './testing/harness.js'

it('fails a run with a step that is not what it returned, says why, and others go on', async () => {
  const dataDir = tempDir()
  const open = () => openStore({ location: 'sqlite', dataDir, onFailure: (error) => expect.fail(error.message) })
  let store = await open()
  let service = await startWorkflows({ store })
  const seen: unknown[] = []
  const routes: AppRoutes = {
    '/sum': {
      route: async (context) => {
        const first = await context.run('first', () => 'as it was')
        await context.sleep('a moment', 3)
        await context.run('second', () => void seen.push(first))
      },
    },
  }
  let app = await startApp(service, routes)
  const trigger = async () =>
    (await service.client.trigger({ url: `${app.url}/sum`, body: {}, retries: 0 })).workflowRunId
  const [bad, good] = [await trigger(), await trigger()]
  for (const id of [bad, good]) {
    await service.when(id, 'to sleep', (run) => run.steps.some(({ steps }) => steps[0]?.stepName === 'a moment'))
  }
  await service.stop()
  await Promise.all([app.close(), store.close()])
  const flip = `UPDATE steps SET body = cast(replace(cast(body AS text), 'as it was', 'as it wax') AS blob)
    WHERE run_seq = (SELECT seq FROM runs WHERE run_id = '${bad}') AND instr(body, cast('as it was' AS blob)) > 0`
  expect(changeBehind(dataDir, flip)).toBe(1)
  store = await open()
  service = await startWorkflows({ store })
  app = await startApp(service, routes, Number(new URL(app.url).port))
  onTestFinished(async () => {
    await service.stop()
    await Promise.all([app.close(), store.close()])
  })
  const failed = await service.when(bad, 'to fail', (run) => run.workflowState === 'RUN_FAILED')
  await service.when(good, 'to succeed', (run) => run.workflowState === 'RUN_SUCCESS')
  expect(seen).toEqual(['as it was'])
  expect(JSON.stringify(failed)).toContain('damaged in the store of the server')
  expect(JSON.stringify(failed)).not.toContain('as it wax')
})

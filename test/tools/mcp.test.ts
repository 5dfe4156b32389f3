import type { WorkflowContext } from '@upstash/workflow'
import { beforeAll, describe, expect, it } from 'vitest'
import { startSink } from '../../src/queue/testing/sink.js'
import { startApp } from '../../src/workflow/testing/harness.js'
import { useService } from '../e2e/support/service.js'
import { atCleanup, waitFor } from '../support/index.js'
import { type McpServer, startMcp } from './original.js'

/** Calls every tool of the original MCP server that is not about Box, unmodified, against a real server. */

const service = useService()
let mcp: McpServer
let sink: Awaited<ReturnType<typeof startSink>>
const used = new Set<string>()

beforeAll(async () => {
  sink = await startSink()
  sink.answer = ({ target }) => (target === '/dead' ? { status: 500 } : {})
  atCleanup(() => sink.close())
  mcp = await startMcp(service.homeport)
})

/** Calls a tool that works; answers its texts. */
async function works(tool: string, args: object = {}): Promise<readonly string[]> {
  used.add(tool)
  const { isError, texts } = await mcp.call(tool, args)
  expect([tool, isError, isError ? texts : []]).toEqual([tool, false, []])
  return texts
}

const json = async (tool: string, args: object = {}, at = 0) => JSON.parse((await works(tool, args))[at] ?? 'null')

describe('databases', () => {
  it('are created, read, changed, backed up and deleted', async () => {
    const regions = { primary_region: 'us-east-1', read_regions: ['eu-west-1'] }
    const made = await json('redis_database_create_new', { name: 'by-mcp', ...regions })
    const { database_id } = made
    expect(made).toMatchObject({
      database_name: 'by-mcp',
      ...regions,
      database_type: 'Pay as You Go',
      multizone: false,
    })
    expect(await json('redis_database_list_databases')).toContainEqual({ database_id, database_name: 'by-mcp' })
    expect(await json('redis_database_get_details', { database_id })).toMatchObject({ database_name: 'by-mcp' })
    expect(await works('redis_database_update_regions', { id: database_id, read_regions: [] })).toEqual(['OK'])
    const reset = await json('redis_database_reset_password', { id: database_id })
    expect(reset.password).not.toBe(made.password)
    const run = (commands: string[][]) => json('redis_database_run_redis_commands', { database_id, commands })
    expect(await run([['SET', 'k', 'v']])).toEqual({ result: 'OK' })
    expect(await run([['GET', 'k'], ['PING']])).toEqual([{ result: 'v' }, { result: 'PONG' }])
    const stats = await json('redis_database_get_statistics', { id: database_id, period: '1h' })
    expect(stats.usage_last_5_days.days).toHaveLength(7)
    await works('redis_database_manage_backup', { database_id, operation: 'create', backup_name: 'first' })
    const done = async () => {
      const [backup] = await json('redis_database_list_backups', { database_id })
      return backup?.state === 'completed' && backup
    }
    const { backup_id } = await waitFor(done, { what: 'the backup' })
    await works('redis_database_manage_backup', { database_id, operation: 'restore', backup_id })
    await works('redis_database_manage_backup', { database_id, operation: 'delete', backup_id })
    await works('redis_database_set_daily_backup', { database_id, enable: true })
    await works('redis_database_set_daily_backup', { database_id, enable: false })
    await works('redis_database_delete', { database_id })
    expect(await json('redis_database_list_databases')).toEqual([])
  })
})

describe('the queue', () => {
  it.each(['eu', 'us'])('is found under the region %s', async (region) => {
    expect((await works('qstash_schedules_list', { region }))[0]).toBe('Found 0 schedules')
  })

  it('publishes, shows logs and dead letters, and keeps schedules', async () => {
    expect(await json('qstash_get_user_token')).toMatchObject({ token: service.homeport.credentials.queueToken })
    const sent = { destination: `${sink.url}/fine?a=b`, body: 'hello', extraHeaders: { 'Upstash-Label': 'mcp' } }
    const { messageId } = await json('qstash_publish_message', sent, 2)
    const delivered = async () => {
      const logs = await json('qstash_logs_list', { messageId }, 2)
      return logs.events[0].events.some(({ state }: { state: string }) => state === 'DELIVERED') && logs
    }
    expect(await waitFor(delivered, { what: 'the delivery' })).toMatchObject({ messageId, label: 'mcp' })
    expect(await json('qstash_logs_get', { messageId }, 1)).toMatchObject({ messageId, url: sent.destination })
    await works('qstash_publish_message', { destination: `${sink.url}/dead`, retries: 0 })
    const dead = async () => (await json('qstash_dlq_list', {}, 2))[0]
    const { dlqId } = await waitFor(dead, { what: 'the dead letter' })
    expect(await json('qstash_dlq_get', { dlqId }, 1)).toMatchObject({ dlqId, responseStatus: 500 })
    const schedule = { destination: sink.url, cron: '0 0 1 1 *', body: '{}', retries: 1 }
    const { scheduleId } = await json('qstash_schedules_manage', { operation: 'create', ...schedule }, 2)
    for (const operation of ['pause', 'resume', 'delete'])
      await works('qstash_schedules_manage', { operation, scheduleId })
  })

  it('shows runs of workflows, and resumes and restarts failed ones', async () => {
    const app = await startApp(service.app, {
      '/fail': {
        route: async (context: WorkflowContext<unknown>) =>
          context.run('fails', () => {
            throw new Error('as it should')
          }),
      },
    })
    atCleanup(() => app.close())
    const { workflowRunId } = await service.workflow.trigger({ url: `${app.url}/fail`, retries: 0 })
    const letters = async (count: number) => {
      const { messages } = await json('workflow_dlq_list', { callerIP: '127.0.0.1' }, 2)
      return messages.length >= count && messages
    }
    const failed = async () => {
      const [letter] = await waitFor(() => letters(1), { what: 'a failed run' })
      return letter.dlqId as string
    }
    await failed()
    expect(await json('workflow_logs_list', { state: 'RUN_FAILED' }, 2)).toMatchObject({ runs: [{ workflowRunId }] })
    expect(await json('workflow_logs_get', { workflowRunId }, 1)).toMatchObject({ workflowRunId })
    expect(await json('workflow_dlq_get', { dlqId: await failed() }, 1)).toMatchObject({ workflowRunId })
    for (const action of ['restart', 'resume', 'delete'])
      await works('workflow_dlq_manage', { dlqId: await failed(), action })
  })
})

it('the MCP server converts times, and names every tool that has a service here', async () => {
  expect(await works('util_timestamps_to_date', { timestamps: [0] })).toEqual(['Thu, 01 Jan 1970 00:00:00 GMT'])
  expect(await works('util_dates_to_timestamps', { dates: ['1970-01-01T00:00:01Z'] })).toEqual(['1000'])
  // Databases for strangers: docs/tools.md says why not.
  const explained = await works('redis_database_start_free', { user_agent: 'test' })
  expect(explained[0]).toMatch(/^No database was started.*redis_database_create_new/s)
  const others = mcp.tools.filter((tool) => !tool.startsWith('box_') && !used.has(tool))
  expect(others).toEqual([])
})

it('the MCP server offers only what reads to a read-only key, which sees no token for writing', async () => {
  const { body } = await service.homeport.api('POST', '/v2/apikeys', { name: 'reader', read_only: true })
  const reader = await startMcp(service.homeport, (body as { api_key: string }).api_key)
  expect(reader.tools).not.toContain('redis_database_create_new')
  const { isError, texts } = await reader.call('qstash_dlq_list', {})
  expect([isError, texts[0]]).toEqual([false, expect.stringContaining('DLQ messages')])
})

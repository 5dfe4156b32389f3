/** Creates example data for every page of the queue. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atCleanup, type RunningHomeport, waitFor } from '../../support/index.js'

/** Starts a server that accepts every delivery except to `/broken`. Returns its URL. */
async function openSink(): Promise<string> {
  const sink = createServer((request, response) => {
    const isBroken = request.url === '/broken'
    request.resume().on('end', () => {
      response.writeHead(isBroken ? 503 : 200, { 'content-type': 'application/json' })
      response.end(isBroken ? '{"error":"the mail server is away"}' : '{"ok":true}')
    })
  })
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
  atCleanup(() => {
    sink.close()
    sink.closeAllConnections()
  })
  return `http://127.0.0.1:${(sink.address() as AddressInfo).port}`
}

/** Creates messages, schedules and limits. Returns the ID of a message that is delivered at its second attempt. */
export async function furnishQueue(homeport: RunningHomeport): Promise<string> {
  const sink = await openSink()
  const call = (method: string, path: string, settings: Record<string, string> = {}, body?: unknown) =>
    homeport.queue(method, path, body, settings)
  await call('POST', '/v2/queues', {}, { queueName: 'mails', parallelism: 2, paused: true })
  for (const order of [4711, 4712, 4713, 4714]) {
    await call(
      'POST',
      `/v2/publish/${sink}/api/orders`,
      { 'upstash-label': 'orders' },
      { order, items: ['tea', 'cups'] },
    )
  }
  for (const to of ['ada@example.com', 'bob@example.com']) {
    await call('POST', `/v2/enqueue/mails/${sink}/api/mail`, { 'upstash-label': 'mail' }, { to, template: 'welcome' })
  }
  const retried = await call(
    'POST',
    `/v2/publish/${sink}/broken`,
    { 'upstash-label': 'orders', 'upstash-retry-delay': '60000' },
    { order: 4710 },
  )
  await call(
    'POST',
    `/v2/publish/${sink}/broken`,
    { 'upstash-retries': '0', 'upstash-label': 'mail' },
    { to: 'eve@example.com' },
  )
  await call('POST', `/v2/publish/${sink}/api/later`, {
    'upstash-delay': '2h',
    'upstash-flow-control-key': 'crm',
    'upstash-flow-control-value': 'rate=20,period=1m,parallelism=4',
  })
  await call(
    'POST',
    `/v2/schedules/${sink}/api/report`,
    { 'upstash-cron': 'CRON_TZ=Europe/Berlin 0 9 * * 1-5', 'upstash-schedule-id': 'morning-report' },
    { report: 'sales' },
  )
  await call('POST', `/v2/schedules/${sink}/api/clean`, {
    'upstash-cron': '15 * * * *',
    'upstash-schedule-id': 'clean-up',
  })
  await call(
    'POST',
    '/v2/topics/new-order/endpoints',
    {},
    {
      endpoints: [
        { name: 'billing', url: `${sink}/api/billing` },
        { name: 'stock', url: `${sink}/api/stock` },
      ],
    },
  )
  const hasDeadLetter = async () => ((await call('GET', '/v2/dlq')).body as { messages: unknown[] }).messages.length > 0
  await waitFor(hasDeadLetter, { what: 'the dead letter' })
  return (retried.body as { messageId: string }).messageId
}

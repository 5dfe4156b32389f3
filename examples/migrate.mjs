// Copies URL groups, queues and schedules from one QStash-compatible server to another, over their public APIs.
//
//   export FROM_QSTASH_URL=... FROM_QSTASH_TOKEN=... TO_QSTASH_URL=... TO_QSTASH_TOKEN=...
//   node examples/migrate.mjs             # copies; schedules are paused at the target, so nothing is sent twice
//   node examples/migrate.mjs --switch    # pauses each schedule at the source, and resumes it at the target
//
// Copying again replaces what is there under the same name. Needs nothing but Node. What it cannot copy: docs/migrate.md
import { pathToFileURL } from 'node:url'

/** One server, as `call(method, path, options)`. */
function serverOf(side) {
  const [url, token] = [`${side}_QSTASH_URL`, `${side}_QSTASH_TOKEN`].map((name) => {
    if (!process.env[name]) throw new Error(`${name} is not set.`)
    return process.env[name]
  })
  return async (method, path, { headers = [], body } = {}) => {
    const target = url.replace(/\/+$/, '') + path
    const request = { method, headers: [['Authorization', `Bearer ${token}`], ...headers], body }
    const response = await fetch(target, request).catch(({ cause }) => {
      throw new Error(`${side}_QSTASH_URL does not answer at ${url}: ${cause?.code ?? cause?.message}`)
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} at ${side}: status ${response.status}, ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
}

/** Names and destinations become paths at the target, so that a source can only name what they are for. */
function checked(text) {
  const isName = /^[\w.-]+$/.test(text) && !/^\.+$/.test(text)
  if (isName || /^https?:\/\/[^\s\\]+$/.test(text)) return text
  throw new Error(`the source answered ${JSON.stringify(text)}, which is neither a name nor a URL`)
}

const json = (value) => ({ headers: [['Content-Type', 'application/json']], body: JSON.stringify(value) })

async function copyUrlGroups(from, to, say) {
  for (const { name, endpoints, headers } of await from('GET', '/v2/topics')) {
    const members = endpoints.map(({ name, url }) => (name ? { name, url } : { url }))
    await to('POST', `/v2/topics/${checked(name)}/endpoints`, json({ endpoints: members }))
    if (headers && Object.keys(headers).length > 0) await to('PATCH', `/v2/topics/${name}`, json({ headers }))
    say(`URL group ${name}: ${members.length} ${members.length === 1 ? 'endpoint' : 'endpoints'}`)
  }
}

async function copyQueues(from, to, say) {
  for (const { name, parallelism, paused, lag } of await from('GET', '/v2/queues')) {
    await to('POST', '/v2/queues', json({ queueName: name, parallelism, paused }))
    const left = lag > 0 ? `; ${lag} messages stay at the source and are delivered from there` : ''
    say(`queue ${name}: parallelism ${parallelism}${paused ? ', paused' : ''}${left}`)
  }
}

/** The headers that make the same schedule. */
function headersOf(schedule) {
  const { parallelism, rate, period } = schedule
  const flow = [parallelism && `parallelism=${parallelism}`, rate && `rate=${rate}, period=${period}s`]
  const settings = {
    Cron: schedule.cron,
    'Schedule-Id': schedule.scheduleId,
    Method: schedule.method,
    Retries: schedule.retries,
    'Retry-Delay': schedule.retryDelayExpression,
    Delay: schedule.delay && `${schedule.delay}s`,
    Timeout: schedule.timeout && durationOf(schedule.timeout / 1_000),
    Callback: schedule.callback,
    'Failure-Callback': schedule.failureCallback,
    'Queue-Name': schedule.queueName,
    'Flow-Control-Key': schedule.flowControlKey,
    'Flow-Control-Value': schedule.flowControlKey && flow.filter(Boolean).join(', '),
    Label: schedule.labels?.join(',') ?? schedule.label,
  }
  // Only Homeport has these.
  const rules = {
    Priority: schedule.priority,
    Debounce: schedule.debounceKey,
    'Debounce-Delay': schedule.debounceKey && durationOf(schedule.debounceDelay),
    'Debounce-Max-Delay': schedule.debounceMaxDelay && durationOf(schedule.debounceMaxDelay),
    Singleton: schedule.singletonKey,
    'Singleton-Mode': schedule.singletonMode,
  }
  const own = [...given('Upstash', settings), ...given('Homeport', rules)]
  const forwarded = Object.entries(schedule.header ?? {}).flatMap(([name, values]) =>
    values.map((value) => [name.toLowerCase() === 'content-type' ? name : `Upstash-Forward-${name}`, value]),
  )
  return [...own, ...forwarded]
}

/** Whole seconds, as every server reads them; milliseconds only where they matter. */
const durationOf = (seconds) => (Number.isInteger(seconds) ? `${seconds}s` : `${Math.round(seconds * 1_000)}ms`)

const given = (prefix, settings) =>
  Object.entries(settings)
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([name, value]) => [`${prefix}-${name}`, String(value)])

const bodyOf = ({ body, bodyBase64 }) => (bodyBase64 ? Buffer.from(bodyBase64, 'base64') : (body ?? undefined))

/** Why a schedule cannot be made again from what its server shows of it. */
function obstacleOf(schedule) {
  const shown = [schedule.body, ...Object.values(schedule.header ?? {}).flat()]
  if (shown.some((value) => String(value).startsWith('REDACTED:'))) return 'its body or headers are redacted'
  return undefined
}

async function copySchedules(from, to, say) {
  for (const schedule of await from('GET', '/v2/schedules')) {
    const { scheduleId, cron, destination } = schedule
    const obstacle = obstacleOf(schedule)
    if (obstacle) {
      say(`schedule ${scheduleId}: NOT COPIED, because ${obstacle}; make it by hand`)
      continue
    }
    await to('POST', `/v2/schedules/${checked(destination)}`, { headers: headersOf(schedule), body: bodyOf(schedule) })
    await to('PATCH', `/v2/schedules/${checked(scheduleId)}/pause`)
    const callbacks = schedule.callback || schedule.failureCallback
    const check = callbacks ? '; check the settings of its callbacks, which the API does not show' : ''
    say(`schedule ${scheduleId}: ${cron} to ${destination}, paused${check}`)
  }
}

async function switchSchedules(from, to, say) {
  const copied = new Set((await to('GET', '/v2/schedules')).map(({ scheduleId }) => scheduleId))
  for (const { scheduleId, isPaused } of await from('GET', '/v2/schedules')) {
    if (isPaused || !copied.has(scheduleId)) {
      say(`schedule ${scheduleId}: left alone, ${isPaused ? 'it is paused' : 'it has not been copied'}`)
      continue
    }
    await from('PATCH', `/v2/schedules/${scheduleId}/pause`)
    try {
      await to('PATCH', `/v2/schedules/${scheduleId}/resume`)
    } catch (error) {
      await from('PATCH', `/v2/schedules/${scheduleId}/resume`)
      throw error
    }
    say(`schedule ${scheduleId}: paused at the source, resumed at the target`)
  }
}

/** Copies everything, or switches the schedules over. */
export async function migrate({ isSwitch = false, say = console.log } = {}) {
  const [from, to] = [serverOf('FROM'), serverOf('TO')]
  if (isSwitch) return switchSchedules(from, to, say)
  await copyUrlGroups(from, to, say)
  await copyQueues(from, to, say)
  await copySchedules(from, to, say)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await migrate({ isSwitch: process.argv.includes('--switch') }).catch((error) => {
    console.error(`error: ${error.message}`)
    process.exitCode = 1
  })
}

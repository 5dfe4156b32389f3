import { Readable } from 'node:stream'
import { type Reply, reply } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import * as schedules from '../transactions/schedules.js'
import { type ScheduleView, scheduleView } from './schedule-view.js'

/**
 * The list of schedules is one array on the wire, however large it is. Each of them may hold megabytes, so what does not
 * fit into memory at once is read and sent part by part.
 */

/** So much content is read at once; one schedule may have more, and makes a part of its own. */
const PART_BYTES = 8 * 2 ** 20
const PART_ITEMS = 1_000

/** All schedules of an account, oldest first: those that are there when it begins, as they are when their part is read. */
export async function allSchedules(store: Store, accountId: string): Promise<ScheduleView[] | Reply> {
  const parts = partsOf(await store.run(schedules.list, { accountId }))
  const [first = [], ...others] = parts
  // What the store cannot do shows most often at once, and is still answered with a status of its own then.
  const views = await read(store, accountId, first)
  if (others.length === 0) return views
  const headers = { 'content-type': 'application/json; charset=utf-8' }
  return reply(200, Readable.from(texts(store, accountId, views, others)), headers)
}

function partsOf(sizes: readonly schedules.ScheduleSize[]): readonly (readonly string[])[] {
  const parts: string[][] = []
  let part: string[] = []
  let total = 0
  for (const { schedule_id: scheduleId, bytes } of sizes) {
    total += bytes
    if (part.length === 0 || total > PART_BYTES || part.length === PART_ITEMS) {
      part = []
      parts.push(part)
      total = bytes
    }
    part.push(scheduleId)
  }
  return parts
}

async function read(store: Store, accountId: string, scheduleIds: readonly string[]): Promise<ScheduleView[]> {
  if (scheduleIds.length === 0) return []
  const rows = await store.run(schedules.some, { accountId, scheduleIds })
  return rows.map((row) => scheduleView(row))
}

async function* texts(
  store: Store,
  accountId: string,
  first: readonly ScheduleView[],
  others: readonly (readonly string[])[],
): AsyncGenerator<string> {
  let before = '['
  for (const view of first) {
    yield before + JSON.stringify(view)
    before = ','
  }
  for (const ids of others) {
    for (const view of await read(store, accountId, ids)) {
      yield before + JSON.stringify(view)
      before = ','
    }
  }
  yield before === '[' ? '[]' : ']'
}

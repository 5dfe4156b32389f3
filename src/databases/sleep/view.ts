import type { AwakeRecord } from '../../contract/databases/awake.js'
import type { WhyAwake } from './why.js'

const seconds = (atMs: number | undefined): number => (atMs === undefined ? 0 : Math.floor(atMs / 1000))

/** What the management API answers to the question why a database is awake. */
export function renderAwake(databaseId: string, state: AwakeRecord['state'], why: WhyAwake): AwakeRecord {
  return {
    database_id: databaseId,
    state,
    awake: why.state === 'awake',
    since: seconds(why.sinceMs),
    last_request: seconds(why.lastRequestAtMs),
    sleeps_at: seconds(why.sleepsAtMs),
    connections: why.connections,
    reasons: [...why.reasons],
  }
}

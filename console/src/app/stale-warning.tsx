import { Affix, Paper } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { ApiError } from '../api/client.js'
import { queries } from '../api/session.js'
import { Status } from '../components/status.js'
import { dateTime } from '../lib/format.js'

const isUnreachable = (error: unknown): boolean => error instanceof ApiError && [0, 503].includes(error.status)

/** When the oldest data on the page that could not be refreshed was read; `undefined` while all is well. */
function staleSince(): number | undefined {
  const stale = queries
    .getQueryCache()
    .getAll()
    .filter((query) => query.isActive() && query.state.data !== undefined && isUnreachable(query.state.error))
  return stale.length === 0 ? undefined : Math.min(...stale.map(({ state }) => state.dataUpdatedAt))
}

const subscribe = (listener: () => void): (() => void) => queries.getQueryCache().subscribe(listener)

/** Warns that the server does not respond: the page still shows older data, which would look current. */
export function StaleWarning() {
  const sinceMs = useSyncExternalStore(subscribe, staleSince)
  if (sinceMs === undefined) return null
  return (
    <Affix position={{ bottom: 16, left: 16, right: 16 }} style={{ pointerEvents: 'none' }}>
      <Paper withBorder shadow="md" p="sm" maw={480} mx="auto" role="alert">
        <Status tone="bad">The server does not respond</Status>
        <div style={{ fontSize: 'var(--mantine-font-size-sm)' }}>
          This page shows data from {dateTime(sinceMs)}. The console asks again until the server responds.
        </div>
      </Paper>
    </Affix>
  )
}
